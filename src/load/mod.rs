//! A sender of UDP load: paced, numbered, from one flow or many.
//!
//! In: [`Load`]. Out: datagrams, and [`Sent`]. It costs less than what it loads: datagrams leave many to a
//! call, and where their size allows as one piece that the kernel cuts (`UDP_SEGMENT`).

mod marker;
mod messages;
mod sender;

pub use marker::{Marker, parse_marker};
pub use messages::{Corpus, MIN_SIZE};

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::books::{per_event, process_cpu_us};
use crate::config::MAX_DATAGRAM;
use messages::Messages;
use sender::Sender;

/// What to send.
#[derive(Debug, Clone)]
pub struct Load {
    /// Where to.
    pub target: SocketAddr,
    /// Datagrams a second; none: as many as go.
    pub rate: Option<f64>,
    /// When to end.
    pub until: Until,
    /// Bytes of each datagram.
    pub size: usize,
    /// Sockets, so source ports, that take turns.
    pub flows: usize,
    /// Seed of the filler text and of the run's mark.
    pub seed: u64,
    /// Messages to send instead of numbered ones.
    pub corpus: Option<Corpus>,
    /// Whether the kernel may cut large pieces into datagrams.
    pub segment: bool,
}

/// When a load ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Until {
    /// After this many datagrams.
    Count(u64),
    /// After this time or, with a rate, after the datagrams that belong to it.
    Elapsed(Duration),
}

/// What was sent: the last line of `load`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sent {
    /// Datagrams.
    pub sent: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// Datagrams a second, as measured.
    pub rate: f64,
    /// CPU time of the thread that sends, for each datagram, microseconds.
    pub cpu_us_per_message: f64,
    /// Sends that were answered by "nobody listens there"; more than 0 means that messages were lost on the way.
    pub refused: u64,
}

/// Pauses between bursts of a paced load: short enough for a smooth rate, long enough to cost little.
const TICK: Duration = Duration::from_millis(1);

/// Datagrams sent between two looks at the clock, when there is no rate.
const UNPACED: u64 = 1_024;

impl Load {
    /// Takes a load as possible.
    ///
    /// # Errors
    /// What is out of range, and the range.
    pub fn checked(self) -> Result<Self, String> {
        let in_range = |flag: &str, value: f64, low: f64, high: f64| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(format!("{flag} {value} is out of range: give {low} to {high}")),
        };
        in_range("--rate", self.rate.unwrap_or(1.0), 0.001, 1e8)?;
        in_range("--size", self.size as f64, MIN_SIZE as f64, MAX_DATAGRAM as f64)?;
        in_range("--flows", self.flows as f64, 1.0, 60_000.0)?;
        if let Until::Elapsed(time) = self.until {
            in_range("--seconds", time.as_secs_f64(), 0.0, 1e7)?;
        }
        Ok(self)
    }

    /// Sends it all, on the calling thread, unless `stop` is set before.
    ///
    /// # Errors
    /// When a socket cannot be opened or the kernel refuses to send.
    pub fn run(&self, stop: &AtomicBool) -> io::Result<Sent> {
        let total = match (self.until, self.rate) {
            (Until::Count(count), _) => Some(count),
            (Until::Elapsed(time), Some(rate)) => Some((rate * time.as_secs_f64()).round() as u64),
            (Until::Elapsed(_), None) => None,
        };
        let mut messages = Messages::new(self, total.unwrap_or(0));
        let mut sender = Sender::open(self)?;
        let (start, cpu) = (Instant::now(), process_cpu_us());
        let mut sent = 0;
        while !stop.load(Relaxed) && total.is_none_or(|total| sent < total) {
            let elapsed = start.elapsed();
            if total.is_none() && matches!(self.until, Until::Elapsed(time) if elapsed >= time) {
                break;
            }
            let due = self.rate.map_or(sent + UNPACED, |rate| (rate * elapsed.as_secs_f64()) as u64 + 1);
            let due = due.min(total.unwrap_or(u64::MAX));
            while sent < due {
                sent += sender.send(&mut messages, due - sent)?;
            }
            if self.rate.is_some() && sent < total.unwrap_or(u64::MAX) {
                thread::sleep(TICK);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        sender.look_for_refusals();
        Ok(Sent {
            sent,
            seconds: (seconds * 1e3).round() / 1e3,
            rate: (sent as f64 / seconds).round(),
            cpu_us_per_message: per_event(process_cpu_us() - cpu, sent),
            refused: sender.refused,
        })
    }
}

#[cfg(test)]
mod tests;
