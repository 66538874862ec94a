//! The batch that a worker is filling.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Batch, PREFIX, Pool};

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
    deadline: Option<Instant>,
}

impl OpenBatch {
    /// An empty batch whose buffers come from `pool`.
    pub fn new(limits: Limits, pool: Arc<Pool>) -> Self {
        let mut batch = Self { limits, buffer: Vec::new(), pool, end: PREFIX, events: 0, deadline: None };
        batch.buffer = batch.fresh();
        batch
    }

    /// Adds the event that `write` appends. Returns the batch that this closed, if it closed one.
    pub fn push(&mut self, now: Instant, write: impl FnOnce(&mut Vec<u8>)) -> Option<Batch> {
        write(&mut self.buffer);
        let closed = if self.buffer.len() > self.limits.max_bytes && self.events > 0 {
            Some(self.close_before_last(now))
        } else {
            self.accept(now);
            None
        };
        let full = self.buffer.len() >= self.limits.max_bytes || self.events >= self.limits.max_events;
        match closed {
            None if full => self.close(),
            // The carried event fills the next batch by itself: it closes with the next event or by age.
            closed => closed,
        }
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
        self.deadline
    }

    /// Closes it whatever its size; none while it is empty.
    pub fn close(&mut self) -> Option<Batch> {
        if self.events == 0 {
            return None;
        }
        if self.buffer.len() < self.limits.max_bytes / SMALL {
            return Some(self.copy_out());
        }
        let next = self.fresh();
        Some(self.lend(next))
    }

    fn accept(&mut self, now: Instant) {
        self.end = self.buffer.len();
        self.events += 1;
        self.deadline.get_or_insert(now + self.limits.timeout);
    }

    fn close_before_last(&mut self, now: Instant) -> Batch {
        let mut next = self.fresh();
        next.extend_from_slice(&self.buffer[self.end..]);
        self.buffer.truncate(self.end);
        let batch = self.lend(next);
        self.accept(now);
        batch
    }

    /// A nearly empty buffer is not worth handing over: its few bytes are copied and it is filled further.
    fn copy_out(&mut self) -> Batch {
        let body = finish(self.buffer[..self.end].to_vec());
        self.buffer.truncate(PREFIX);
        Batch::exact(body, self.reset())
    }

    fn lend(&mut self, next: Vec<u8>) -> Batch {
        let body = finish(mem::replace(&mut self.buffer, next));
        let weight = body.capacity();
        Batch { body: self.pool.lend(body), events: self.reset(), weight }
    }

    fn reset(&mut self) -> u64 {
        self.deadline = None;
        self.end = PREFIX;
        mem::take(&mut self.events)
    }

    fn fresh(&self) -> Vec<u8> {
        let mut buffer = self.pool.take();
        buffer.extend_from_slice(&[0; PREFIX]);
        buffer
    }
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

    fn open(max_bytes: usize, max_events: u64) -> OpenBatch {
        let limits = Limits { max_bytes, max_events, timeout: Duration::from_millis(200) };
        OpenBatch::new(limits, Pool::new(max_bytes, 4))
    }

    fn push(batch: &mut OpenBatch, bytes: &[u8]) -> Option<(Vec<u8>, u64)> {
        batch.push(Instant::now(), |out| out.extend_from_slice(bytes)).map(parts)
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
        assert_eq!(batch.close().map(parts), None);
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
        assert_eq!(batch.close().map(parts), Some((b"y".to_vec(), 1)));
    }

    #[test]
    fn age_counts_from_the_first_event() {
        let mut batch = open(1_000, 100);
        assert_eq!(batch.deadline(), None);
        let start = Instant::now();
        batch.push(start, |out| out.push(1));
        batch.push(start + Duration::from_millis(150), |out| out.push(2));
        assert_eq!(batch.deadline(), Some(start + Duration::from_millis(200)));
        assert_eq!(batch.close().map(parts), Some((vec![1, 2], 2)));
        assert_eq!(batch.deadline(), None);
    }

    #[test]
    fn a_small_batch_is_copied_and_its_buffer_kept() {
        let mut batch = open(1_000, 100);
        let address = batch.buffer.as_ptr();
        push(&mut batch, b"small");
        let small = batch.close().unwrap();
        assert_eq!(batch.buffer.as_ptr(), address);
        assert_eq!(parts(small), (b"small".to_vec(), 1));
        push(&mut batch, &[b'x'; 100]);
        assert_eq!(batch.close().unwrap().body.as_ptr(), address);
    }
}
