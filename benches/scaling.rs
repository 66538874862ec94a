//! The same work on more and more workers: parse and encode, no sockets. Prints messages a second, medians of twenty-five.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use sluicegate::bench::{Machine, corpus};
use sluicegate::datagram::{Datagram, Timestamp};
use sluicegate::parse::{EventMaker, EventSink, Mode, Options};

const WORKERS: [usize; 5] = [1, 2, 4, 8, 16];
const MESSAGES: usize = 400_000;
const RUNS: usize = 25;

struct Encoded(Vec<u8>);

impl EventSink for Encoded {
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.0);
        if self.0.len() > 1 << 20 {
            self.0.clear(); // a batch's worth
        }
    }
}

/// Takes portions until all are done, so that a core which the machine gives to somebody else for a while holds up
/// one portion, not its whole share.
fn work(corpus: &[Vec<u8>], portions: &AtomicUsize) {
    let options =
        Options { mode: Mode::Syslog, timezone: "UTC".parse().expect("a zone"), ..Options::default() };
    let mut maker = EventMaker::new(&options);
    let mut encoded = Encoded(Vec::with_capacity(2 << 20));
    let peer = "192.0.2.1:514".parse().expect("an address");
    while portions.fetch_add(1, Ordering::Relaxed) < MESSAGES / corpus.len() {
        for payload in corpus {
            let datagram = Datagram { payload, peer, received: None, truncated: false };
            maker.make(&datagram, Timestamp { seconds: 1_796_000_000, nanos: 1 }, &mut encoded);
        }
    }
}

fn rate(corpus: &[Vec<u8>], workers: usize) -> f64 {
    let portions = AtomicUsize::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(corpus, &portions));
        }
    });
    MESSAGES as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    let machine = Machine::here();
    println!("{} × {}, Linux {}", machine.cores, machine.cpu, machine.kernel);
    println!("{:<10}{:>8}{:>16}{:>10}", "corpus", "workers", "messages/s", "of one");
    for (name, corpus) in [("parsed", corpus::parsed(1, 10_000)), ("noise", corpus::noise(1, 10_000))] {
        // Kinds take turns, and each is held to the single worker of its own turn: what else the machine does
        // falls on all.
        let mut rates = [const { Vec::new() }; WORKERS.len()];
        let mut ratios = rates.clone();
        for _ in 0..RUNS {
            let turn = WORKERS.map(|workers| rate(&corpus, workers));
            for (i, rate) in turn.iter().enumerate() {
                rates[i].push(*rate);
                ratios[i].push(rate / turn[0]);
            }
        }
        for ((rates, ratios), workers) in rates.iter_mut().zip(&mut ratios).zip(WORKERS) {
            println!("{name:<10}{workers:>8}{:>16.0}{:>9.2}×", median(rates), median(ratios));
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
