//! What a running sluicegate is told, already valid: later code cannot hold a wrong one.
//!
//! Names and defaults are those of the configuration file's contract; where Vector has the option, its name
//! is Vector's. In: a file and flags, collected in a [`Draft`]. Out: [`Config`], or every problem that was found.

mod draft;
mod file;
pub mod keys;
pub mod show;
pub mod units;
pub mod variables;

pub use draft::Draft;

use std::net::SocketAddr;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::encode::{MAX_EVENT_OVERHEAD, Shape};
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
    /// Where to push.
    pub vector: Vector,
    /// Where metrics, health and state are served.
    pub admin: Admin,
    /// How long a stop may take.
    pub shutdown_timeout: Duration,
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
}

/// The admin port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admin {
    /// Its address; none where there is to be none.
    pub address: Option<SocketAddr>,
    /// Whether a person asked for it: the default one may be taken by another process.
    pub required: bool,
}

impl Default for Admin {
    fn default() -> Self {
        Self { address: Some(SocketAddr::from(([127, 0, 0, 1], 9_615))), required: false }
    }
}

/// Which socket of a group the kernel gives a datagram to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
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

/// The queue between workers and pushers.
#[derive(Debug, Clone, Copy)]
pub struct Buffer {
    /// Bytes of waiting batches.
    pub max_bytes: usize,
    /// What happens to a batch that does not fit.
    pub when_full: WhenFull,
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
}

/// Where and how to push.
#[derive(Debug, Clone)]
pub struct Vector {
    /// Vector sources.
    pub endpoints: Vec<Endpoint>,
    /// HTTP/2 connections to each.
    pub connections: usize,
    /// Requests in flight on each connection.
    pub streams: usize,
    /// A request's deadline.
    pub request_timeout: Duration,
    /// The first wait after a failure; it doubles from there.
    pub retry_initial_backoff: Duration,
}

/// A `vector` source's address, from a URL such as `http://127.0.0.1:6000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
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

impl Default for Batch {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_events: 1_000, timeout: Duration::from_millis(200) }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self { max_bytes: 256 << 20, when_full: WhenFull::Block }
    }
}

impl Default for Vector {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            connections: 2,
            streams: 4,
            request_timeout: Duration::from_secs(60),
            retry_initial_backoff: Duration::from_millis(100),
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
        }
    }
}

/// Cores this process may use: affinity and cgroup quota respected.
pub fn usable_cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

impl Config {
    /// Takes a configuration as valid, or says everything that is wrong with it.
    ///
    /// # Errors
    /// One [`Invalid`] for each finding.
    pub fn checked(self) -> Result<Self, Vec<Invalid>> {
        let mut check = Check::default();
        let nowhere = "nowhere to listen: name an address, such as [::]:5514";
        check.that(!self.listeners.is_empty(), "listeners[].address", nowhere);
        let nowhere = "nowhere to push: name a Vector, such as http://127.0.0.1:6000, or give `run` --stdout";
        check.that(!self.vector.endpoints.is_empty(), "vector.endpoints", nowhere);
        for (at, listener) in self.listeners.iter().enumerate() {
            let path = |name: &str| format!("listeners[{at}].{name}");
            let address = listener.address;
            check.that(address.port() != 0, &path("address"), "port 0 would be a random one; name a port");
            let twice = self.listeners[..at].iter().any(|other| other.address == address);
            check.that(
                !twice,
                &path("address"),
                &format!("{address} is there twice: give each address once"),
            );
            check.range(&path("workers"), listener.workers, 1, MAX_WORKERS);
            check.range(&path("max_length"), listener.max_length, 1, MAX_DATAGRAM);
            // The kernel takes no more for a socket.
            let most = listener.workers.max(1) << 30;
            check.range(&path("receive_buffer_bytes"), listener.receive_buffer_bytes, 4_096, most);
        }
        check.range("batch.max_bytes", self.batch.max_bytes, 1_024, MAX_REQUEST);
        check.range("batch.max_events", self.batch.max_events, 1, 1_000_000);
        check.range("buffer.max_bytes", self.buffer.max_bytes, 1, usize::MAX);
        check.range("vector.connections", self.vector.connections, 1, 1_024);
        check.range("vector.streams", self.vector.streams, 1, 1_024);
        check.lasts("batch.timeout_secs", self.batch.timeout);
        check.lasts("vector.request.timeout_secs", self.vector.request_timeout);
        let backoff = self.vector.retry_initial_backoff;
        let problem = "give more than 0 and 5 s at the most, which is the longest pause";
        let right = !backoff.is_zero() && backoff <= crate::push::Backoff::LONGEST;
        check.that(right, "vector.request.retry_initial_backoff_secs", problem);
        check.names(&self.parse.shape);
        if check.found.is_empty() { Ok(self) } else { Err(check.found) }
    }

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
        let batches = 2 * self.workers() + self.streams() + self.idle_buffers();
        slots
            .saturating_add(self.buffer.max_bytes)
            .saturating_add(batches.saturating_mul(self.batch_buffer()))
    }
}

#[derive(Default)]
struct Check {
    found: Vec<Invalid>,
}

impl Check {
    fn that(&mut self, right: bool, path: &str, problem: &str) {
        if !right {
            self.found.push(Invalid { path: path.to_owned(), problem: problem.to_owned() });
        }
    }

    fn range(&mut self, path: &str, value: usize, low: usize, high: usize) {
        let right = (low..=high).contains(&value);
        self.that(right, path, &format!("{value} is out of range: give {low} to {high}"));
    }

    /// Fields that a person names must not overwrite what the event is about, or each other.
    fn names(&mut self, shape: &Shape) {
        let mut taken = vec!["message", "timestamp", "source_type", "parse_error"];
        taken.extend(shape.keep_raw.then_some("raw"));
        let fields = shape.fields.iter().map(|(name, _)| ("parse.fields", name.as_str()));
        let keys = [("parse.host_key", shape.host_key.as_str()), ("parse.port_key", shape.port_key.as_str())];
        for (path, name) in keys.into_iter().chain(fields).filter(|(_, name)| !name.is_empty()) {
            self.that(
                !taken.contains(&name),
                path,
                &format!("`{name}` would overwrite another field of that name"),
            );
            taken.push(name);
        }
    }

    fn lasts(&mut self, path: &str, time: Duration) {
        const DAY: Duration = Duration::from_secs(86_400);
        let right = time >= Duration::from_millis(1) && time <= DAY;
        self.that(
            right,
            path,
            &format!("{} s is out of range: give a millisecond to a day", time.as_secs_f64()),
        );
    }
}

impl std::str::FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid =
            |why: &str| format!("`{text}` is no Vector endpoint: {why}, such as http://127.0.0.1:6000");
        let uri: http::Uri = text.parse().map_err(|_| invalid("write a URL"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(invalid("this version has no TLS yet; write a plaintext URL")),
            _ => return Err(invalid("begin it with http://")),
        }
        if !matches!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("" | "/")) {
            return Err(invalid("leave the path out"));
        }
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(invalid("it cannot have credentials"));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        if has_port && uri.port_u16().is_none_or(|port| port == 0) {
            return Err(invalid("its port has to be 1 to 65535"));
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| invalid("name a host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: uri.port_u16().unwrap_or(6_000) })
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "http://[{}]:{}", self.host, self.port),
            false => write!(f, "http://{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests;
