//! The books as people and scripts read them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::{Books, Count, Distribution, EndpointReport, Rejected, Shed};
use crate::batch::Closed;
use crate::config::Steering;
use crate::parse::ParseError;
use crate::queue::Levels;

/// The last line of `run`, and the body of its log line every ten seconds.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Datagrams with a payload, each an event.
    pub received: u64,
    /// Events acknowledged by Vector.
    pub delivered: u64,
    /// Events refused by Vector for good.
    pub rejected: u64,
    /// Events given up on purpose, by reason below.
    pub shed: u64,
    /// Events on disk.
    pub spooled: u64,
    /// Events between receipt and acknowledgement.
    pub in_memory: u64,
    /// Datagrams that the kernel dropped before they could be received.
    pub kernel_drops: u64,
    /// Events whose message could not be parsed.
    pub parse_failures: u64,
    /// Bytes of the datagrams received.
    pub received_bytes: u64,
    /// CPU time of the whole process for each event received, microseconds.
    pub cpu_us_per_event: f64,
    /// Datagrams without a payload; not in `received`.
    pub empty: u64,
    /// Events that an earlier process left on disk; not in `received`.
    pub recovered: u64,
    /// Events that a program made beyond the one of each datagram, and metric events of our own.
    pub extra: u64,
    /// `parse_failures` by reason.
    pub parse_failures_by_reason: BTreeMap<&'static str, u64>,
    /// `rejected` by reason.
    pub rejected_by_reason: BTreeMap<&'static str, u64>,
    /// Rejected events that are in the dead-letter file.
    pub dead_lettered: u64,
    /// Rejected events that should be there and are not: it was full, or could not be written.
    pub dead_letters_lost: u64,
    /// `shed` by reason.
    pub shed_by_reason: BTreeMap<&'static str, u64>,
    /// Batches closed.
    pub batches: u64,
    /// `batches` by what closed them.
    pub batches_by_reason: BTreeMap<&'static str, u64>,
    /// Requests acknowledged.
    pub requests: u64,
    /// Requests that failed and were tried again.
    pub retries: u64,
    /// Events that may have arrived twice, because a request got no answer.
    pub possible_duplicates: u64,
    /// Reads that failed.
    pub receive_errors: u64,
    /// From a request to its acknowledgement.
    pub push_latency_secs: Quantiles,
    /// From the receipt of a batch's first datagram to the batch's acknowledgement.
    pub receive_to_ack_secs: Quantiles,
    /// Each endpoint's part.
    pub endpoints: Vec<EndpointReport>,
    /// Each worker's part.
    pub workers: Vec<WorkerReport>,
}

/// What half of all, and what 99 of 100, are not above; none where there were none.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
}

impl From<&Distribution> for Quantiles {
    fn from(distribution: &Distribution) -> Self {
        Self { p50: distribution.quantile(0.5), p99: distribution.quantile(0.99) }
    }
}

/// One worker's part of a [`Report`].
#[derive(Debug, Clone, Serialize)]
pub struct WorkerReport {
    /// The listener's address.
    pub listener: String,
    /// Its number in the listener's group.
    pub worker: usize,
    /// The steering in force.
    pub steering: Steering,
    /// Datagrams with a payload.
    pub received: u64,
    /// Datagrams that the kernel dropped at its socket.
    pub kernel_drops: u64,
    /// Bytes that wait in its socket, as the kernel charges them.
    pub socket_queue_bytes: u64,
    /// Bytes that may wait there.
    pub buffer_bytes: usize,
}

impl Books {
    /// The state of everything, given what the queue holds.
    pub fn report(&self, levels: Levels) -> Report {
        let get = |cell: &AtomicU64| cell.load(Relaxed);
        let counts: Vec<_> = self.desks.iter().map(|desk| desk.books.read()).collect();
        let sum = |of: &dyn Fn(&Count) -> u64| counts.iter().map(of).sum::<u64>();
        let shed = |why: Shed| sum(&|c| c.shed[why as usize]) + self.shed_elsewhere(why);
        let shed_by_reason: BTreeMap<_, _> = Shed::ALL.map(|why| (why.reason(), shed(why))).into();
        let rejected_by_reason: BTreeMap<_, _> =
            Rejected::ALL.map(|why| (why.reason(), get(&self.push.rejected[why as usize]))).into();
        let parse_failures_by_reason: BTreeMap<_, _> =
            ParseError::ALL.map(|why| (why.reason(), sum(&|c| c.parse_failures[why as usize]))).into();
        let batches_by_reason: BTreeMap<_, _> =
            Closed::ALL.map(|why| (why.reason(), sum(&|c| c.batches[why as usize]))).into();
        let received = sum(&|c| c.received);
        Report {
            received,
            delivered: get(&self.push.delivered),
            rejected: rejected_by_reason.values().sum(),
            shed: shed_by_reason.values().sum(),
            spooled: self.spool.get().map_or(0, |spool| spool.level().events),
            recovered: self.spool.get().map_or(0, |spool| spool.recovered()),
            in_memory: sum(&|c| c.open) + levels.waiting.events + levels.in_flight.events,
            kernel_drops: self.desks.iter().map(|desk| get(&desk.books.kernel_drops)).sum(),
            parse_failures: parse_failures_by_reason.values().sum(),
            received_bytes: sum(&|c| c.received_bytes),
            cpu_us_per_event: per_event(process_cpu_us(), received),
            empty: sum(&|c| c.empty),
            extra: sum(&|c| c.extra) + get(&self.self_metrics),
            parse_failures_by_reason,
            rejected_by_reason,
            dead_lettered: get(&self.push.dead_letters.written),
            dead_letters_lost: self.push.dead_letters.lost().iter().map(|(_, events)| get(events)).sum(),
            shed_by_reason,
            batches: batches_by_reason.values().sum(),
            batches_by_reason,
            requests: get(&self.push.requests),
            retries: get(&self.push.retries),
            possible_duplicates: get(&self.push.possible_duplicates),
            receive_errors: sum(&|c| c.receive_errors),
            push_latency_secs: Quantiles::from(&self.push.latency.read()),
            receive_to_ack_secs: Quantiles::from(&self.push.age.read()),
            endpoints: self.push.endpoints(),
            workers: self.workers(),
        }
    }

    fn workers(&self) -> Vec<WorkerReport> {
        let one = |desk: &super::Desk| WorkerReport {
            listener: desk.listener.to_string(),
            worker: desk.worker,
            steering: desk.steering,
            received: desk.books.read().received,
            kernel_drops: desk.books.kernel_drops.load(Relaxed),
            socket_queue_bytes: desk.books.socket_queue_bytes.load(Relaxed),
            buffer_bytes: desk.buffer_bytes,
        };
        self.desks.iter().map(one).collect()
    }
}

impl Report {
    /// True when every event is accounted for.
    pub fn balances(&self) -> bool {
        self.received + self.recovered + self.extra
            == self.delivered + self.rejected + self.shed + self.spooled + self.in_memory
    }
}

/// CPU time that the process has used, user and system, microseconds (clock_gettime(2)).
pub fn process_cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Microseconds for each of `events`, rounded to the nanosecond; 0 where there were none.
pub fn per_event(microseconds: f64, events: u64) -> f64 {
    if events == 0 { 0.0 } else { (microseconds / events as f64 * 1e3).round() / 1e3 }
}
