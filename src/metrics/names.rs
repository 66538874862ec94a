//! Every metric, once: name, kind, meaning, labels, and where its samples come from.
//!
//! Names are `sluicegate_<room>_<noun>_<unit>_total`. Labels have closed sets of values: listeners and workers of the
//! configuration, and reasons from enums; never anything that a sender chooses.

use super::{Sample, Snapshot, get};
use crate::books::{Desk, Holder, Shed};
use crate::parse::ParseError;

/// A counter only grows; a gauge goes up and down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// One metric.
pub struct Metric {
    /// Its full name.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// What it tells, in a line.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    pub(super) samples: fn(&Snapshot<'_>) -> Vec<Sample>,
}

const WORKER: &[&str] = &["listener", "worker"];

const fn counter(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    samples: fn(&Snapshot<'_>) -> Vec<Sample>,
) -> Metric {
    Metric { name, kind: Kind::Counter, help, labels, samples }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    samples: fn(&Snapshot<'_>) -> Vec<Sample>,
) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels, samples }
}

/// Every metric, in the order in which they are shown.
pub const METRICS: &[Metric] = &[
    gauge("sluicegate_build_info", "Always 1; the version is a label", &["version"], |_| {
        vec![(vec![env!("CARGO_PKG_VERSION").to_owned()], 1.0)]
    }),
    counter("sluicegate_receive_datagrams_total", "Datagrams received that have a payload", WORKER, |s| {
        each_worker(s, |i, _| s.counts[i].received as f64)
    }),
    counter("sluicegate_receive_bytes_total", "Bytes of their payloads", WORKER, |s| {
        each_worker(s, |i, _| s.counts[i].received_bytes as f64)
    }),
    counter(
        "sluicegate_receive_empty_datagrams_total",
        "Datagrams without a payload, which are not sent on",
        WORKER,
        |s| each_worker(s, |i, _| s.counts[i].empty as f64),
    ),
    counter("sluicegate_receive_errors_total", "Reads of the socket that failed", WORKER, |s| {
        each_worker(s, |i, _| s.counts[i].receive_errors as f64)
    }),
    counter(
        "sluicegate_receive_kernel_drops_total",
        "Datagrams that the kernel dropped because the socket's buffer was full",
        WORKER,
        |s| each_worker(s, |_, desk| get(&desk.books.kernel_drops)),
    ),
    gauge(
        "sluicegate_receive_socket_queue_bytes",
        "Bytes that wait in the socket, as the kernel charges them",
        WORKER,
        |s| each_worker(s, |_, desk| get(&desk.books.socket_queue_bytes)),
    ),
    gauge(
        "sluicegate_receive_buffer_asked_bytes",
        "Receive buffer asked for, each socket",
        &["listener"],
        |s| each_listener(s, |i| s.buffers[i].asked as f64),
    ),
    gauge(
        "sluicegate_receive_buffer_granted_bytes",
        "Receive buffer granted by the kernel, each socket",
        &["listener"],
        |s| each_listener(s, |i| s.buffers[i].granted as f64),
    ),
    gauge(
        "sluicegate_receive_steering_info",
        "Always 1; the steering in force is a label",
        &["listener", "steering"],
        steering,
    ),
    counter(
        "sluicegate_parse_failures_total",
        "Datagrams that are no syslog message, by reason; kept unless on_error is drop",
        &["reason"],
        |s| {
            ParseError::ALL
                .map(|why| (vec![why.reason().to_owned()], sum(s, |c| c.parse_failures[why as usize])))
                .into()
        },
    ),
    counter(
        "sluicegate_parse_extra_events_total",
        "Events that a VRL program made beyond one a datagram",
        &[],
        |s| one(sum(s, |c| c.extra)),
    ),
    counter("sluicegate_batch_closed_total", "Batches closed", &[], |s| one(sum(s, |c| c.batches))),
    gauge("sluicegate_batch_open_events", "Events in batches that are being filled", &[], |s| {
        one(sum(s, |c| c.open))
    }),
    gauge("sluicegate_queue_waiting_events", "Events that wait to be pushed", &[], |s| {
        one(s.levels.waiting.events as f64)
    }),
    gauge("sluicegate_queue_waiting_bytes", "Memory of the batches that wait to be pushed", &[], |s| {
        one(s.levels.waiting.bytes as f64)
    }),
    gauge(
        "sluicegate_queue_limit_bytes",
        "Memory that waiting batches may take (buffer.max_bytes)",
        &[],
        |s| one(s.config.buffer.max_bytes as f64),
    ),
    gauge("sluicegate_queue_in_flight_events", "Events pushed and not answered yet", &[], |s| {
        one(s.levels.in_flight.events as f64)
    }),
    counter("sluicegate_shed_events_total", "Events given up on purpose, by reason", &["reason"], shed),
    counter("sluicegate_push_delivered_events_total", "Events acknowledged by Vector", &[], |s| {
        one(get(&s.books.push.delivered))
    }),
    counter("sluicegate_push_rejected_events_total", "Events refused by Vector for good", &[], |s| {
        one(get(&s.books.push.rejected))
    }),
    counter("sluicegate_push_requests_total", "Requests acknowledged", &[], |s| {
        one(get(&s.books.push.requests))
    }),
    counter("sluicegate_push_retries_total", "Requests that failed and were tried again", &[], |s| {
        one(get(&s.books.push.retries))
    }),
    counter(
        "sluicegate_push_possible_duplicates_events_total",
        "Events sent again after no answer or a failure, which may have arrived twice",
        &[],
        |s| one(get(&s.books.push.possible_duplicates)),
    ),
    gauge(
        "sluicegate_push_certificate_expiry_seconds",
        "Unix time at which a TLS certificate expires: this side's, or of the servers' the first, as last seen",
        &["which"],
        |s| {
            let expiry = |holder: Holder| {
                let expires = s.books.push.certificates.earliest(holder)?;
                Some((vec![holder.name().to_owned()], expires.timestamp() as f64))
            };
            Holder::ALL.into_iter().filter_map(expiry).collect()
        },
    ),
    counter(
        "sluicegate_host_udp_receive_buffer_errors_total",
        "UdpRcvbufErrors of this network namespace, all sockets",
        &[],
        |s| one(s.host.udp_rcvbuf_errors as f64),
    ),
    counter(
        "sluicegate_host_udp_memory_errors_total",
        "UdpMemErrors of this network namespace: net.ipv4.udp_mem is too small",
        &[],
        |s| one(s.host.udp_mem_errors as f64),
    ),
    counter(
        "sluicegate_host_softnet_dropped_total",
        "Packets dropped before any socket, all cores: net.core.netdev_max_backlog is too small",
        &[],
        |s| one(s.host.softnet_dropped as f64),
    ),
    counter("sluicegate_process_cpu_seconds_total", "CPU time of the process, user and system", &[], |s| {
        one(s.cpu_seconds)
    }),
    gauge("sluicegate_process_resident_memory_bytes", "Resident memory of the process", &[], |s| {
        one(s.resident_bytes as f64)
    }),
];

