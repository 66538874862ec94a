//! `sluicegate demo`: load, sidecar and receiver in one process, ending with the books.

use std::future::pending;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use super::flags::{Flags, Inner};
use super::table::{grouped, percent, row};
use super::{Failure, admin_port, load, print, runtime};
use crate::books::{Report, per_event, process_cpu_us};
use crate::config::{Endpoint, units};
use crate::load::{Load, Sent, Until};
use crate::pipeline::Pipeline;
use crate::receiver::{self, Counter, Received};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Messages a second
    #[arg(long, value_name = "N", default_value_t = 60_000.0)]
    rate: f64,
    /// How long to send
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
    seconds: Duration,
    /// Bytes of each message
    #[arg(long, value_name = "BYTES", default_value_t = 1_100)]
    size: usize,
    #[command(flatten)]
    flags: Flags<Inner>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let runtime = runtime()?;
    let result = runtime.block_on(demonstrate(args));
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

async fn demonstrate(args: &Args) -> Result<(), Failure> {
    let failed =
        |error: io::Error| Failure::failed(format!("the demo needs free ports on 127.0.0.1: {error}"));
    let listener = receiver::bind("127.0.0.1:0").await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let address = free_udp_address().map_err(failed)?;
    let load = Load {
        target: address,
        rate: Some(args.rate),
        until: Until::Elapsed(args.seconds),
        size: args.size,
        flows: 1,
        seed: fastrand::u64(..),
        corpus: None,
        segment: true,
    };
    let load = load.checked().map_err(Failure::usage)?;
    let endpoint = Endpoint::here(port);
    let config = args.flags.config_between(Some(address), endpoint)?;

    let counter = Arc::new(Counter::default());
    let serving = tokio::spawn(receiver::serve(listener, Arc::clone(&counter), pending()));
    let port = admin_port::bind(&config, None)?;
    let pipeline = Pipeline::start(&config).map_err(Failure::failed)?;
    let _admin = port.and_then(|port| admin_port::serve(port, &pipeline));
    print(&format!(
        "\none flow (one address, one port) of {} messages a second, {} bytes each, for {} s …\n",
        grouped(args.rate as u64),
        grouped(args.size as u64),
        args.seconds.as_secs_f64()
    ))?;
    let cpu = process_cpu_us();
    let sent = load::send(load).await?;
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    let cpu = per_event(process_cpu_us() - cpu, sent.sent);
    serving.abort();
    print(&table(&sent, &report, &counter.received(), cpu))
}

/// A port that is free now; the pipeline says so if somebody takes it meanwhile.
fn free_udp_address() -> io::Result<SocketAddr> {
    UdpSocket::bind("127.0.0.1:0")?.local_addr()
}

fn table(sent: &Sent, report: &Report, received: &Received, cpu: f64) -> String {
    let unique = received.numbers.map_or(0, |numbers| numbers.unique);
    let lost = sent.sent - unique.min(sent.sent);
    let mut lines = vec![
        row("sent", sent.sent, &format!("{} a second", grouped(sent.rate as u64))),
        row("dropped by the kernel", report.kernel_drops, kernel_remark(report)),
        row("received", report.received, "by sluicegate, of which"),
    ];
    for worker in &report.workers {
        let share = format!("{:.1} %", percent(worker.received, report.received));
        lines.push(row(&format!("  worker {}", worker.worker), worker.received, &share));
    }
    lines.extend([
        row("delivered", report.delivered, "acknowledged by the receiver"),
        row("rejected", report.rejected, ""),
        row("shed", report.shed, &reasons(report)),
        row("in memory", report.in_memory, ""),
        row("arrived, each counted once", unique, "at the receiver"),
        String::new(),
        row("lost", lost, if lost == 0 { "every message sent has arrived" } else { "see where above" }),
        String::new(),
        format!("  CPU: {cpu:.2} µs a message, for load, sidecar and receiver together"),
        match report.balances() {
            true => "  The books balance: received = delivered + rejected + shed + in memory.".to_owned(),
            false => "  THE BOOKS DO NOT BALANCE: this is a bug, please report it.".to_owned(),
        },
    ]);
    lines.join("\n")
}

fn reasons(report: &Report) -> String {
    let some = report.shed_by_reason.iter().filter(|(_, events)| **events > 0);
    some.map(|(why, events)| format!("{why}: {events}")).collect::<Vec<_>>().join(", ")
}

fn kernel_remark(report: &Report) -> &'static str {
    match report.kernel_drops {
        0 => "",
        _ => "its buffer was too small: raise net.core.rmem_max, or lower --rate",
    }
}
