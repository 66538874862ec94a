//! The books: received = delivered + rejected + shed + spooled + in memory, always and exactly.
//!
//! In: counts from workers and pushers. Out: a [`Report`]. Each worker counts in plain integers of its own and
//! publishes them once a read, so the hot path touches no shared cache line and no locked instruction.

mod certificates;
mod counted;
mod endpoint;
pub mod histogram;
mod rejected;
mod report;
mod senders;

pub use certificates::{Certificates, Holder};
pub use counted::Counted;
pub use endpoint::{EndpointBooks, EndpointReport, EndpointState};
pub use histogram::{Distribution, Histogram};
pub use rejected::{DeadLetterBooks, Rejected};
pub use report::{Report, WorkerReport, per_event, process_cpu_us};
pub use senders::{Heavy, Run, Senders, Top};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use crate::batch::Closed;
use crate::config::Steering;
use crate::parse::{Made, ParseError};
use crate::spool::Place;

/// Why an event was given up on purpose; a closed set, fit for a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shed {
    /// The queue was full and `when_full` is `drop_newest`.
    QueueFull,
    /// The datagram was longer than `max_length`.
    TooLong,
    /// Not acknowledged when the shutdown deadline passed. It may have arrived all the same.
    Shutdown,
    /// It did not parse and `on_error` is `drop`.
    ParseError,
    /// The VRL program aborted, or made no event of it.
    Program,
    /// In the hands of a worker that panicked.
    Internal,
    /// The queue was full, and so was the disk: `max_disk_bytes`.
    SpoolFull,
    /// The queue was full, and the disk failed.
    SpoolFailed,
    /// A file on disk was damaged.
    SpoolDamaged,
    /// The sender is not in the listener's `permit_origin`.
    NotPermitted,
    /// The sender sends more than `rate_limit` lets it.
    RateLimited,
}

impl Shed {
    /// Every reason, in the order of its counters.
    pub const ALL: [Self; 11] = [
        Self::QueueFull,
        Self::TooLong,
        Self::Shutdown,
        Self::ParseError,
        Self::Program,
        Self::Internal,
        Self::SpoolFull,
        Self::SpoolFailed,
        Self::SpoolDamaged,
        Self::NotPermitted,
        Self::RateLimited,
    ];

    /// The reason's name in reports and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::TooLong => "too_long",
            Self::Shutdown => "shutdown",
            Self::ParseError => "parse_error",
            Self::Program => "program",
            Self::Internal => "internal",
            Self::SpoolFull => "spool_full",
            Self::SpoolFailed => "spool_failed",
            Self::SpoolDamaged => "spool_damaged",
            Self::NotPermitted => "not_permitted",
            Self::RateLimited => "rate_limited",
        }
    }
}

/// One worker's running totals, in its own hands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Datagrams with a payload.
    pub received: u64,
    /// Bytes of those payloads.
    pub received_bytes: u64,
    /// Datagrams without a payload: legal, and nothing to send.
    pub empty: u64,
    /// Events that a program made beyond the one of each datagram.
    pub extra: u64,
    /// Events given up, by [`Shed`].
    pub shed: [u64; Shed::ALL.len()],
    /// Datagrams that did not parse, by [`ParseError`]; most are kept.
    pub parse_failures: [u64; ParseError::ALL.len()],
    /// Events in the worker's hands: in its open batch, or in one that waits for room in the queue.
    pub open: u64,
    /// Batches closed, by [`Closed`].
    pub batches: [u64; Closed::ALL.len()],
    /// Reads that failed.
    pub receive_errors: u64,
    /// Reads.
    pub reads: u64,
}

impl Count {
    /// Counts what came of a datagram, which is `events` events.
    #[inline]
    pub fn note(&mut self, made: &Made, events: u64) {
        self.extra += events.saturating_sub(1);
        if let Some(error) = made.error {
            self.parse_failures[error as usize] += 1;
        }
        if let Some(why) = made.shed {
            self.shed(why, 1);
        }
    }

    /// Counts `events` as shed.
    pub fn shed(&mut self, why: Shed, events: u64) {
        self.shed[why as usize] += events;
    }
}

