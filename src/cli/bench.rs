//! `sluicegate bench`: what the pipeline costs here, beside what receiving alone costs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use serde::Serialize;

use super::{Failure, Signals, print, print_json, runtime, table::grouped};
use crate::bench::{self, Machine, Offer, Outcome};
use crate::config::{Listener, usable_cores};
use crate::receive::Discard;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
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
    /// Receive threads [default: usable cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Repeat each run this often
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: usize,
    /// Also write the machine and every run to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Options for `sluicegate run`, after `--`
    #[arg(last = true)]
    options: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    offer: Offer,
    options: Vec<String>,
    outcomes: Vec<Outcome>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    for (flag, value) in [("--rate", args.rate), ("--seconds", args.seconds), ("--runs", args.runs as u64)] {
        if value == 0 {
            return Err(Failure::usage(format!("{flag} 0 measures nothing: give 1 or more")));
        }
    }
    let offer = Offer {
        rate: args.rate,
        seconds: args.seconds,
        size: args.size,
        flows: args.flows,
        workers: args.workers.unwrap_or_else(usable_cores),
    };
    let mut report =
        Report { machine: Machine::here(), offer, options: args.options.clone(), outcomes: vec![] };
    print(&heading(&report))?;
    // The kinds take turns, so that whatever else the machine does falls on both.
    for _ in 0..args.runs {
        for outcome in [bench::discard(&offer), bench::pipeline(&offer, &args.options)] {
            let outcome = outcome.map_err(Failure::failed)?;
            print(&line(&outcome))?;
            report.outcomes.push(outcome);
        }
    }
    print(&ratio(&report))?;
    let Some(path) = &args.report else { return Ok(()) };
    let json = serde_json::to_vec_pretty(&report).map_err(Failure::failed)?;
    std::fs::write(path, json)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

fn heading(report: &Report) -> String {
    let (machine, offer) = (&report.machine, &report.offer);
    format!(
        "{} × {}, Linux {}, rmem_max {}\noffered {} a second of {} bytes for {} s, {} flow(s), {} workers\n\n\
         {:<22}{:>10}{:>9}{:>8}{:>9}{:>11}{:>11}{:>12}{:>10}",
        machine.cores,
        machine.cpu,
        machine.kernel,
        grouped(machine.rmem_max),
        grouped(offer.rate),
        offer.size,
        offer.seconds,
        offer.flows,
        offer.workers,
        "pipeline",
        "sent",
        "rate",
        "lost",
        "load µs",
        "forward µs",
        "receive µs",
        "RSS KiB",
        "faults/s"
    )
}

fn line(outcome: &Outcome) -> String {
    let receiver = outcome.receiver.map_or_else(|| "–".into(), |cost| format!("{:.2}", cost.cpu_us));
    format!(
        "{:<22}{:>10}{:>9}{:>8}{:>9.2}{:>11.2}{:>11}{:>12}{:>10.0}",
        outcome.pipeline,
        outcome.sent,
        outcome.rate,
        outcome.lost(),
        outcome.load_us,
        outcome.forwarder.cpu_us,
        receiver,
        outcome.forwarder.peak_rss_kib,
        outcome.forwarder.page_faults_per_second
    )
}

fn ratio(report: &Report) -> String {
    let median = |alone: bool| {
        let of_kind = report.outcomes.iter().filter(|outcome| outcome.receiver.is_none() == alone);
        let mut costs: Vec<_> = of_kind.map(|outcome| outcome.forwarder.cpu_us).collect();
        costs.sort_by(f64::total_cmp);
        costs.get(costs.len() / 2).copied().unwrap_or_default()
    };
    let (floor, ours) = (median(true), median(false));
    format!(
        "\nforwarding costs {:.2} times receiving alone ({ours:.2} against {floor:.2} µs, medians)",
        ours / floor
    )
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
    runtime()?.block_on(async {
        Signals::listen()?.next().await;
        Ok::<_, Failure>(())
    })?;
    discard.stop().map_err(Failure::failed)?;
    let received = threads.into_iter().filter_map(|thread| thread.join().ok()).sum();
    print_json(&Discarded { received, kernel_drops: discard.kernel_drops() })
}
