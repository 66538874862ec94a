//! `sluicegate bench`: what the pipeline costs here, beside what receiving alone costs, and what peers do.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io, thread};

use serde::Serialize;

use super::{Failure, Signals, print, print_json, runtime};
use crate::bench::plan::{Plan, sweep};
use crate::bench::{
    Forwarder, HotPath, Machine, Offer, Outcome, Pins, StageError, count_events, count_lines, table,
};
use crate::config::{Listener, usable_cores};
use crate::numbers::grouped;
use crate::parse::Mode;
use crate::receive::Discard;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to measure
    #[arg(long, value_enum, default_value_t = Plan::Once)]
    plan: Plan,
    /// Messages a second
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rate: u64,
    /// Seconds of each run
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u64,
    /// Bytes of each message
    #[arg(long, value_name = "BYTES", default_value_t = 1_100)]
    size: usize,
    /// Source ports
    #[arg(long, value_name = "N", default_value_t = 1)]
    flows: usize,
    /// Send the lines of this file, not made-up messages
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// Receive threads [default: usable cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Also measure what this script starts in our place (see bench/peers); may be repeated
    #[arg(long, value_name = "SCRIPT")]
    peer: Vec<PathBuf>,
    /// Cores of the load, the forwarder and the sink, such as 0/1-2/3 [default: as the scheduler likes]
    #[arg(long, value_name = "LISTS")]
    pin: Option<Pins>,
    /// Repeat each run this often
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: usize,
    /// Also write the machine and every run to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also write every run to this file, as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Options for `sluicegate run`, after `--`
    #[arg(last = true)]
    options: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    plan: Plan,
    offer: Offer,
    options: Vec<String>,
    outcomes: Vec<Outcome>,
    /// The highest rate without loss, where it was looked for.
    without_loss: Vec<(String, Option<u64>)>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    for (flag, value) in [("--rate", args.rate), ("--seconds", args.seconds), ("--runs", args.runs as u64)] {
        if value == 0 {
            return Err(Failure::usage(format!("{flag} 0 measures nothing: give 1 or more")));
        }
    }
    if let Some(missing) = args.peer.iter().find(|script| !script.is_file()) {
        let path = missing.display();
        return Err(Failure::usage(format!(
            "--peer {path} is no file: name a script such as bench/peers/rsyslog.sh"
        )));
    }
    let offer = Offer {
        rate: args.rate,
        seconds: args.seconds,
        size: args.size,
        flows: args.flows,
        corpus: args.corpus.clone(),
        workers: args.workers.unwrap_or_else(usable_cores),
        pins: args.pin.clone().unwrap_or_default(),
    };
    let mut report = Report {
        machine: Machine::here(),
        plan: args.plan,
        offer,
        options: args.options.clone(),
        outcomes: vec![],
        without_loss: vec![],
    };
    print(&table::heading(&report.machine, &report.offer))?;
    let ours = Forwarder::Sluicegate(args.options.clone());
    let peers = args
        .peer
        .iter()
        .map(|script| Forwarder::Peer(std::path::absolute(script).unwrap_or_else(|_| script.clone())));
    let forwarders: Vec<_> = [Forwarder::Discard, ours].into_iter().chain(peers).collect();
    measure(args, &forwarders, &mut report)?;
    print(&table::summary(&report.outcomes))?;
    for (name, rate) in &report.without_loss {
        let rate = rate.map_or_else(|| "none that was tried".to_owned(), grouped);
        print(&format!("{name}: no loss up to {rate} a second, for {} s", report.offer.seconds))?;
    }
    if let Some(path) = &args.report {
        write(path, &serde_json::to_vec_pretty(&report).map_err(Failure::failed)?)?;
    }
    if let Some(path) = &args.csv {
        write(path, table::csv(&report.outcomes).as_bytes())?;
    }
    Ok(())
}

/// The forwarders take turns, so that whatever else the machine does falls on all.
fn measure(args: &Args, forwarders: &[Forwarder], report: &mut Report) -> Result<(), Failure> {
    let offer = report.offer.clone();
    let mut seen = |outcome: Outcome| {
        print(&table::row(&outcome))?;
        report.outcomes.push(outcome);
        Ok::<_, Failure>(())
    };
    if args.plan == Plan::Sweep {
        for forwarder in forwarders {
            let rate = sweep(forwarder, &offer, &mut seen)?;
            report.without_loss.push((forwarder.name(), rate));
        }
        return Ok(());
    }
    for _ in 0..args.runs {
        for offer in args.plan.offers(&offer) {
            for forwarder in forwarders {
                seen(forwarder.measure(&offer)?)?;
            }
        }
    }
    Ok(())
}

impl From<StageError> for Failure {
    fn from(error: StageError) -> Self {
        Self::failed(error)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

#[derive(Debug, clap::Args)]
pub(super) struct DiscardArgs {
    /// Address and UDP port
    address: SocketAddr,
    /// Receive threads
    #[arg(long, value_name = "N", default_value_t = usable_cores())]
    workers: usize,
}

#[derive(Debug, Serialize)]
struct Discarded {
    received: u64,
    kernel_drops: u64,
}

pub(super) fn discard(args: &DiscardArgs) -> Result<(), Failure> {
    let listener = Listener { workers: args.workers, ..Listener::new(args.address) };
    let discard = Arc::new(Discard::open(&listener).map_err(Failure::failed)?);
    let threads: Vec<_> = (0..listener.workers)
        .map(|worker| {
            thread::spawn({
                let discard = Arc::clone(&discard);
                move || discard.run(worker)
            })
        })
        .collect();
    wait_for_signal()?;
    discard.stop().map_err(Failure::failed)?;
    let received = threads.into_iter().filter_map(|thread| thread.join().ok()).sum();
    print_json(&Discarded { received, kernel_drops: discard.kernel_drops() })
}

#[derive(Debug, clap::Args)]
pub(super) struct SinkArgs {
    /// Address and TCP port
    address: SocketAddr,
}

pub(super) fn lines(args: &SinkArgs) -> Result<(), Failure> {
    let counted = count_lines(args.address).map_err(|error| cannot_listen(args, &error))?;
    wait_for_signal()?;
    print_json(&counted())
}

pub(super) fn events(args: &SinkArgs) -> Result<(), Failure> {
    runtime()?.block_on(async {
        let counted = count_events(args.address).await.map_err(|error| cannot_listen(args, &error))?;
        Signals::listen()?.next().await;
        print_json(&counted())
    })
}

fn cannot_listen(args: &SinkArgs, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot listen on {}: {error}", args.address))
}

#[derive(Debug, clap::Args)]
pub(super) struct HotPathArgs {
    /// Messages
    count: usize,
    /// Parse them
    #[arg(long)]
    parse: bool,
}

pub(super) fn hot_path(args: &HotPathArgs) -> Result<(), Failure> {
    let mode = if args.parse { Mode::Syslog } else { Mode::None };
    let bytes = HotPath::new(mode).take(&HotPath::messages(mode), args.count);
    print(&bytes.to_string())
}

fn wait_for_signal() -> Result<(), Failure> {
    runtime()?.block_on(async {
        Signals::listen()?.next().await;
        Ok(())
    })
}
