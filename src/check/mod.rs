//! Would `run` with this configuration do well on this host, and if not, what mends it?
//!
//! In: a [`Config`], or what is wrong with one. Out: a [`Report`]. Each area has a file: a thin reader of /proc, /sys or
//! sockets makes facts, and a pure judge makes findings of them. Nothing on the machine is changed, a running sluicegate
//! is not disturbed, and only with `send` does anything leave that Vector would take for an event.

mod buffers;
mod cgroup;
mod configuration;
mod cores;
mod counters;
mod dial;
mod disk;
mod endpoints;
mod finding;
mod holder;
mod kernel;
mod memory;
mod nic;
mod port;
mod steering;

pub use configuration::mistakes;
pub use finding::{Finding, Level, Report};

use std::io;
use std::panic::resume_unwind;

use chrono::Utc;

use crate::config::Config;

/// Every finding's name. They stay: scripts rely on them.
pub const IDS: &[&str] = &[
    "config",
    "cores",
    "memory",
    "data_dir",
    "nic",
    "nic_drops",
    "nic_queues",
    "rp_filter",
    "udp_rcvbuf_errors",
    "udp_mem_errors",
    "softnet_dropped",
    "softnet_squeezed",
    "port",
    "steering",
    "receive_buffer",
    "udp_mem",
    "admin",
    "endpoint.resolve",
    "endpoint.connect",
    "endpoint.tls",
    "endpoint.health",
    "endpoint.send",
];

/// Looks at everything, in ten seconds at the most; with `send`, pushes a test event to each endpoint. Call it on a
/// runtime with several threads.
///
/// # Errors
/// When the machine is out of sockets.
pub async fn check(config: &Config, send: bool) -> io::Result<Report> {
    // The network answers while the host is looked at.
    let looking = tokio::spawn(dial::look(config.vector.clone(), send));
    let mut findings = host(config)?;
    let now = Utc::now();
    let looked = looking.await.unwrap_or_else(|error| resume_unwind(error.into_panic()));
    findings.extend(looked.iter().flat_map(|facts| endpoints::judge(facts, now)));
    Ok(Report::new(findings))
}

fn host(config: &Config) -> io::Result<Vec<Finding>> {
    let limits = cgroup::Limits::read();
    let buffers = buffers::Facts::read(config)?;
    let admin = port::read_admin(config.admin);
    let (interfaces, cores) = nic::read();
    let mut findings = vec![
        configuration::judge(config),
        cores::judge(&cores::Facts::read(config, limits.cores)),
        memory::judge(&memory::Facts::read(config, buffers.bytes(), limits.memory)),
    ];
    findings.extend(disk::Facts::read(config).as_ref().map(disk::judge));
    findings.extend(nic::judge(&interfaces, cores));
    findings.extend(counters::judge(&counters::Facts::read()));
    findings
        .extend(port::read(&config.listeners).iter().map(|(address, bound)| port::judge(*address, bound)));
    findings.extend(
        config
            .listeners
            .iter()
            .map(|listener| steering::judge(listener.address, steering::read(listener).as_ref())),
    );
    findings.extend(buffers::judge(&buffers));
    findings.push(port::judge_admin(config.admin, admin.as_ref()));
    Ok(findings)
}
