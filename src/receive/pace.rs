//! When a worker reads again: coalesced wake-ups.
//!
//! Waking for each datagram costs 3–4 µs of CPU a message at 100,000/s; napping after a short read, for as long as it takes
//! to fill a row of slots, costs 1.0–1.3 µs, because each call then takes many. A nap is free as long as the socket's buffer
//! holds what arrives meanwhile, and as long as it is short beside `batch.timeout_secs`. An idle worker never naps: it sleeps in the
//! kernel until something comes.

use std::time::Duration;

/// What to do after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Read on: there is more.
    Read,
    /// Sleep this long, then read.
    Nap(Duration),
    /// Sleep until a datagram comes.
    Wait,
}

const SHORTEST: Duration = Duration::from_micros(50);
/// Of a socket with a large buffer. Up to here longer naps still save: at 10,000/s 5 ms take 30 % off what 1 ms costs
/// (bench/HISTORY.md).
const LONGEST: Duration = Duration::from_millis(5);

/// Of a socket whose buffer a burst could fill in that time.
const LONGEST_OF_SMALL: Duration = Duration::from_millis(1);

/// Datagrams a second that a burst may bring to one socket: half of a buffer has to hold them for a nap's length.
const BURST: f64 = 1e6;

/// Fewer datagrams than this in a nap's read make naps dearer than wake-ups.
const WORTHWHILE: usize = 3;

/// Rows of slots that a nap should bring at most: the longer it is, the fewer wake-ups.
const ROWS: usize = 2;

/// Datagrams of 1.1 KB that a socket granted `buffer` bytes holds.
pub(super) fn held(buffer: usize) -> usize {
    /// What the kernel charges for one; it doubles the granted figure to allow for that.
    const CHARGE: usize = 2_304;
    buffer * 2 / CHARGE
}

/// Chooses the next step from the size of the last read. Pure: reads no clock.
#[derive(Debug)]
pub struct Pace {
    /// Datagrams that a nap should bring at most.
    target: usize,
    longest: Duration,
    nap: Duration,
    /// Datagrams read since the last sleep of either kind.
    brought: usize,
}

impl Pace {
    /// For reads of up to `depth` datagrams from a socket that is granted `buffer` bytes.
    pub fn new(depth: usize, buffer: usize) -> Self {
        let held = held(buffer);
        let longest = Duration::from_secs_f64(held as f64 / 2.0 / BURST).clamp(LONGEST_OF_SMALL, LONGEST);
        Self { target: (held / 4).clamp(1, depth * ROWS), longest, nap: longest, brought: 0 }
    }

    /// After reads of `datagrams` together (0: nothing was there); `more` where one of them was full.
    pub fn after(&mut self, datagrams: usize, more: bool) -> Step {
        self.brought += datagrams;
        if more {
            return Step::Read;
        }
        let brought = std::mem::take(&mut self.brought);
        if brought < WORTHWHILE {
            self.nap = self.longest;
            return Step::Wait;
        }
        // Towards the nap that would have brought `target` at this rate.
        let scale = (self.target as f64 / brought as f64).min(2.0);
        self.nap = self.nap.mul_f64(scale).clamp(SHORTEST, self.longest);
        Step::Nap(self.nap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a socket that gets `rate` datagrams a second: the nap it settles on, none where it waits.
    fn settle(rate: f64, buffer: usize) -> Option<Duration> {
        let mut pace = Pace::new(128, buffer);
        let mut settled = Some(LONGEST);
        for _ in 0..100 {
            let mut waiting = settled.map_or(1, |nap| (rate * nap.as_secs_f64()) as usize);
            settled = loop {
                let read = waiting.min(128);
                waiting -= read;
                match pace.after(read, read == 128) {
                    Step::Read => {}
                    Step::Nap(nap) => break Some(nap),
                    Step::Wait => break None,
                }
            };
        }
        settled
    }

    #[test]
    fn sleeps_in_the_kernel_when_it_is_quiet() {
        assert_eq!(settle(400.0, 32 << 20), None);
    }

    #[test]
    fn naps_as_long_as_it_may_under_some_load() {
        assert_eq!(settle(10_000.0, 32 << 20), Some(LONGEST));
        assert_eq!(settle(10_000.0, 212_992), Some(LONGEST_OF_SMALL), "the default of net.core.rmem_max");
    }

    #[test]
    fn naps_shorter_when_that_brings_too_many() {
        let nap = settle(400_000.0, 32 << 20).unwrap();
        assert!(nap < LONGEST / 5, "{nap:?}");
        let nap = settle(50_000.0, 100_000).unwrap();
        assert!(50_000.0 * nap.as_secs_f64() < 25.0, "a small buffer is drained before it is full: {nap:?}");
    }

    #[test]
    fn reads_on_while_there_is_more() {
        assert_eq!(Pace::new(128, 1 << 20).after(128, true), Step::Read);
    }
}
