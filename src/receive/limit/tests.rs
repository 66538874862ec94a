use std::mem::{size_of, size_of_val};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::*;

const START: Timestamp = Timestamp { seconds: 1_796_000_000, nanos: 900_000_000 };

fn after(millis: u64) -> Timestamp {
    let nanos = u64::from(START.nanos) + millis * 1_000_000;
    Timestamp {
        seconds: START.seconds + (nanos / 1_000_000_000) as i64,
        nanos: (nanos % 1_000_000_000) as u32,
    }
}

fn limiter(threshold: usize, window: Duration) -> Limiter {
    Limiter::new(RateLimit { threshold, window }, START).unwrap()
}

const SECOND: Duration = Duration::from_secs(1);

fn sender(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

#[test]
fn a_bucket_holds_a_window_and_fills_up_evenly() {
    let limiter = limiter(100, SECOND);
    assert_eq!(limiter.take(sender(1), 150, after(0)), 100);
    assert_eq!(limiter.take(sender(1), 1, after(0)), 0);
    assert_eq!(limiter.take(sender(1), 150, after(500)), 50);
    assert_eq!(limiter.take(sender(2), 150, after(500)), 100, "each has its own");
    assert_eq!(limiter.take(sender(1), 150, after(60_000)), 100, "no more than a window");
    assert!(Limiter::new(RateLimit::default(), START).is_none());
}

#[test]
fn a_sender_at_the_limit_loses_nothing_and_one_at_twice_the_limit_half() {
    for (threshold, window) in [(1_000, SECOND), (7, Duration::from_secs(3)), (1, Duration::from_secs(60))] {
        let limiter = limiter(threshold, window);
        let interval = window.as_nanos() as u64 / threshold as u64;
        let time = |nanos: u64| Timestamp {
            seconds: START.seconds + (nanos / 1_000_000_000) as i64,
            nanos: (nanos % 1_000_000_000) as u32,
        };
        let messages = 20 * threshold as u64 + 100;
        let granted = |sender, interval: u64| -> u64 {
            (0..messages).map(|n| limiter.take(sender, 1, time(n * interval)) as u64).sum()
        };
        // A part of an interval more, since time is counted in whole parts.
        assert_eq!(granted(sender(1), interval + interval / PARTS + 1), messages);
        let half = granted(sender(2), interval / 2);
        let expected = messages / 2 + threshold as u64;
        assert!((expected - 2..=expected + 2).contains(&half), "{half} of {expected}");
    }
}

/// Nobody read the sockets for half a minute before this process began: what waited there came at its sender's usual rate.
#[test]
fn what_waited_since_before_the_start_counts_for_when_it_came() {
    let limiter = limiter(1_000, SECOND);
    for millis in 0..30_000_u64 {
        let time = Timestamp {
            seconds: START.seconds - 30 + (millis / 1_000) as i64,
            nanos: (millis % 1_000) as u32 * 1_000_000,
        };
        assert_eq!(limiter.take(sender(1), 1, time), 1, "after {millis} ms");
        limiter.advance(time);
    }
}

#[test]
fn a_million_made_up_senders_take_no_memory_and_no_message_of_others() {
    let limiter = limiter(1_000, SECOND);
    let mad = sender(1);
    let mut through = 0;
    for n in 0..1_000_000u32 {
        let now = after(u64::from(n) / 200); // 200,000 a second, for five seconds
        let made_up: IpAddr = Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(n)).into();
        assert_eq!(limiter.take(made_up, 1, now), 1);
        through += limiter.take(mad, 1, now);
        if n.is_multiple_of(2_000) {
            // Twenty that are well-behaved: a hundred a second each.
            for last in 10..30 {
                assert_eq!(limiter.take(sender(last), 1, now), 1, "{last} at {n}");
            }
        }
    }
    assert!((5_990..=6_005).contains(&through), "a window and five seconds of the limit: {through}");
    assert_eq!(size_of_val(&*limiter.lines), SETS * 64);
    assert_eq!(size_of::<Line>(), 64);
}

#[test]
fn a_worker_that_is_behind_and_a_clock_that_is_set_back_cost_no_message() {
    let limiter = limiter(100, SECOND);
    // Two workers get 50 messages a second of one sender; the second one stood still for a second.
    for n in 0..50 {
        assert_eq!(limiter.take(sender(1), 1, after(n * 20)), 1);
        limiter.advance(after(n * 20));
    }
    for n in 0..50 {
        assert_eq!(limiter.take(sender(1), 1, after(n * 20)), 1);
        limiter.advance(after(n * 20));
    }
    let day_before = Timestamp { seconds: START.seconds + 100_000, nanos: 0 };
    limiter.advance(day_before);
    assert_eq!(limiter.take(sender(1), 150, day_before), 100);
    limiter.advance(after(5_000));
    assert_eq!(limiter.take(sender(1), 150, after(5_000)), 100, "what is from the future says nothing");
    assert_eq!(limiter.take(sender(1), 150, after(5_500)), 50, "and time goes on");
}

#[test]
fn workers_share_a_bucket() {
    let limiter = limiter(10_000, SECOND);
    let through: usize = std::thread::scope(|scope| {
        let worker = || (0..10_000).map(|_| limiter.take(sender(1), 1, START)).sum::<usize>();
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(through, 10_000);
}
