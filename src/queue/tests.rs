use std::thread;
use std::time::Duration;

use super::*;
use crate::batch::{Answers, Closed, Trouble};
use crate::datagram::Timestamp;
use crate::spool::Spool;

fn batch(events: u64, weight: usize) -> Batch {
    let received = Timestamp { seconds: 0, nanos: 0 };
    let body = vec![events as u8; weight].into();
    let (closed, ticket, lane, trouble) = (Closed::Age, None, None, None);
    Batch { body, events, weight, received, closed, ticket, lane, trouble }
}

fn queue(max_bytes: usize, when_full: WhenFull) -> Arc<Queue> {
    Queue::new(Buffer { max_bytes, when_full, max_disk_bytes: 0 })
}

/// `batches` of these bytes in all.
fn level(batches: usize, events: u64, bytes: usize) -> Level {
    Level { events, bytes: bytes + batches * OVERHEAD }
}

#[tokio::test]
async fn batches_leave_in_order_and_failed_ones_come_first() {
    let queue = queue(1_000, WhenFull::Block);
    for events in 1..=3 {
        queue.push(batch(events, 10)).unwrap();
    }
    let first = queue.lease().await.unwrap();
    assert_eq!(queue.levels(), Levels { waiting: level(2, 5, 20), in_flight: level(1, 1, 10) });
    drop(first);
    assert_eq!(queue.levels(), Levels { waiting: level(3, 6, 30), in_flight: level(0, 0, 0) });
    for events in 1..=3 {
        assert_eq!(queue.lease().await.unwrap().settle().unwrap().events, events);
    }
    assert_eq!(queue.levels(), Levels::default());
}

#[tokio::test]
async fn a_batch_in_trouble_gives_way_and_remembers() {
    let queue = queue(1_000, WhenFull::Block);
    for events in 1..=3 {
        queue.push(batch(events, 10)).unwrap();
    }
    let mut first = queue.lease().await.unwrap();
    let trouble = Trouble::default().after_failure(0, 7, Answers::default());
    first.set_trouble(Some(trouble));
    first.give_way();
    assert_eq!(queue.levels(), Levels { waiting: level(3, 6, 30), in_flight: level(0, 0, 0) });
    assert!(queue.lease_if(|batch| batch.events == 1).is_none(), "it is not in front");
    for events in [2, 3] {
        assert_eq!(queue.lease().await.unwrap().settle().unwrap().events, events);
    }
    let last = queue.lease_if(|batch| batch.events == 1).unwrap();
    assert_eq!(last.batch().trouble.as_deref(), Some(&trouble));
    drop(last);
    assert_eq!(queue.lease().await.unwrap().batch().trouble.as_deref(), Some(&trouble));
}

#[test]
fn drop_newest_refuses_what_does_not_fit() {
    let queue = queue(25, WhenFull::DropNewest);
    queue.push(batch(1, 100)).expect("an empty queue takes any size");
    assert!(matches!(queue.push(batch(2, 1)), Err(Refused::Full(batch)) if batch.events == 2));
    assert_eq!(queue.levels().waiting, level(1, 1, 100));
}

#[tokio::test]
async fn block_waits_for_room() {
    let queue = queue(25, WhenFull::Block);
    queue.push(batch(1, 20)).unwrap();
    let pushing = thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.push(batch(2, 20)).is_ok()
    });
    thread::sleep(Duration::from_millis(50));
    assert!(!pushing.is_finished());
    queue.lease().await.unwrap().settle();
    assert!(pushing.join().unwrap());
    assert_eq!(queue.levels().waiting, level(1, 2, 20));
}

#[tokio::test]
async fn closing_ends_streams_only_when_all_is_settled() {
    let queue = queue(100, WhenFull::Block);
    queue.push(batch(1, 10)).unwrap();
    let lease = queue.lease().await.unwrap();
    queue.close();
    let waiting = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.lease().await.and_then(Lease::settle).map(|batch| batch.events) }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished(), "the leased batch may come back");
    drop(lease);
    assert_eq!(waiting.await.unwrap(), Some(1));
    assert!(queue.lease().await.is_none());
}

#[tokio::test]
async fn abandoning_frees_everybody_and_keeps_the_rest_countable() {
    let queue = queue(10, WhenFull::Block);
    queue.push(batch(1, 10)).unwrap();
    let pushing = thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.push(batch(2, 10))
    });
    let lease = queue.lease().await.unwrap();
    pushing.join().unwrap().unwrap();
    queue.abandon();
    assert!(queue.lease().await.is_none());
    assert!(matches!(queue.push(batch(3, 1)), Err(Refused::Abandoned(_))));
    drop(lease);
    let left: Vec<_> = queue.leftovers().iter().map(|batch| batch.events).collect();
    assert_eq!(left, [1, 2]);
    assert_eq!(queue.levels(), Levels::default());
}

