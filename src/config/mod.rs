//! What a running sluicegate is told, already valid: later code cannot hold a wrong one.
//!
//! Names and defaults are those of the configuration file's contract; where Vector has the option, its name
//! is Vector's. In: a file and flags, collected in a [`Draft`]. Out: [`Config`], or every problem that was found.

mod check;
mod draft;
mod endpoint;
mod file;
pub mod keys;
mod origins;
pub mod show;
pub mod units;
pub mod variables;

pub use draft::Draft;
pub use endpoint::Endpoint;
pub use origins::Origins;

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

/// What is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    /// The least grave lines that are logged.
    pub level: LogLevel,
    /// How a line looks.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Auto }
    }
}

/// How grave a log line is; Vector's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// What only a developer wants.
    Trace,
    /// What helps to find a fault.
    Debug,
    /// What is worth knowing.
    Info,
    /// What may need somebody.
    Warn,
    /// What needs somebody.
    Error,
    /// Nothing at all.
    Off,
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// One address and its group of sockets.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The address and UDP port.
    pub address: SocketAddr,
    /// Sockets and threads.
    pub workers: usize,
    /// Which worker gets a datagram.
    pub steering: Steering,
    /// Receive buffer of the whole group, bytes.
    pub receive_buffer_bytes: usize,
    /// The longest datagram taken, bytes; a longer one is counted and discarded, as in Vector.
    pub max_length: usize,
    /// Who may send; what others send is counted and discarded.
    pub permit_origin: Origins,
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

/// Which socket of a group the kernel gives a datagram to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Steering {
    /// A random one: one flow uses every core, at the price of its order.
    Spread,
    /// By the flow's addresses and ports: keeps each sender's order.
    Flow,
    /// By the core that received it: cache-local where the network card spreads by itself.
    Cpu,
}

/// When a batch closes: whichever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// Bytes on the wire.
    pub max_bytes: usize,
    /// Events.
    pub max_events: usize,
    /// Age.
    pub timeout: Duration,
}

/// How much each sender may send; the names are those of Vector's `throttle` transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Datagrams in a window; 0 for no limit.
    pub threshold: usize,
    /// The window.
    pub window: Duration,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { threshold: 0, window: Duration::from_secs(1) }
    }
}

/// The queue between workers and pushers.
#[derive(Debug, Clone, Copy)]
pub struct Buffer {
    /// Bytes of waiting batches.
    pub max_bytes: usize,
    /// What happens to a batch that does not fit.
    pub when_full: WhenFull,
    /// Bytes of batches on disk, with `overflow`.
    pub max_disk_bytes: usize,
}

/// What happens to a batch that does not fit the queue; Vector's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// Reading stops; the kernel's buffer and drop counter take over.
    Block,
    /// The new batch is shed and counted.
    #[value(name = "drop_newest")]
    DropNewest,
    /// It goes to disk, up to `max_disk_bytes`.
    Overflow,
}

/// Where and how to push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    /// Vector sources.
    pub endpoints: Vec<Endpoint>,
    /// HTTP/2 connections to each.
    pub connections: usize,
    /// Requests in flight on each connection.
    pub streams: usize,
    /// Whether each sender's order is kept: one request in flight for each worker.
    pub ordered: bool,
    /// A request's deadline.
    pub request_timeout: Duration,
    /// The first wait after a failure; it doubles from there.
    pub retry_initial_backoff: Duration,
    /// How long a batch is tried, from its first datagram on; none: for ever.
    pub retry_max_duration: Option<Duration>,
    /// What becomes of a batch that a sink refused something of.
    pub on_rejected: OnRejected,
    /// How requests are compressed.
    pub compression: Compression,
    /// How `https://` endpoints are spoken to.
    pub tls: Tls,
}

/// How requests are compressed; Vector's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952: every Vector knows it.
    Gzip,
    /// RFC 8878: the newest ones know it.
    Zstd,
}

/// What becomes of a batch of which a sink refused something for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRejected {
    /// It is rejected as a whole: its good events may be delivered, and would be twice.
    Drop,
    /// It is halved and sent again, down to the event: the good ones may be delivered twice.
    Split,
}

/// The file of events that Vector refuses for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it is; none where they are only counted.
    pub path: Option<PathBuf>,
    /// Its largest size, bytes.
    pub max_bytes: usize,
}

impl Default for DeadLetter {
    fn default() -> Self {
        Self { path: None, max_bytes: 64 << 20 }
    }
}

/// TLS to Vector; the names are Vector's. Files are read anew for each connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the CAs that are trusted (PEM); the system's roots when none.
    pub ca_file: Option<PathBuf>,
    /// This side's certificate and what leads to its CA (PEM).
    pub crt_file: Option<PathBuf>,
    /// Its private key (PEM).
    pub key_file: Option<PathBuf>,
    /// The name that Vector's certificate has to have; the endpoint's host when empty.
    pub server_name: String,
    /// Whether Vector's certificate is verified at all.
    pub verify_certificate: bool,
    /// Whether its name is.
    pub verify_hostname: bool,
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

impl Default for Batch {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_events: 1_000, timeout: Duration::from_millis(200) }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self { max_bytes: 256 << 20, when_full: WhenFull::Block, max_disk_bytes: 1 << 30 }
    }
}

impl Default for Vector {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            connections: 2,
            streams: 4,
            ordered: false,
            request_timeout: Duration::from_secs(60),
            retry_initial_backoff: Duration::from_millis(100),
            retry_max_duration: None,
            on_rejected: OnRejected::Drop,
            compression: Compression::None,
            tls: Tls::default(),
        }
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            ca_file: None,
            crt_file: None,
            key_file: None,
            server_name: String::new(),
            verify_certificate: true,
            verify_hostname: true,
        }
    }
}

impl Listener {
    /// A listener with the defaults: a worker for each usable core, spread, 64 MiB.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            workers: usable_cores(),
            steering: Steering::Spread,
            receive_buffer_bytes: 64 << 20,
            max_length: MAX_DATAGRAM,
            permit_origin: Origins::default(),
        }
    }

    /// Whether an IPv6 wildcard takes IPv4 as well: not where another of `all` has that port for IPv4.
    pub fn is_dual_stack(&self, all: &[Self]) -> bool {
        let takes_ipv4 =
            |other: &Self| other.address.is_ipv4() && other.address.port() == self.address.port();
        !all.iter().any(takes_ipv4)
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
