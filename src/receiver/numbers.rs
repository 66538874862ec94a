//! The numbers of a numbered load: which came, which came twice, which are missing.

use std::collections::HashMap;

use memchr::memmem;
use serde::Serialize;

use crate::load::{Marker, parse_marker};

/// What the numbers tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NumbersReport {
    /// Different numbers seen.
    pub unique: u64,
    /// Messages whose number had been seen before.
    pub duplicates: u64,
    /// Numbers that never came, of those that the sender announced or, where it did not know, up to the highest seen.
    pub missing: u64,
    /// Messages that came after a later one of their flow.
    pub out_of_order: u64,
}

/// Numbers of runs that are followed; a stray sender cannot use up memory.
const MAX_RUNS: usize = 64;
const MAX_FLOWS: usize = 65_536;
/// 10^9 numbers are 125 MB of bits.
const MAX_NUMBER: u64 = 1_000_000_000;

/// Follows the numbers of each run of `load`.
#[derive(Debug, Default)]
pub struct Numbers {
    runs: HashMap<u32, Run>,
}

#[derive(Debug, Default)]
struct Run {
    seen: Vec<u64>,
    unique: u64,
    duplicates: u64,
    out_of_order: u64,
    /// One more than the highest number seen, or what the sender announced.
    expected: u64,
    latest: HashMap<u32, u64>,
}

impl Numbers {
    /// Looks for a marker in a message and notes its number.
    pub fn see(&mut self, message: &[u8]) {
        // The marker is at the front, behind a syslog header at the most.
        let front = &message[..message.len().min(256)];
        let Some(marker) = memmem::find(front, Marker::START).and_then(|at| parse_marker(&message[at..]))
        else {
            return;
        };
        if marker.number >= MAX_NUMBER
            || (self.runs.len() >= MAX_RUNS && !self.runs.contains_key(&marker.run))
        {
            return;
        }
        self.runs.entry(marker.run).or_default().note(marker);
    }

    /// What the numbers tell; none when there were none.
    pub fn report(&self) -> Option<NumbersReport> {
        if self.runs.is_empty() {
            return None;
        }
        let add = |sum: NumbersReport, run: &Run| NumbersReport {
            unique: sum.unique + run.unique,
            duplicates: sum.duplicates + run.duplicates,
            missing: sum.missing + run.expected - run.unique,
            out_of_order: sum.out_of_order + run.out_of_order,
        };
        Some(self.runs.values().fold(NumbersReport::default(), add))
    }
}

impl Run {
    fn note(&mut self, marker: Marker) {
        self.expected = self.expected.max(marker.number + 1).max(marker.of.min(MAX_NUMBER));
        let (word, bit) = ((marker.number / 64) as usize, 1 << (marker.number % 64));
        if word >= self.seen.len() {
            self.seen.resize((word + 1).next_power_of_two(), 0);
        }
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return;
        }
        self.seen[word] |= bit;
        self.unique += 1;
        if self.latest.len() < MAX_FLOWS || self.latest.contains_key(&marker.flow) {
            let latest = self.latest.entry(marker.flow).or_default();
            if marker.number < *latest {
                self.out_of_order += 1;
            }
            *latest = marker.number.max(*latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(number: u64, of: u64, flow: u32) -> Vec<u8> {
        let mut message = b"<134>1 - host - - - - ".to_vec();
        message.extend(Marker { number, of, run: 7, flow }.to_string().into_bytes());
        message.extend(b" and more");
        message
    }

    #[test]
    fn tells_loss_duplicates_and_order_apart() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.report(), None);
        numbers.see(b"not numbered");
        for (number, flow) in [(0, 1), (2, 1), (1, 2), (2, 1), (70, 2), (65, 2)] {
            numbers.see(&marked(number, 0, flow));
        }
        let report = NumbersReport { unique: 5, duplicates: 1, missing: 66, out_of_order: 1 };
        assert_eq!(numbers.report(), Some(report));
        numbers.see(&marked(3, 100, 1));
        assert_eq!(numbers.report(), Some(NumbersReport { unique: 6, missing: 94, ..report }));
    }
}