#[tokio::test]
async fn a_batch_that_has_to_wait_is_compacted() {
    let queue = queue(1_000, WhenFull::Block);
    let loose = || Batch { body: vec![1; 10].into(), ..batch(1, 100) };
    queue.push(loose()).unwrap();
    queue.push(loose()).unwrap();
    assert_eq!(queue.levels().waiting, level(2, 2, 110));
}

#[tokio::test]
async fn those_who_wait_for_the_end_take_no_wake_up_from_a_stream() {
    let queue = queue(1_000, WhenFull::Block);
    let ending = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.finished().await }
    });
    tokio::task::yield_now().await; // the oldest waiter
    let leasing = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.lease().await.and_then(Lease::settle).map(|batch| batch.events) }
    });
    tokio::task::yield_now().await;
    queue.push(batch(1, 10)).unwrap();
    let leased = tokio::time::timeout(Duration::from_secs(20), leasing).await;
    assert_eq!(leased.expect("the stream was woken").unwrap(), Some(1));
    queue.close();
    ending.await.unwrap();
}

#[tokio::test]
async fn in_order_a_lane_has_one_batch_in_flight_and_a_failed_one_goes_again_first() {
    let queue = queue(1_000_000, WhenFull::Block);
    queue.keep_order();
    for (events, lane) in [(1, 0), (2, 0), (3, 1), (4, 0)] {
        queue.push(Batch { lane: Some(lane), ..batch(events, 10) }).unwrap();
    }
    let first = queue.lease().await.unwrap();
    let other_lane = queue.lease().await.unwrap();
    assert_eq!((first.batch().events, other_lane.batch().events), (1, 3));
    let nothing = tokio::time::timeout(Duration::from_millis(50), queue.lease()).await;
    assert!(nothing.is_err(), "both lanes are busy");
    first.give_way(); // which would put others before it
    let mut order = Vec::new();
    for _ in 0..3 {
        let lease = queue.lease().await.unwrap();
        order.push(lease.batch().events);
        lease.settle();
    }
    assert_eq!(order, [1, 2, 4]);
    other_lane.settle();
    queue.hold();
    queue.push(batch(5, 10)).unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), queue.lease()).await.is_err(), "held");
    queue.let_go();
    assert_eq!(queue.lease().await.unwrap().batch().events, 5);
}

#[tokio::test]
async fn in_order_one_that_steps_aside_lets_its_lane_pass() {
    let queue = queue(1_000_000, WhenFull::Block);
    queue.keep_order();
    for events in 1..=3 {
        queue.push(Batch { lane: Some(0), ..batch(events, 10) }).unwrap();
    }
    queue.lease().await.unwrap().step_aside();
    for events in [2, 3, 1] {
        assert_eq!(queue.lease().await.unwrap().settle().unwrap().events, events);
    }
}

/// A take-over, in order: what the process before has left on disk is older than what waits here.
#[tokio::test]
async fn in_order_what_comes_to_disk_late_goes_first() {
    let directory = tempfile::tempdir().unwrap();
    let older = Spool::open(directory.path(), 1 << 30).unwrap();
    (1..=2).for_each(|events| older.append(&batch(events, 10)).unwrap());
    let queue = queue(1_000_000, WhenFull::Overflow);
    queue.keep_order();
    queue.hold();
    (3..=4).for_each(|events| queue.push(Batch { lane: Some(0), ..batch(events, 10) }).unwrap());
    queue.let_go();
    let leased = tokio::time::timeout(Duration::from_millis(50), queue.lease()).await;
    assert!(leased.is_err(), "the disk is out of reach yet");
    queue.fill_spool(Arc::new(older));
    let refilling = thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.refill()
    });
    queue.push(Batch { lane: Some(0), ..batch(5, 10) }).unwrap();
    for events in 1..=5 {
        assert_eq!(queue.lease().await.unwrap().settle().unwrap().events, events);
    }
    // Nothing on disk any more: batches stay in memory again, though there is always one.
    queue.push(Batch { lane: Some(0), ..batch(6, 10) }).unwrap();
    while queue.lock().spilled {
        queue.push(Batch { lane: Some(0), ..batch(7, 10) }).unwrap();
        queue.lease().await.unwrap().settle();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    queue.close();
    queue.abandon();
    refilling.join().unwrap();
}
