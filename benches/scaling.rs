//! The same work on more and more workers: parse and encode, no sockets. Prints messages a second, medians of five.

use std::thread;
use std::time::Instant;

use sluicegate::bench::{Machine, corpus};
use sluicegate::datagram::{Datagram, Timestamp};
use sluicegate::parse::{EventMaker, EventSink, Mode, Options};

const WORKERS: [usize; 5] = [1, 2, 4, 8, 16];
const MESSAGES: usize = 1_600_000;
const RUNS: usize = 5;

struct Encoded(Vec<u8>);

impl EventSink for Encoded {
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.0);
        if self.0.len() > 1 << 20 {
            self.0.clear(); // a batch's worth
        }
    }
}

fn work(corpus: &[Vec<u8>], messages: usize) {
    let options =
        Options { mode: Mode::Syslog, timezone: "UTC".parse().expect("a zone"), ..Options::default() };
    let mut maker = EventMaker::new(&options);
    let mut encoded = Encoded(Vec::with_capacity(2 << 20));
    let peer = "192.0.2.1:514".parse().expect("an address");
    for payload in corpus.iter().cycle().take(messages) {
        let datagram = Datagram { payload, peer, received: None, truncated: false };
        maker.make(&datagram, Timestamp { seconds: 1_796_000_000, nanos: 1 }, &mut encoded);
    }
}

fn rate(corpus: &[Vec<u8>], workers: usize) -> f64 {
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| work(corpus, MESSAGES / workers));
        }
    });
    MESSAGES as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    let machine = Machine::here();
    println!("{} × {}, Linux {}", machine.cores, machine.cpu, machine.kernel);
    println!("{:<10}{:>8}{:>16}{:>10}", "corpus", "workers", "messages/s", "of one");
    for (name, corpus) in [("parsed", corpus::parsed(1, 20_000)), ("noise", corpus::noise(1, 20_000))] {
        // Kinds take turns, so that whatever else the machine does falls on all.
        let mut rates = [const { Vec::new() }; WORKERS.len()];
        for _ in 0..RUNS {
            for (rates, workers) in rates.iter_mut().zip(WORKERS) {
                rates.push(rate(&corpus, workers));
            }
        }
        let medians = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[RUNS / 2]
        });
        for (median, workers) in medians.iter().zip(WORKERS) {
            println!("{name:<10}{workers:>8}{median:>16.0}{:>9.2}×", median / medians[0]);
        }
    }
}
