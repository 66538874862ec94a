//! What is measured: sluicegate, a peer in its place, or receiving alone.

use std::path::{Path, PathBuf};

use super::sink::Sink;
use super::{Offer, Outcome, Stage, StageError, free_udp, load, number};

/// What stands between the load and the sink.
#[derive(Debug, Clone)]
pub enum Forwarder {
    /// Nothing: receive and throw away. The floor that the others are compared with.
    Discard,
    /// This program's `run`, with these options.
    Sluicegate(Vec<String>),
    /// A program that a script becomes: it is given the UDP port, the sink's TCP port and the number of threads, and
    /// sends lines. See bench/peers.
    Peer(PathBuf),
}

impl Forwarder {
    /// What it is called in tables.
    pub fn name(&self) -> String {
        match self {
            Self::Discard => "discard".to_owned(),
            Self::Sluicegate(_) => "sluicegate".to_owned(),
            Self::Peer(script) => {
                script.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            }
        }
    }

    /// Offers to it, and accounts for every stage.
    ///
    /// # Errors
    /// When a stage cannot be started or ends without its last line.
    pub fn measure(&self, offer: &Offer) -> Result<Outcome, StageError> {
        match self {
            Self::Discard => discard(offer),
            Self::Sluicegate(options) => sluicegate(offer, options),
            Self::Peer(script) => peer(offer, script, self.name()),
        }
    }
}

fn discard(offer: &Offer) -> Result<Outcome, StageError> {
    let address = free_udp()?;
    let workers = offer.workers.to_string();
    let arguments = ["discard", &address, "--workers", &workers];
    let discard = Stage::start("discard", &arguments, offer.pins.forwarder.as_deref())?;
    through(offer, "discard", &address, discard, None)
}

fn sluicegate(offer: &Offer, options: &[String]) -> Result<Outcome, StageError> {
    let address = free_udp()?;
    let sink = Sink::grpc(offer)?;
    let (workers, url) = (offer.workers.to_string(), format!("http://{}", sink.address));
    let mut arguments = vec!["run", "--listen", &address, "--vector", &url, "--workers", &workers];
    arguments.extend(options.iter().map(String::as_str));
    let run = Stage::start("run", &arguments, offer.pins.forwarder.as_deref())?;
    through(offer, "sluicegate", &address, run, Some(sink))
}

fn peer(offer: &Offer, script: &Path, name: String) -> Result<Outcome, StageError> {
    let address = free_udp()?;
    let sink = Sink::lines(offer)?;
    let port = |address: &str| address.rsplit(':').next().unwrap_or_default().to_owned();
    let arguments = [port(&address), port(&sink.address), offer.workers.to_string()];
    let peer = Stage::program("peer", script, &arguments, offer.pins.forwarder.as_deref())?;
    through(offer, &name, &address, peer, Some(sink))
}

/// Offers to a forwarder that has just been started, and stops it and the sink behind it, if there is one.
fn through(
    offer: &Offer,
    name: &str,
    address: &str,
    mut forwarder: Stage,
    sink: Option<Sink>,
) -> Result<Outcome, StageError> {
    forwarder.wait_for_udp(address)?;
    let sent = load(offer, address, &mut forwarder)?;
    let count = number(&sent, "sent");
    let mut pipeline = format!("load → {name}");
    if let Some(sink) = &sink {
        pipeline = format!("{pipeline} → {}", sink.name);
        // A peer's queue may be long, and it forgets what is in it when it is told to stop.
        forwarder.wait_until_idle()?;
    }
    let (forwarder, books) = forwarder.stop(count)?;
    let (arrived, sink) = match sink {
        Some(sink) => sink.stop(count).map(|(arrived, cost)| (arrived, Some(cost)))?,
        None => (number(&books, "received"), None),
    };
    Ok(Outcome {
        pipeline,
        offered: offer.rate,
        workers: offer.workers,
        sent: count,
        rate: sent["rate"].as_f64().unwrap_or_default(),
        arrived,
        kernel_drops: books["kernel_drops"].as_u64(),
        load_us: sent["cpu_us_per_message"].as_f64().unwrap_or_default(),
        forwarder,
        sink,
    })
}
