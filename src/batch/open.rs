//! The batch that a worker is filling.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Batch, Closed, PREFIX, Pool};
use crate::datagram::Timestamp;

/// When a batch closes: whichever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of the body; a single longer event is a batch of its own.
    pub max_bytes: usize,
    /// Events.
    pub max_events: u64,
    /// Age of its first event.
    pub timeout: Duration,
}

/// A batch below this part of its limit is copied out of its buffer.
const SMALL: usize = 16;

/// Collects events until a limit closes it. Reads no clock: the caller says what time it is.
pub struct OpenBatch {
    limits: Limits,
    pool: Arc<Pool>,
    buffer: Vec<u8>,
    /// Where the events that are known to fit end.
    end: usize,
    events: u64,
    first: Option<First>,
    lane: Option<usize>,
}

/// The batch's first event.
#[derive(Debug, Clone, Copy)]
struct First {
    received: Timestamp,
    /// When the batch closes by age.
    deadline: Instant,
}

impl OpenBatch {
    /// An empty batch whose buffers come from `pool`.
    pub fn new(limits: Limits, pool: Arc<Pool>) -> Self {
        let mut batch =
            Self { limits, buffer: Vec::new(), pool, end: PREFIX, events: 0, first: None, lane: None };
        batch.buffer = batch.fresh();
        batch
    }

    /// The same for batches of this worker.
    pub fn in_lane(self, worker: usize) -> Self {
        Self { lane: Some(worker), ..self }
    }