/// A [`Count`] that others may read, and what the kernel says of the worker's socket.
#[derive(Debug)]
#[repr(align(128))] // a cache line and its neighbour: no worker's stores slow another's
pub struct WorkerBooks {
    received: AtomicU64,
    received_bytes: AtomicU64,
    empty: AtomicU64,
    extra: AtomicU64,
    shed: [AtomicU64; Shed::ALL.len()],
    parse_failures: [AtomicU64; ParseError::ALL.len()],
    open: AtomicU64,
    batches: [AtomicU64; Closed::ALL.len()],
    receive_errors: AtomicU64,
    reads: AtomicU64,
    /// Batches of the worker, or in its thread's hands, that wait for room in the queue.
    pub waiting: AtomicU64,
    /// True while the worker's own thread reads, and not another for it.
    pub has_thread: AtomicBool,
    /// True once the worker has panicked.
    pub gone: AtomicBool,
    /// Datagrams that the kernel dropped at the socket.
    pub kernel_drops: AtomicU64,
    /// Bytes that wait in the socket, as charged by the kernel.
    pub socket_queue_bytes: AtomicU64,
    /// Events of each batch closed.
    pub batch_events: Histogram,
    /// Bytes of each batch closed.
    pub batch_bytes: Histogram,
    /// Who sends most.
    pub senders: Senders,
}

impl WorkerBooks {
    /// Empty books that show up to `top_senders` senders.
    pub fn new(top_senders: usize) -> Self {
        Self {
            received: AtomicU64::default(),
            received_bytes: AtomicU64::default(),
            empty: AtomicU64::default(),
            extra: AtomicU64::default(),
            shed: Default::default(),
            parse_failures: Default::default(),
            open: AtomicU64::default(),
            batches: Default::default(),
            receive_errors: AtomicU64::default(),
            reads: AtomicU64::default(),
            waiting: AtomicU64::default(),
            has_thread: AtomicBool::default(),
            gone: AtomicBool::default(),
            kernel_drops: AtomicU64::default(),
            socket_queue_bytes: AtomicU64::default(),
            batch_events: Histogram::new(histogram::EVENTS),
            batch_bytes: Histogram::new(histogram::BYTES),
            senders: Senders::new(top_senders),
        }
    }

    /// Makes the worker's totals visible. Only the worker calls it: plain stores are enough.
    pub fn publish(&self, count: &Count) {
        self.received.store(count.received, Relaxed);
        self.received_bytes.store(count.received_bytes, Relaxed);
        self.empty.store(count.empty, Relaxed);
        self.extra.store(count.extra, Relaxed);
        let store = |cells: &[AtomicU64], values: &[u64]| {
            cells.iter().zip(values).for_each(|(cell, value)| cell.store(*value, Relaxed));
        };
        store(&self.shed, &count.shed);
        store(&self.parse_failures, &count.parse_failures);
        store(&self.batches, &count.batches);
        self.open.store(count.open, Relaxed);
        self.receive_errors.store(count.receive_errors, Relaxed);
        self.reads.store(count.reads, Relaxed);
    }

