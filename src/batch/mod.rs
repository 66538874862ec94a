//! Events become batches: the body of one gRPC request each, closed on bytes, events or age.
//!
//! In: encoded events. Out: a [`Batch`] whose bytes go to the wire with no further copy.
//! Nothing is lost here: a batch that closes carries what did not fit into the next one.

mod open;
mod pool;
mod split;
mod trouble;

pub use open::{Limits, OpenBatch, framed, made_of};
pub use pool::Pool;
pub use split::events_in;
pub use trouble::{Answers, Trouble};

use bytes::Bytes;

use crate::datagram::Timestamp;
use crate::spool::Ticket;

/// gRPC puts this many bytes before each message: a compression flag and a length, big-endian.
pub const PREFIX: usize = 5;

/// A closed batch.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The request's body: gRPC's prefix, then a `PushEventsRequest`.
    pub body: Bytes,
    /// Events in it, never zero.
    pub events: u64,
    /// Bytes of memory behind `body`, which may be more than its length.
    pub weight: usize,
    /// When its first datagram was received.
    pub received: Timestamp,
    /// What closed it.
    pub closed: Closed,
    /// The file that it was read from, where it waited on disk.
    pub ticket: Option<Ticket>,
    /// What it went through since.
    pub trouble: Option<Box<Trouble>>,
    /// The worker that filled it; none of what came from no worker, or from disk.
    pub lane: Option<usize>,
}

/// What closed a batch; a closed set, fit for a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// `batch.max_events`.
    Events,
    /// `batch.max_bytes`.
    Bytes,
    /// `batch.timeout_secs`.
    Age,
    /// The stop of the process.
    Stop,
}

impl Closed {
    /// Every reason, in the order of its counters.
    pub const ALL: [Self; 4] = [Self::Events, Self::Bytes, Self::Age, Self::Stop];

    /// The reason's name in reports and metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Bytes => "bytes",
            Self::Age => "age",
            Self::Stop => "stop",
        }
    }
}

impl Batch {
    /// The same batch with another body, in no more memory than that needs.
    fn with_body(&self, body: Vec<u8>, events: u64) -> Self {
        let weight = body.len();
        Self { body: body.into_boxed_slice().into(), events, weight, ..self.clone() }
    }

    /// The same batch in no more memory than it needs: for one that will wait, where a copy is cheaper than
    /// the room that a half-filled buffer takes from others.
    pub fn compacted(self) -> Self {
        if self.body.len() >= self.weight / 8 * 7 {
            return self;
        }
        self.with_body(self.body.to_vec(), self.events)
    }
}
