//! What a running sluicegate is told, already valid: later code cannot hold a wrong one.
//!
//! Names and defaults are those of the configuration file's contract; where Vector has the option, its name
//! is Vector's. In: a file and flags, collected in a [`Draft`]. Out: [`Config`], or every problem that was found.

mod buffer;
mod check;
mod draft;
mod endpoint;
mod file;
pub mod keys;
mod listener;
mod log;
mod origins;
pub mod show;
pub mod units;
pub mod variables;
mod vector;

pub use buffer::{Batch, Buffer, WhenFull};
pub use draft::Draft;
pub use endpoint::Endpoint;
pub use listener::{Listener, RateLimit, Steering};
pub use log::{Log, LogFormat, LogLevel};
pub use origins::Origins;
pub use vector::{Compression, DeadLetter, OnRejected, Tls, Vector};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::dead_letter;
use crate::encode::MAX_EVENT_OVERHEAD;
use crate::parse::Options;
use crate::receive::DEPTH;
use crate::socket::slots::slots_bytes;

/// The largest UDP payload over IPv4, bytes (RFC 768: 65,535 less the IP and UDP headers).
pub const MAX_DATAGRAM: usize = 65_507;

/// A request's hard limit, bytes: gRPC receivers refuse more than 4 MiB by default. The margin is for the
/// message prefix.
pub const MAX_REQUEST: usize = 4 * 1024 * 1024 - 64 * 1024;

/// The most workers a listener may have: the steering program numbers sockets, and each costs memory.
pub const MAX_WORKERS: usize = 256;

/// Everything `run` needs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listeners: Vec<Listener>,
    /// What is made of a datagram.
    pub parse: Options,
    /// When a batch closes.
    pub batch: Batch,
    /// The queue between workers and pushers.
    pub buffer: Buffer,
    /// How much each sender may send.
    pub rate_limit: RateLimit,
    /// Where to push.
    pub vector: Vector,
    /// Where events go that Vector refuses for good.
    pub dead_letter: DeadLetter,
    /// Where metrics, health and state are served.
    pub admin: Admin,
    /// How long a stop may take.
    pub shutdown_timeout: Duration,
    /// What is logged, and how.
    pub log: Log,
    /// Where what overflows is kept.
    pub data_dir: PathBuf,
    /// Where a successor asks for the sockets; none where it cannot.
    pub takeover_path: Option<PathBuf>,
    /// Whether the process stays when a successor has its sockets.
    pub takeover_stay: bool,
    /// Whether the metrics go to Vector too, as events.
    pub self_metrics: bool,
}

/// The admin port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admin {
    /// Its address; none where there is to be none.
    pub address: Option<SocketAddr>,
    /// Whether a person asked for it: the default one may be taken by another process.
    pub required: bool,
    /// How many of the heaviest senders are kept in view; 0 for none.
    pub top_senders: usize,
}

impl Default for Admin {
    fn default() -> Self {
        Self { address: Some(SocketAddr::from(([127, 0, 0, 1], 9_615))), required: false, top_senders: 20 }
    }
}

/// A choice as it is written in a configuration.
pub fn word(choice: &impl clap::ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Something a person has to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Its place in the file, such as `listeners[0].workers`.
    pub path: String,
    /// What is wrong and what to write instead.
    pub problem: String,
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match keys::flag_of(&self.path) {
            Some(flag) => write!(f, "{} (--{flag}): {}", self.path, self.problem),
            None => write!(f, "{}: {}", self.path, self.problem),
        }
    }
}

/// Nowhere to listen and nowhere to push; every other default.
impl Default for Config {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
            parse: Options::default(),
            batch: Batch::default(),
            buffer: Buffer::default(),
            rate_limit: RateLimit::default(),
            vector: Vector::default(),
            dead_letter: DeadLetter::default(),
            admin: Admin::default(),
            shutdown_timeout: Duration::from_secs(30),
            log: Log::default(),
            data_dir: PathBuf::from("/var/lib/sluicegate"),
            takeover_path: None,
            takeover_stay: false,
            self_metrics: false,
        }
    }
}

/// Cores this process may use: affinity and cgroup quota respected.
pub fn usable_cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

impl Config {
    /// Workers of all listeners.
    pub fn workers(&self) -> usize {
        self.listeners.iter().map(|listener| listener.workers).sum()
    }

    /// Requests that can be in flight at once.
    pub fn streams(&self) -> usize {
        self.vector.endpoints.len() * self.vector.connections * self.vector.streams
    }

    /// Bytes of a batch's buffer: its limit, and room for the event that goes beyond it.
    pub fn batch_buffer(&self) -> usize {
        self.batch.max_bytes + MAX_DATAGRAM + MAX_EVENT_OVERHEAD
    }

    /// Batch buffers that are kept for use again: one for each stream's request, two for each worker.
    pub fn idle_buffers(&self) -> usize {
        self.streams() + 2 * self.workers()
    }

    /// The most memory that this configuration makes the process use for events, bytes: receive slots that have
    /// each held their longest datagram, batches that are being filled, wait, are in flight, or are kept for use
    /// again.
    pub fn memory_ceiling(&self) -> usize {
        let slots = |listener: &Listener| listener.workers * slots_bytes(DEPTH, listener.max_length);
        let slots: usize = self.listeners.iter().map(slots).sum();
        // A worker that waits for room holds a closed batch beside the next one's buffer.
        let letters = if self.dead_letter.path.is_some() { dead_letter::WAITING } else { 0 };
        // Streams count twice: a reload may find the old ones waiting for answers.
        let batches = 2 * self.workers() + 2 * self.streams() + self.idle_buffers() + letters;
        slots
            .saturating_add(self.buffer.max_bytes)
            .saturating_add(batches.saturating_mul(self.batch_buffer()))
    }
}

#[cfg(test)]
mod tests;
