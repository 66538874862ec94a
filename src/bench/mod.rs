//! Measuring: each stage a process of its own, so that its CPU is accounted from outside.
//!
//! In: what to offer, to which [`Forwarder`]s. Out: what each stage cost, what was lost, and on what machine.

pub mod corpus;
mod events;
mod forwarder;
mod hot_path;
mod lines;
mod machine;
pub mod plan;
pub mod simulation;
mod sink;
mod stage;
pub mod table;

pub use events::count_events;
pub use forwarder::Forwarder;
pub use hot_path::HotPath;
pub use lines::count_lines;
pub use machine::Machine;
pub use stage::{Cost, Pins, Stage, StageError};

use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value as Json;

use crate::receiver::{Numbers, NumbersReport};

/// Counts what comes to a sink over all its connections.
#[derive(Debug, Default, Clone)]
struct Tally(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    events: u64,
    numbers: Numbers,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counted(&self) -> Counted {
        let seen = self.lock();
        Counted { events: seen.events, numbers: seen.numbers.report() }
    }
}

/// What came to a sink.
#[derive(Debug, Default, Serialize)]
pub struct Counted {
    /// Events, or lines.
    pub events: u64,
    /// What the load's numbers tell.
    #[serde(flatten)]
    pub numbers: Option<NumbersReport>,
}

/// What to offer, and to how many workers.
#[derive(Debug, Clone, Serialize)]
pub struct Offer {
    /// Datagrams a second.
    pub rate: u64,
    /// Seconds.
    pub seconds: u64,
    /// Bytes of each datagram.
    pub size: usize,
    /// Source ports.
    pub flows: usize,
    /// A file whose lines are sent in place of made-up messages.
    pub corpus: Option<PathBuf>,
    /// Receive threads.
    pub workers: usize,
    /// On which cores each stage runs.
    pub pins: Pins,
}

/// What a run of a pipeline, or of its receiving half, gave.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Which stages ran.
    pub pipeline: String,
    /// Datagrams a second that were asked for.
    pub offered: u64,
    /// Receive threads.
    pub workers: usize,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams a second, as measured at the sender.
    pub rate: f64,
    /// Datagrams that arrived at the end, each counted once where they are numbered.
    pub arrived: u64,
    /// Datagrams that the kernel dropped at the sockets, where the forwarder tells.
    pub kernel_drops: Option<u64>,
    /// The sender's CPU, microseconds a datagram sent.
    pub load_us: f64,
    /// The receiving or forwarding process's.
    pub forwarder: Cost,
    /// The end receiver's, where there was one.
    pub sink: Option<Cost>,
}

impl Outcome {
    /// Datagrams that never arrived.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// The CPU of all but the sender, microseconds a datagram sent.
    pub fn cpu_us(&self) -> f64 {
        self.forwarder.cpu_us + self.sink.map_or(0.0, |sink| sink.cpu_us)
    }
}

/// Offers to a forwarder, and waits until all of it is sent.
fn load(offer: &Offer, address: &str, forwarder: &mut Stage) -> Result<Json, StageError> {
    let number = |n: u64| n.to_string();
    let (rate, seconds) = (number(offer.rate), number(offer.seconds));
    let (size, flows) = (number(offer.size as u64), number(offer.flows as u64));
    let corpus = offer.corpus.as_ref().map(|path| path.to_string_lossy().into_owned());
    let mut arguments =
        vec!["load", address, "--rate", &rate, "--seconds", &seconds, "--size", &size, "--flows", &flows];
    arguments.extend(corpus.iter().flat_map(|path| ["--corpus", path]));
    let limit = Duration::from_secs(offer.seconds * 10 + 30);
    let load = Stage::start("load", &arguments, offer.pins.load.as_deref())?;
    thread::sleep(Duration::from_secs(offer.seconds) / 2);
    forwarder.half_time();
    load.finish(limit)
}

fn number(last: &Json, key: &str) -> u64 {
    last[key].as_u64().unwrap_or_default()
}

fn free_udp() -> Result<String, StageError> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

fn free_tcp() -> Result<String, StageError> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
