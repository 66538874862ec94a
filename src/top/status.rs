//! What the admin port tells: the JSON of `/status` and `/top`, and what the probes are told.
//!
//! A field that an older sluicegate does not have is absent, and shown as `-`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Counts by reason.
pub type ByReason = BTreeMap<String, u64>;

/// The state of a sluicegate at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// `/status`.
    pub status: Status,
    /// `/top`, where there is one.
    pub senders: Option<Senders>,
    /// `/livez`: why the process should be started again.
    pub live: Result<(), String>,
    /// `/readyz`: why it should get no more datagrams.
    pub ready: Result<(), String>,
}

/// `/status`. Counters are totals since the start of the process unless stated otherwise.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: Option<String>,
    /// Seconds since its start.
    pub uptime_secs: Option<f64>,
    /// Datagrams with a payload.
    pub received: u64,
    /// Bytes of those.
    pub received_bytes: u64,
    /// Events acknowledged by Vector.
    pub delivered: u64,
    /// Events refused by Vector for good.
    pub rejected: u64,
    /// Events given up on purpose.
    pub shed: u64,
    /// Events on disk, now.
    pub spooled: u64,
    /// Events between receipt and acknowledgement, now.
    pub in_memory: u64,
    /// Datagrams that the kernel dropped at our sockets.
    pub kernel_drops: u64,
    /// Datagrams that did not parse.
    pub parse_failures: u64,
    /// CPU time for each event, microseconds.
    pub cpu_us_per_event: Option<f64>,
    /// `shed` by reason.
    #[serde(default)]
    pub shed_by_reason: ByReason,
    /// `parse_failures` by reason.
    #[serde(default)]
    pub parse_failures_by_reason: ByReason,
    /// Batches closed, by what closed them.
    pub batches_by_reason: Option<ByReason>,
    /// Requests acknowledged.
    pub requests: Option<u64>,
    /// Requests tried again.
    pub retries: Option<u64>,
    /// Events that may have arrived twice.
    pub possible_duplicates: Option<u64>,
    /// What waits and what is on its way, now.
    pub queue: Option<Queue>,
    /// From a request's beginning to its acknowledgement.
    pub push_latency_secs: Option<Quantiles>,
    /// From the receipt of a datagram to its acknowledgement.
    pub receive_to_ack_secs: Option<Quantiles>,
    /// Where events go.
    pub endpoints: Option<Vec<Endpoint>>,
    /// What the whole host lost, since it was started.
    pub host: Option<Host>,
    /// Each worker's part.
    #[serde(default)]
    pub workers: Vec<Worker>,
}

/// The queue, now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Events that wait to be pushed.
    pub waiting_events: u64,
    /// Memory that they take, bytes.
    pub waiting_bytes: u64,
    /// Memory that they may take, bytes.
    pub limit_bytes: u64,
    /// Events pushed and not answered yet.
    pub in_flight_events: u64,
    /// Memory that those take, bytes.
    pub in_flight_bytes: u64,
}

/// Seconds; nothing where nothing was measured yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub struct Quantiles {
    /// Half took less.
    pub p50: Option<f64>,
    /// One in a hundred took longer.
    pub p99: Option<f64>,
}

/// A Vector.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// Its URL.
    pub endpoint: String,
    /// `connected`, `connecting` or `down`.
    pub state: String,
    /// Connections wanted.
    pub connections: u64,
    /// Connections that are up.
    pub connected: u64,
    /// Events that it acknowledged.
    pub delivered: u64,
    /// Connections and requests that failed.
    pub failures: u64,
    /// What the last failure was.
    pub last_error: Option<String>,
}

/// What the host lost, over all programs, since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Host {
    /// UdpRcvbufErrors (/proc/net/snmp).
    pub udp_rcvbuf_errors: u64,
    /// UdpMemErrors (/proc/net/snmp).
    pub udp_mem_errors: u64,
    /// Packets that did not fit a core's backlog (/proc/net/softnet_stat).
    pub softnet_dropped: u64,
}

/// One worker's part.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Worker {
    /// The listener's address.
    pub listener: String,
    /// Its number in the listener's group.
    pub worker: usize,
    /// How datagrams are dealt out there.
    pub steering: String,
    /// Datagrams with a payload.
    pub received: u64,
    /// Datagrams that the kernel dropped at its socket.
    pub kernel_drops: u64,
    /// Bytes that wait in its socket, as the kernel charges them, now.
    pub socket_queue_bytes: Option<u64>,
    /// What its socket can hold, bytes.
    pub buffer_bytes: Option<u64>,
}

/// `/top`: the heaviest senders, heaviest first.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Senders {
    /// By datagrams.
    pub by_messages: Vec<Sender>,
    /// By bytes.
    pub by_bytes: Vec<Sender>,
    /// By datagrams that did not parse.
    pub by_parse_failures: Vec<Sender>,
}

/// One sender.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Sender {
    /// Its address.
    pub sender: String,
    /// What is counted.
    pub count: u64,
    /// How much too high that may be.
    pub error: u64,
}