    /// True while the worker, or its thread, waits for room in the queue.
    pub fn waits_for_room(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// Reads, as last published.
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// The totals as last published.
    pub fn read(&self) -> Count {
        Count {
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
            empty: self.empty.load(Relaxed),
            extra: self.extra.load(Relaxed),
            shed: std::array::from_fn(|i| self.shed[i].load(Relaxed)),
            parse_failures: std::array::from_fn(|i| self.parse_failures[i].load(Relaxed)),
            open: self.open.load(Relaxed),
            batches: std::array::from_fn(|i| self.batches[i].load(Relaxed)),
            receive_errors: self.receive_errors.load(Relaxed),
            reads: self.reads.load(Relaxed),
        }
    }
}

/// What the pushers count, once a request.
#[derive(Debug)]
pub struct PushBooks {
    /// Events acknowledged.
    pub delivered: AtomicU64,
    /// Events refused for good, by [`Rejected`].
    pub rejected: [AtomicU64; Rejected::ALL.len()],
    /// What became of them then.
    pub dead_letters: Arc<DeadLetterBooks>,
    /// Answers, by the number of their gRPC status (grpc.io, "Status codes").
    pub answers: [AtomicU64; 17],
    /// Requests acknowledged.
    pub requests: AtomicU64,
    /// Bytes of all requests, as they went out.
    pub sent_bytes: AtomicU64,
    /// Requests that failed and were tried again, whole or in halves.
    pub retries: AtomicU64,
    /// Events of requests that failed without an answer: they may have arrived, and be sent twice.
    pub possible_duplicates: AtomicU64,
    /// Seconds from a request to its acknowledgement.
    pub latency: Histogram,
    /// Seconds from the receipt of a batch's first datagram to the batch's acknowledgement.
    pub age: Histogram,
    /// When the certificates on both sides expire.
    pub certificates: Certificates,
    endpoints: RwLock<Vec<Arc<EndpointBooks>>>,
}

impl Default for PushBooks {
    fn default() -> Self {
        Self {
            delivered: AtomicU64::default(),
            rejected: Default::default(),
            dead_letters: Arc::default(),
            answers: Default::default(),
            requests: AtomicU64::default(),
            sent_bytes: AtomicU64::default(),
            retries: AtomicU64::default(),
            possible_duplicates: AtomicU64::default(),
            latency: Histogram::new(histogram::SECONDS),
            age: Histogram::new(histogram::SECONDS),
            certificates: Certificates::default(),
            endpoints: RwLock::default(),
        }
    }
}

impl PushBooks {
    /// Puts these endpoints in force, each with this many connections; one that was there before keeps its books.
    pub fn set_endpoints(&self, names: &[String], connections: usize) -> Vec<Arc<EndpointBooks>> {
        let mut endpoints = self.endpoints.write().unwrap_or_else(PoisonError::into_inner);
        let books = |name: &String| match endpoints.iter().find(|known| known.endpoint == *name) {
            Some(known) => {
                known.connections.store(connections, Relaxed);
                Arc::clone(known)
            }
            None => Arc::new(EndpointBooks::new(name.clone(), connections)),
        };
        *endpoints = names.iter().map(books).collect();
        self.certificates.keep(names);
        endpoints.clone()
    }

    /// Each endpoint's state, now.
    pub fn endpoints(&self) -> Vec<EndpointReport> {
        let endpoints = self.endpoints.read().unwrap_or_else(PoisonError::into_inner);
        endpoints.iter().map(|endpoint| endpoint.report()).collect()
    }
}

/// A worker's place and its books.
#[derive(Debug)]
pub struct Desk {
    /// The listener's address.
    pub listener: std::net::SocketAddr,
    /// The steering in force there.
    pub steering: Steering,
    /// Its number in the listener's group.
    pub worker: usize,
    /// Receive buffer that its socket was granted, bytes.
    pub buffer_bytes: usize,
    /// Its books.
    pub books: Arc<WorkerBooks>,
}

/// All books of a process.
#[derive(Debug, Default)]
pub struct Books {
    /// The workers'.
    pub desks: Vec<Desk>,
    /// The pushers'.
    pub push: PushBooks,
    /// Events left when the shutdown deadline passed.
    pub left_at_shutdown: AtomicU64,
    /// What is on disk, where something may be.
    pub spool: Arc<Place>,
    /// Metric events of our own.
    pub self_metrics: AtomicU64,
    /// Reloads of the configuration.
    pub reloads: ReloadBooks,
}

impl Books {
    /// Events given up outside the workers, for this reason.
    pub fn shed_elsewhere(&self, why: Shed) -> u64 {
        match why {
            Shed::Shutdown => self.left_at_shutdown.load(Relaxed),
            Shed::SpoolDamaged => self.spool.get().map_or(0, |spool| spool.damaged()),
            _ => 0,
        }
    }
}

/// What came of reloads.
#[derive(Debug, Default)]
pub struct ReloadBooks {
    /// Those that are in force, or were.
    pub applied: AtomicU64,
    /// Those that were refused.
    pub refused: AtomicU64,
    /// 1 when the last one was refused.
    pub last_refused: AtomicU64,
}
