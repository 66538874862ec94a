//! Every metric, once: name, kind, meaning, labels, and where its samples come from.
//!
//! Names are `sluicegate_<room>_<noun>_<unit>_total`. Labels have closed sets of values: listeners and workers of the
//! configuration, and reasons from enums; never anything that a sender chooses.

use std::sync::atomic::Ordering::Relaxed;

use super::{Sample, Snapshot, get};
use crate::batch::Closed;
use crate::books::{
    Desk, Distribution, EndpointReport, EndpointState, Histogram, Holder, Rejected, Shed, WorkerBooks,
    histogram::{self, Scale},
};
use crate::parse::ParseError;
use crate::push::status_name;
use crate::spool::Spool;

/// A counter only grows; a gauge goes up and down; a histogram counts by size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It counts values by size.
    Histogram,
}

impl Kind {
    /// Prometheus' word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Where a metric's samples come from.
pub(super) enum Source {
    Numbers(fn(&Snapshot<'_>) -> Vec<Sample>),
    Distribution(fn(&Snapshot<'_>) -> Distribution),
}

/// One metric.
pub struct Metric {
    /// Its full name.
    pub name: &'static str,
    /// What kind it is.
    pub kind: Kind,
    /// What it tells, in a line.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    pub(super) source: Source,
}

const WORKER: &[&str] = &["listener", "worker"];
const ENDPOINT: &[&str] = &["endpoint"];

const fn counter(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    samples: fn(&Snapshot<'_>) -> Vec<Sample>,
) -> Metric {
    Metric { name, kind: Kind::Counter, help, labels, source: Source::Numbers(samples) }
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    samples: fn(&Snapshot<'_>) -> Vec<Sample>,
) -> Metric {
    Metric { name, kind: Kind::Gauge, help, labels, source: Source::Numbers(samples) }
}

const fn histogram(
    name: &'static str,
    help: &'static str,
    distribution: fn(&Snapshot<'_>) -> Distribution,
) -> Metric {
    Metric { name, kind: Kind::Histogram, help, labels: &[], source: Source::Distribution(distribution) }
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
    gauge(
        "sluicegate_receive_threads",
        "Threads that read the listener's sockets at the moment: as many as the load needs",
        &["listener"],
        threads,
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
    counter("sluicegate_batch_closed_total", "Batches closed, by what closed them", &["reason"], |s| {
        Closed::ALL.map(|why| (vec![why.reason().to_owned()], sum(s, |c| c.batches[why as usize]))).into()
    }),
    histogram("sluicegate_batch_events", "Events of each batch", |s| {
        over_workers(s, histogram::EVENTS, |books| &books.batch_events)
    }),
    histogram("sluicegate_batch_bytes", "Bytes of each batch", |s| {
        over_workers(s, histogram::BYTES, |books| &books.batch_bytes)
    }),
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
    gauge("sluicegate_spool_events", "Events that wait on disk", &[], |s| {
        of_spool(s, |spool| spool.level().events)
    }),
    gauge("sluicegate_spool_bytes", "Disk that batches take", &[], |s| {
        of_spool(s, |spool| spool.level().bytes)
    }),
    gauge("sluicegate_spool_limit_bytes", "Disk that batches may take (buffer.max_disk_bytes)", &[], |s| {
        of_spool(s, |spool| spool.max_bytes())
    }),
    counter(
        "sluicegate_spool_recovered_events_total",
        "Events that an earlier process left on disk",
        &[],
        |s| of_spool(s, |spool| spool.recovered()),
    ),
    counter("sluicegate_shed_events_total", "Events given up on purpose, by reason", &["reason"], shed),
    gauge(
        "sluicegate_queue_in_flight_bytes",
        "Memory of the batches that are pushed and not answered yet",
        &[],
        |s| one(s.levels.in_flight.bytes as f64),
    ),
    counter("sluicegate_push_delivered_events_total", "Events acknowledged by Vector", &[], |s| {
        one(get(&s.books.push.delivered))
    }),
    counter(
        "sluicegate_push_rejected_events_total",
        "Events refused by Vector for good, by reason",
        &["reason"],
        |s| {
            Rejected::ALL
                .map(|why| (vec![why.reason().to_owned()], get(&s.books.push.rejected[why as usize])))
                .into()
        },
    ),
    counter(
        "sluicegate_push_dead_lettered_events_total",
        "Rejected events that are in the dead-letter file",
        &[],
        |s| one(get(&s.books.push.dead_letters.written)),
    ),
    counter(
        "sluicegate_push_dead_letters_lost_events_total",
        "Rejected events that are not in the dead-letter file: it was full, could not be written, or was too slow",
        &["reason"],
        |s| s.books.push.dead_letters.lost().map(|(why, events)| (vec![why.to_owned()], get(events))).into(),
    ),
    counter("sluicegate_push_requests_total", "Requests acknowledged", &[], |s| {
        one(get(&s.books.push.requests))
    }),
    counter("sluicegate_push_sent_bytes_total", "Bytes of requests, compressed or not", &[], |s| {
        one(get(&s.books.push.sent_bytes))
    }),
    counter("sluicegate_push_answers_total", "Answers of Vector's, by gRPC status", &["code"], |s| {
        let answers = s.books.push.answers.iter().enumerate();
        answers.map(|(code, count)| (vec![status_name((code as i32).into())], get(count))).collect()
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
    histogram("sluicegate_push_latency_seconds", "From a request to its acknowledgement", |s| {
        s.books.push.latency.read()
    }),
    histogram(
        "sluicegate_push_receive_to_acknowledgement_seconds",
        "From the kernel's receipt of a batch's first datagram to the batch's acknowledgement",
        |s| s.books.push.age.read(),
    ),
    gauge(
        "sluicegate_push_endpoint_up",
        "1 while at least one connection to the endpoint is up, else 0",
        ENDPOINT,
        |s| each_endpoint(s, |endpoint| f64::from(endpoint.state == EndpointState::Connected)),
    ),
    gauge("sluicegate_push_endpoint_connections", "Connections to the endpoint that are up", ENDPOINT, |s| {
        each_endpoint(s, |endpoint| endpoint.connected as f64)
    }),
    counter(
        "sluicegate_push_endpoint_delivered_events_total",
        "Events acknowledged by the endpoint",
        ENDPOINT,
        |s| each_endpoint(s, |endpoint| endpoint.delivered as f64),
    ),
    gauge(
        "sluicegate_push_endpoint_compression_refused",
        "1 when the endpoint gets requests uncompressed because it refused compressed ones, else 0",
        ENDPOINT,
        |s| each_endpoint(s, |endpoint| f64::from(u8::from(endpoint.compression_refused))),
    ),
    counter(
        "sluicegate_push_endpoint_failures_total",
        "Connections and requests to the endpoint that failed",
        ENDPOINT,
        |s| each_endpoint(s, |endpoint| endpoint.failures as f64),
    ),
    counter(
        "sluicegate_self_metrics_events_total",
        "Metric events of our own, sent to Vector where self_metrics is true",
        &[],
        |s| one(get(&s.books.self_metrics)),
    ),
    counter("sluicegate_config_reloads_total", "Reloads by SIGHUP, by result", &["result"], |s| {
        vec![
            (vec!["applied".to_owned()], get(&s.books.reloads.applied)),
            (vec!["refused".to_owned()], get(&s.books.reloads.refused)),
        ]
    }),
    gauge(
        "sluicegate_config_last_reload_refused",
        "1 when the last reload was refused and an older configuration is in force, else 0",
        &[],
        |s| one(get(&s.books.reloads.last_refused)),
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

/// A figure of the spool; 0 where there is none.
fn of_spool(snapshot: &Snapshot<'_>, figure: impl Fn(&Spool) -> u64) -> Vec<Sample> {
    one(snapshot.books.spool.get().map_or(0, |spool| figure(spool)) as f64)
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

fn each_endpoint(snapshot: &Snapshot<'_>, value: impl Fn(&EndpointReport) -> f64) -> Vec<Sample> {
    let sample = |endpoint: &EndpointReport| (vec![endpoint.endpoint.clone()], value(endpoint));
    snapshot.endpoints.iter().map(sample).collect()
}

fn over_workers(
    snapshot: &Snapshot<'_>,
    scale: Scale,
    of: impl Fn(&WorkerBooks) -> &Histogram,
) -> Distribution {
    let all = Histogram::new(scale).read();
    snapshot.books.desks.iter().fold(all, |all, desk| all.merged(&of(&desk.books).read()))
}

fn steering(snapshot: &Snapshot<'_>) -> Vec<Sample> {
    let first = snapshot.books.desks.iter().filter(|desk| desk.worker == 0);
    let name = |desk: &Desk| format!("{:?}", desk.steering).to_lowercase();
    first.map(|desk| (vec![desk.listener.to_string(), name(desk)], 1.0)).collect()
}

fn threads(snapshot: &Snapshot<'_>) -> Vec<Sample> {
    each_listener(snapshot, |i| {
        let address = snapshot.config.listeners[i].address;
        let desks = snapshot.books.desks.iter().filter(|desk| desk.listener == address);
        desks.filter(|desk| desk.books.has_thread.load(Relaxed)).count() as f64
    })
}

fn shed(snapshot: &Snapshot<'_>) -> Vec<Sample> {
    let of = |why: Shed| {
        let elsewhere = snapshot.books.shed_elsewhere(why) as f64;
        (vec![why.reason().to_owned()], sum(snapshot, |c| c.shed[why as usize]) + elsewhere)
    };
    Shed::ALL.map(of).into()
}
