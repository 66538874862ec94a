//! The heaviest senders, in bounded memory however many there are.
//!
//! Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in Data Streams",
//! 2005): a full table gives the place of its lightest sender, with its count, to a new one. Whoever sends more than
//! one part in `places` of everything is in the table, and no count is too high by more than its `error`.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use priority_queue::PriorityQueue;
use serde::Serialize;

/// Places in a table for each sender that is shown.
const SPARE: usize = 8;

/// What one sender sent in a row.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The sender.
    pub sender: IpAddr,
    /// Datagrams.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Those of them that did not parse.
    pub parse_failures: u64,
}

/// One sender and its weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Heavy {
    /// Its address.
    pub sender: IpAddr,
    /// Messages, bytes or failures, perhaps too many by `error`.
    pub count: u64,
    /// By how much `count` may be too high.
    pub error: u64,
}

/// The heaviest senders, heaviest first.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Top {
    /// By datagrams.
    pub by_messages: Vec<Heavy>,
    /// By bytes of payloads.
    pub by_bytes: Vec<Heavy>,
    /// By datagrams that did not parse.
    pub by_parse_failures: Vec<Heavy>,
}

/// One worker's senders. Its lock is taken once a read of the socket, and by whoever looks.
#[derive(Debug)]
pub struct Senders {
    /// How many are shown; 0 keeps none.
    shown: usize,
    tables: Mutex<[Table; 3]>,
}

impl Senders {
    /// Shows up to this many senders of each kind.
    pub fn new(shown: usize) -> Self {
        Self { shown, tables: Mutex::new(std::array::from_fn(|_| Table::new(shown * SPARE))) }
    }

    /// True when senders are kept.
    pub fn is_on(&self) -> bool {
        self.shown > 0
    }

    /// Adds what was sent.
    pub fn add(&self, runs: &[Run]) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let [messages, bytes, failures] = &mut *tables;
        for run in runs {
            messages.add(run.sender, run.messages);
            bytes.add(run.sender, run.bytes);
            failures.add(run.sender, run.parse_failures);
        }
    }

    /// The heaviest of several workers' senders.
    pub fn top<'a>(workers: impl Iterator<Item = &'a Self>) -> Top {
        let mut all: [HashMap<IpAddr, Weight>; 3] = Default::default();
        let mut shown = 0;
        for worker in workers {
            shown = worker.shown;
            let tables = worker.tables.lock().unwrap_or_else(PoisonError::into_inner);
            for (all, table) in all.iter_mut().zip(&*tables) {
                for (sender, Reverse(weight)) in &table.weights {
                    let sum = all.entry(*sender).or_default();
                    (sum.count, sum.error) = (sum.count + weight.count, sum.error + weight.error);
                }
            }
        }
        let [by_messages, by_bytes, by_parse_failures] = all.map(|weights| heaviest(weights, shown));
        Top { by_messages, by_bytes, by_parse_failures }
    }
}

fn heaviest(weights: HashMap<IpAddr, Weight>, shown: usize) -> Vec<Heavy> {
    let heavy = |(sender, Weight { count, error })| Heavy { sender, count, error };
    let mut all: Vec<_> = weights.into_iter().map(heavy).collect();
    all.sort_by_key(|heavy| (Reverse(heavy.count), heavy.sender));
    all.truncate(shown);
    all
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    count: u64,
    error: u64,
}

/// The lightest sender is the first to go.
#[derive(Debug)]
struct Table {
    weights: PriorityQueue<IpAddr, Reverse<Weight>>,
    places: usize,
}

impl Table {
    fn new(places: usize) -> Self {
        Self { weights: PriorityQueue::new(), places }
    }

    fn add(&mut self, sender: IpAddr, weight: u64) {
        if weight == 0 || self.places == 0 {
            return;
        }
        let known = self.weights.change_priority_by(&sender, |Reverse(known)| known.count += weight);
        if known {
            return;
        }
        let lightest = if self.weights.len() < self.places { None } else { self.weights.pop() };
        let error = lightest.map_or(0, |(_, Reverse(lightest))| lightest.count);
        self.weights.push(sender, Reverse(Weight { count: error + weight, error }));
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn run(sender: u32, messages: u64, bytes: u64, parse_failures: u64) -> Run {
        Run { sender: Ipv4Addr::from(sender).into(), messages, bytes, parse_failures }
    }

    #[test]
    fn each_kind_has_its_own_order_over_all_workers() {
        let workers = [Senders::new(2), Senders::new(2)];
        workers[0].add(&[run(1, 10, 100, 0), run(2, 5, 900, 1)]);
        workers[1].add(&[run(2, 1, 100, 0), run(3, 2, 1, 2), run(1, 1, 1, 0)]);
        let top = Senders::top(workers.iter());
        let plain = |heavy: &[Heavy]| heavy.iter().map(|h| (h.sender, h.count)).collect::<Vec<_>>();
        let ip = |n: u32| IpAddr::from(Ipv4Addr::from(n));
        assert_eq!(plain(&top.by_messages), [(ip(1), 11), (ip(2), 6)]);
        assert_eq!(plain(&top.by_bytes), [(ip(2), 1_000), (ip(1), 101)]);
        assert_eq!(plain(&top.by_parse_failures), [(ip(3), 2), (ip(2), 1)]);
    }

    #[test]
    fn a_million_spoofed_senders_do_not_push_out_a_heavy_one_nor_take_memory() {
        let senders = Senders::new(10);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..1_000_000 {
            senders.add(&[run(random.u32(1_000..), 1, 100, 1)]);
            if random.u8(..20) == 0 {
                senders.add(&[run(7, 1, 100, 0)]);
            }
        }
        let top = Senders::top([&senders].into_iter());
        let heaviest = &top.by_messages[0];
        assert_eq!(heaviest.sender, IpAddr::from(Ipv4Addr::from(7)));
        let (sent, all) = (50_000_u64, 1_050_000);
        assert!(heaviest.count - heaviest.error <= sent + 1_000, "{heaviest:?}");
        assert!(heaviest.error <= all / 80, "{heaviest:?}");
        assert_eq!(top.by_messages.len(), 10);
        assert!(senders.tables.lock().unwrap().iter().all(|table| table.weights.len() <= 80));
    }

    #[test]
    fn none_are_kept_where_none_are_shown() {
        let senders = Senders::new(0);
        senders.add(&[run(1, 1, 1, 1)]);
        assert!(!senders.is_on() && Senders::top([&senders].into_iter()).by_messages.is_empty());
    }
}
