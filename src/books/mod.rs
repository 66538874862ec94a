//! The books: received = delivered + rejected + shed + spooled + in memory, always and exactly.
//!
//! In: counts from workers and pushers. Out: a [`Report`]. Each worker counts in plain integers of its own and
//! publishes them once a read, so the hot path touches no shared cache line and no locked instruction.

mod certificates;
mod report;

pub use certificates::{Certificates, Holder};
pub use report::{Report, WorkerReport, per_event, process_cpu_us};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::config::Steering;
use crate::parse::{Made, ParseError};

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
}

impl Shed {
    /// Every reason, in the order of its counters.
    pub const ALL: [Self; 6] =
        [Self::QueueFull, Self::TooLong, Self::Shutdown, Self::ParseError, Self::Program, Self::Internal];

    /// The reason's name in reports and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::TooLong => "too_long",
            Self::Shutdown => "shutdown",
            Self::ParseError => "parse_error",
            Self::Program => "program",
            Self::Internal => "internal",
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
    /// Batches closed.
    pub batches: u64,
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
#[derive(Debug, Default)]
#[repr(align(128))] // a cache line and its neighbour: no worker's stores slow another's
pub struct WorkerBooks {
    received: AtomicU64,
    received_bytes: AtomicU64,
    empty: AtomicU64,
    extra: AtomicU64,
    shed: [AtomicU64; Shed::ALL.len()],
    parse_failures: [AtomicU64; ParseError::ALL.len()],
    open: AtomicU64,
    batches: AtomicU64,
    receive_errors: AtomicU64,
    reads: AtomicU64,
    /// True while the worker waits for room in the queue.
    pub waits_for_room: AtomicBool,
    /// True once the worker has panicked.
    pub gone: AtomicBool,
    /// Datagrams that the kernel dropped at the socket.
    pub kernel_drops: AtomicU64,
    /// Bytes that wait in the socket, as charged by the kernel.
    pub socket_queue_bytes: AtomicU64,
}

impl WorkerBooks {
    /// Makes the worker's totals visible. Only the worker calls it: plain stores are enough.
    pub fn publish(&self, count: &Count) {
        self.received.store(count.received, Relaxed);
        self.received_bytes.store(count.received_bytes, Relaxed);
        self.empty.store(count.empty, Relaxed);
        self.extra.store(count.extra, Relaxed);
        let arrays =
            self.shed.iter().zip(count.shed).chain(self.parse_failures.iter().zip(count.parse_failures));
        arrays.for_each(|(cell, value)| cell.store(value, Relaxed));
        self.open.store(count.open, Relaxed);
        self.batches.store(count.batches, Relaxed);
        self.receive_errors.store(count.receive_errors, Relaxed);
        self.reads.store(count.reads, Relaxed);
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
            batches: self.batches.load(Relaxed),
            receive_errors: self.receive_errors.load(Relaxed),
            reads: self.reads.load(Relaxed),
        }
    }
}

/// What the pushers count, once a request.
#[derive(Debug, Default)]
pub struct PushBooks {
    /// Events acknowledged.
    pub delivered: AtomicU64,
    /// Events refused for good.
    pub rejected: AtomicU64,
    /// Requests acknowledged.
    pub requests: AtomicU64,
    /// Requests that failed and were tried again, whole or in halves.
    pub retries: AtomicU64,
    /// Events of requests that failed without an answer: they may have arrived, and be sent twice.
    pub possible_duplicates: AtomicU64,
    /// When the certificates on both sides expire.
    pub certificates: Certificates,
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
}
