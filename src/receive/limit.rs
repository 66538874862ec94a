//! How much one sender may send: a bucket of tokens for each address, in a table that never grows.
//!
//! Shared by all workers, since under `spread` every worker gets a part of each sender's datagrams. No lock: a bucket is
//! one word, and those that an address may be in are one cache line.
//!
//! A bucket's state is the time at which it would be full again (GCRA, ITU-T I.371), so a full one says nothing that a
//! missing one does not. When a new sender finds no place, the fullest bucket goes: one that limits nobody, as long as
//! there is one. So a sender is never held to less than the limit, however many addresses are made up, and those who
//! are over it keep their places longest.

use std::array;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::config::RateLimit;
use crate::datagram::Timestamp;

/// Buckets that an address may be in: those of a cache line.
const WAYS: usize = 8;

/// Cache lines; 131,072 buckets in 1 MiB.
const SETS: usize = 16_384;

/// A word is a tag, by which addresses in one line are told apart, and a time. Two senders whose hashes agree in
/// these bits and in the line's would share a bucket: 1 pair in 2^34.
const TIME_BITS: u32 = 44;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// Time is counted in these parts of the interval between two messages at the limit, so that it needs no division.
const PARTS: u64 = 16;

/// Seconds.
const DAY: i64 = 86_400;

#[repr(align(64))]
#[derive(Debug, Default)]
struct Line([AtomicU64; WAYS]);

/// The buckets of all senders.
#[derive(Debug)]
pub struct Limiter {
    /// Parts of time in a second.
    pace: f64,
    /// Parts of time that a bucket holds.
    depth: u64,
    /// When time began, seconds since 1970.
    epoch: i64,
    /// The latest time that a worker has read: one that is behind counts by it, or what it still has to read would find
    /// the buckets of the future.
    latest: AtomicU64,
    hash: RandomState,
    lines: Box<[Line]>,
}

impl Limiter {
    /// Buckets of `threshold` tokens each, which fill up in a `window`; none where there is no threshold.
    pub fn new(limit: RateLimit, now: Timestamp) -> Option<Self> {
        let tokens = u64::try_from(limit.threshold).ok().filter(|tokens| *tokens > 0)?;
        Some(Self {
            pace: (tokens * PARTS) as f64 / limit.window.as_secs_f64(),
            depth: tokens * PARTS,
            // Before now: datagrams may have waited in the sockets for longer than this process lives.
            epoch: now.seconds - DAY,
            latest: AtomicU64::new(0),
            hash: RandomState::new(),
            lines: (0..SETS).map(|_| Line::default()).collect(),
        })
    }

    /// Takes up to `wanted` tokens from a sender's bucket for datagrams that came at `time`; how many there were.
    pub fn take(&self, sender: IpAddr, wanted: usize, time: Timestamp) -> usize {
        let hash = self.hash.hash_one(sender);
        let (line, tag) = (&self.lines[hash as usize % SETS].0, hash >> TIME_BITS);
        let now = self.parts(time).max(self.latest.load(Relaxed));
        // Lock-free: when this try is in vain, another worker's was not.
        loop {
            let words: [u64; WAYS] = array::from_fn(|at| line[at].load(Relaxed));
            let debt = |at: usize| self.debt(words[at], now);
            let known = (0..WAYS).find(|at| words[*at] >> TIME_BITS == tag);
            // Of buckets that are as full, the first: two workers choose the same one.
            let place = known.or_else(|| (0..WAYS).min_by_key(|at| debt(*at))).unwrap_or_default();
            let debt = known.map_or(0, debt);
            let granted = wanted.min(((self.depth - debt) / PARTS) as usize);
            if granted == 0 {
                return 0;
            }
            let full_again = now.wrapping_add(debt + granted as u64 * PARTS) & TIME_MASK;
            let word = tag << TIME_BITS | full_again;
            if line[place].compare_exchange_weak(words[place], word, Relaxed, Relaxed).is_ok() {
                return granted;
            }
        }
    }

    /// Notes how far a worker has read.
    pub fn advance(&self, time: Timestamp) {
        let (now, latest) = (self.parts(time), self.latest.load(Relaxed));
        // Further back than a worker can be behind: the clock was set.
        if now > latest || latest - now > 2 * self.depth {
            self.latest.store(now, Relaxed);
        }
    }

    fn parts(&self, time: Timestamp) -> u64 {
        let seconds = (time.seconds - self.epoch) as f64 + f64::from(time.nanos) / 1e9;
        (seconds * self.pace).max(0.0) as u64
    }

    /// How far a bucket is from full, in parts of time; never more than its depth.
    fn debt(&self, word: u64, now: u64) -> u64 {
        let ahead = (word & TIME_MASK).wrapping_sub(now) & TIME_MASK;
        // Beyond twice the depth it is a time that has passed, or one of a clock that was set back since.
        if ahead > 2 * self.depth { 0 } else { ahead.min(self.depth) }
    }
}

#[cfg(test)]
mod tests;