fn one(value: f64) -> Vec<Sample> {
    vec![(Vec::new(), value)]
}

fn sum(snapshot: &Snapshot<'_>, of: impl Fn(&crate::books::Count) -> u64) -> f64 {
    snapshot.counts.iter().map(of).sum::<u64>() as f64
}

fn each_worker(snapshot: &Snapshot<'_>, value: impl Fn(usize, &Desk) -> f64) -> Vec<Sample> {
    let labels = |desk: &Desk| vec![desk.listener.to_string(), desk.worker.to_string()];
    snapshot.books.desks.iter().enumerate().map(|(i, desk)| (labels(desk), value(i, desk))).collect()
}

fn each_listener(snapshot: &Snapshot<'_>, value: impl Fn(usize) -> f64) -> Vec<Sample> {
    let listeners = snapshot.config.listeners.iter().enumerate();
    listeners.map(|(i, listener)| (vec![listener.address.to_string()], value(i))).collect()
}

fn steering(snapshot: &Snapshot<'_>) -> Vec<Sample> {
    let first = snapshot.books.desks.iter().filter(|desk| desk.worker == 0);
    let name = |desk: &Desk| format!("{:?}", desk.steering).to_lowercase();
    first.map(|desk| (vec![desk.listener.to_string(), name(desk)], 1.0)).collect()
}

fn shed(snapshot: &Snapshot<'_>) -> Vec<Sample> {
    let of = |why: Shed| {
        let late = if why == Shed::Shutdown { get(&snapshot.books.left_at_shutdown) } else { 0.0 };
        (vec![why.reason().to_owned()], sum(snapshot, |c| c.shed[why as usize]) + late)
    };
    Shed::ALL.map(of).into()
}
