//! Measuring: each stage a process of its own, so that its CPU is accounted from outside.
//!
//! In: what to offer. Out: what each stage cost, what was lost, and on what machine.

pub mod corpus;
mod machine;
mod stage;

pub use machine::Machine;
pub use stage::{Cost, Stage, StageError};

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value as Json;

/// What to offer, and to how many workers.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Offer {
    /// Datagrams a second.
    pub rate: u64,
    /// Seconds.
    pub seconds: u64,
    /// Bytes of each datagram.
    pub size: usize,
    /// Source ports.
    pub flows: usize,
    /// Receive threads.
    pub workers: usize,
}

/// What a run of the pipeline, or of its receiving half, gave.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Which stages ran.
    pub pipeline: &'static str,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams a second, as measured at the sender.
    pub rate: f64,
    /// Datagrams that arrived at the end, each counted once.
    pub arrived: u64,
    /// Datagrams that the kernel dropped at the sockets.
    pub kernel_drops: u64,
    /// The sender's CPU, microseconds a datagram sent.
    pub load_us: f64,
    /// The receiving or forwarding process's.
    pub forwarder: Cost,
    /// The end receiver's, where there was one.
    pub receiver: Option<Cost>,
}

impl Outcome {
    /// Datagrams that never arrived.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }
}

/// Receive and throw away: the floor that the pipeline is compared with.
///
/// # Errors
/// When a stage cannot be started or ends without its last line.
pub fn discard(offer: &Offer) -> Result<Outcome, StageError> {
    let address = free_udp()?;
    let workers = offer.workers.to_string();
    let discard = Stage::start("discard", &["discard", &address, "--workers", &workers])?;
    discard.wait_for_udp(&address)?;
    let sent = load(offer, &address)?;
    let (forwarder, last) = discard.stop(number(&sent, "sent"))?;
    Ok(Outcome {
        pipeline: "load → discard",
        sent: number(&sent, "sent"),
        rate: sent["rate"].as_f64().unwrap_or_default(),
        arrived: number(&last, "received"),
        kernel_drops: number(&last, "kernel_drops"),
        load_us: sent["cpu_us_per_message"].as_f64().unwrap_or_default(),
        forwarder,
        receiver: None,
    })
}

/// The whole pipeline into a counting receiver. `options` go to `run` as they are.
///
/// # Errors
/// When a stage cannot be started or ends without its last line.
pub fn pipeline(offer: &Offer, options: &[String]) -> Result<Outcome, StageError> {
    let (address, vector) = (free_udp()?, free_tcp()?);
    let receiver = Stage::start("receive", &["receive", &vector, "--count"])?;
    receiver.wait_for_tcp(&vector)?;
    let (workers, url) = (offer.workers.to_string(), format!("http://{vector}"));
    let mut arguments = vec!["run", "--listen", &address, "--vector", &url, "--workers", &workers];
    arguments.extend(options.iter().map(String::as_str));
    let run = Stage::start("run", &arguments)?;
    run.wait_for_udp(&address)?;
    let sent = load(offer, &address)?;
    let count = number(&sent, "sent");
    let (forwarder, books) = run.stop(count)?;
    let (receiver, last) = receiver.stop(count)?;
    Ok(Outcome {
        pipeline: "load → run → receive",
        sent: count,
        rate: sent["rate"].as_f64().unwrap_or_default(),
        arrived: number(&last, "unique"),
        kernel_drops: number(&books, "kernel_drops"),
        load_us: sent["cpu_us_per_message"].as_f64().unwrap_or_default(),
        forwarder,
        receiver: Some(receiver),
    })
}

fn load(offer: &Offer, address: &str) -> Result<Json, StageError> {
    let number = |n: u64| n.to_string();
    let (rate, seconds) = (number(offer.rate), number(offer.seconds));
    let (size, flows) = (number(offer.size as u64), number(offer.flows as u64));
    let arguments =
        ["load", address, "--rate", &rate, "--seconds", &seconds, "--size", &size, "--flows", &flows];
    let limit = Duration::from_secs(offer.seconds * 10 + 30);
    Stage::start("load", &arguments)?.finish(limit)
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