    /// Adds the event that `write` appends, of a datagram that was `received` then. Returns the batch that this
    /// closed, if it closed one.
    pub fn push(
        &mut self,
        now: Instant,
        received: Timestamp,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Batch> {
        write(&mut self.buffer);
        let first = First { received, deadline: now + self.limits.timeout };
        if self.buffer.len() > self.limits.max_bytes && self.events > 0 {
            // The carried event may fill the next batch by itself: that closes with the next event or by age.
            return Some(self.close_before_last(first));
        }
        self.accept(first);
        if self.buffer.len() >= self.limits.max_bytes {
            return self.close(Closed::Bytes);
        }
        if self.events >= self.limits.max_events { self.close(Closed::Events) } else { None }
    }

    /// Takes back what a write that failed halfway has left behind.
    pub fn roll_back(&mut self) {
        self.buffer.truncate(self.end);
    }

    /// Events that wait in it.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// When it closes by age; none while it is empty.
    pub fn deadline(&self) -> Option<Instant> {
        self.first.map(|first| first.deadline)
    }

    /// Closes it whatever its size; none while it is empty.
    pub fn close(&mut self, why: Closed) -> Option<Batch> {
        let first = self.first?;
        // A nearly empty buffer is not worth handing over: its few bytes are copied and it is filled further.
        if self.buffer.len() < self.limits.max_bytes / SMALL {
            let body = finish(self.buffer[..self.end].to_vec());
            self.buffer.truncate(PREFIX);
            let weight = body.len();
            return Some(self.finish(body.into_boxed_slice().into(), weight, first, why));
        }
        let next = self.fresh();
        Some(self.lend(next, first, why))
    }

    fn accept(&mut self, first: First) {
        self.end = self.buffer.len();
        self.events += 1;
        self.first.get_or_insert(first);
    }

    fn close_before_last(&mut self, last: First) -> Batch {
        let mut next = self.fresh();
        next.extend_from_slice(&self.buffer[self.end..]);
        self.buffer.truncate(self.end);
        let batch = self.lend(next, self.first.unwrap_or(last), Closed::Bytes);
        self.accept(last);
        batch
    }

    fn lend(&mut self, next: Vec<u8>, first: First, why: Closed) -> Batch {
        let body = finish(mem::replace(&mut self.buffer, next));
        let weight = body.capacity();
        let body = self.pool.lend(body);
        self.finish(body, weight, first, why)
    }

    fn finish(&mut self, body: Bytes, weight: usize, first: First, closed: Closed) -> Batch {
        self.first = None;
        self.end = PREFIX;
        let events = mem::take(&mut self.events);
        let (ticket, trouble, lane) = (None, None, self.lane);
        Batch { body, events, weight, received: first.received, closed, ticket, lane, trouble }
    }

    fn fresh(&self) -> Vec<u8> {
        let mut buffer = self.pool.take();
        buffer.extend_from_slice(&[0; PREFIX]);
        buffer
    }
}

/// A batch of events that did not come as datagrams: `request` is an encoded `PushEventsRequest`.
pub fn made_of(request: &[u8], events: u64, received: Timestamp) -> Batch {
    let body = framed(request);
    let weight = body.len();
    let (closed, ticket, lane, trouble) = (Closed::Age, None, None, None);
    Batch { body: body.into(), events, weight, received, closed, ticket, lane, trouble }
}

/// An uncompressed message behind gRPC's prefix: a request's body.
pub fn framed(message: &[u8]) -> Vec<u8> {
    finish([&[0; PREFIX], message].concat())
}

/// Writes gRPC's message prefix: uncompressed, and the length of what follows it.
pub(super) fn finish(mut body: Vec<u8>) -> Vec<u8> {
    let length = (body.len() - PREFIX) as u32;
    body[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp { seconds: 1, nanos: 2 };

    fn open(max_bytes: usize, max_events: u64) -> OpenBatch {
        let limits = Limits { max_bytes, max_events, timeout: Duration::from_millis(200) };
        OpenBatch::new(limits, Pool::new(max_bytes, 4))
    }

    fn push(batch: &mut OpenBatch, bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
        batch.push(Instant::now(), NOW, |out| out.extend_from_slice(bytes)).map(parts)
    }

    fn parts(batch: Batch) -> (Vec<u8>, u64) {
        assert_eq!(batch.body[..PREFIX], [0, 0, 0, 0, (batch.body.len() - PREFIX) as u8]);
        (batch.body[PREFIX..].to_vec(), batch.events)
    }

    #[test]
    fn closes_on_events() {
        let mut batch = open(1_000, 2);
        assert_eq!(push(&mut batch, b"one"), None);
        assert_eq!(push(&mut batch, b"two"), Some((b"onetwo".to_vec(), 2)));
        assert_eq!(batch.close(Closed::Age).map(parts), None);
    }

    #[test]
    fn closes_on_bytes_and_carries_what_did_not_fit() {
        let mut batch = open(PREFIX + 10, 100);
        assert_eq!(push(&mut batch, b"1234"), None);
        assert_eq!(push(&mut batch, b"5678"), None);
        assert_eq!(push(&mut batch, b"abc"), Some((b"12345678".to_vec(), 2)));
        assert_eq!(push(&mut batch, b"defghij"), Some((b"abcdefghij".to_vec(), 2)), "exactly full");
        assert_eq!(push(&mut batch, b"far too long"), Some((b"far too long".to_vec(), 1)), "alone");
        assert_eq!(push(&mut batch, b"x"), None);
        assert_eq!(push(&mut batch, b"far too long"), Some((b"x".to_vec(), 1)));
        assert_eq!(push(&mut batch, b"y"), Some((b"far too long".to_vec(), 1)));
        assert_eq!(batch.close(Closed::Age).map(parts), Some((b"y".to_vec(), 1)));
    }

    #[test]
    fn age_counts_from_the_first_event() {
        let mut batch = open(1_000, 100);
        assert_eq!(batch.deadline(), None);
        let start = Instant::now();
        batch.push(start, NOW, |out| out.push(1));
        let later = Timestamp { seconds: 9, nanos: 0 };
        batch.push(start + Duration::from_millis(150), later, |out| out.push(2));
        assert_eq!(batch.deadline(), Some(start + Duration::from_millis(200)));
        let closed = batch.close(Closed::Age).unwrap();
        assert_eq!((closed.received, closed.closed), (NOW, Closed::Age));
        assert_eq!(parts(closed), (vec![1, 2], 2));
        assert_eq!(batch.deadline(), None);
    }

    #[test]
    fn a_small_batch_is_copied_and_its_buffer_kept() {
        let mut batch = open(1_000, 100);
        let address = batch.buffer.as_ptr();
        push(&mut batch, b"small");
        let small = batch.close(Closed::Age).unwrap();
        assert_eq!(batch.buffer.as_ptr(), address);
        assert_eq!(parts(small), (b"small".to_vec(), 1));
        push(&mut batch, &[b'x'; 100]);
        assert_eq!(batch.close(Closed::Age).unwrap().body.as_ptr(), address);
    }
}
