//! What a datagram costs in user space, without its socket and without Vector: made into an event, batched, queued, settled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::corpus;
use crate::batch::{Limits, OpenBatch, Pool};
use crate::config::{Buffer, WhenFull};
use crate::datagram::{Datagram, Timestamp};
use crate::parse::{EventMaker, EventSink, Mode, Options, Zone};
use crate::queue::Queue;

/// Bytes of a raw message, as in all measurements.
const SIZE: usize = 1_100;

/// A worker without a socket, before a queue that settles what it gets.
pub struct HotPath {
    maker: EventMaker,
    batch: OpenBatch,
    queue: Arc<Queue>,
    now: Instant,
    bytes: usize,
}

impl HotPath {
    /// One that parses, or takes messages as they are.
    pub fn new(mode: Mode) -> Self {
        let limits = Limits { max_bytes: 1 << 20, max_events: 1_000, timeout: Duration::from_secs(1) };
        let options = Options { mode, timezone: Zone::Named(chrono_tz::UTC), ..Options::default() };
        let buffer = Buffer { when_full: WhenFull::Block, ..Buffer::default() };
        Self {
            maker: EventMaker::new(&options),
            batch: OpenBatch::new(limits, Pool::new(limits.max_bytes + (64 << 10), 4)),
            queue: Queue::new(buffer),
            now: Instant::now(),
            bytes: 0,
        }
    }

    /// Messages fit for it, made from a seed.
    pub fn messages(mode: Mode) -> Vec<Vec<u8>> {
        match mode {
            Mode::None => corpus::parsed(7, 1_000)
                .into_iter()
                .map(|message| message.iter().copied().cycle().take(SIZE).collect())
                .collect(),
            Mode::Syslog => [corpus::parsed(7, 500), corpus::noise(7, 500)].concat(),
        }
    }

    /// Takes so many of the messages, round and round; returns the bytes of their batches.
    pub fn take(&mut self, messages: &[Vec<u8>], count: usize) -> usize {
        let peer = "192.0.2.1:514".parse().unwrap_or_else(|_| unreachable!("it is an address"));
        let received = Timestamp { seconds: 1_796_000_000, nanos: 1 };
        for payload in messages.iter().cycle().take(count) {
            let datagram = Datagram { payload, peer, received: Some(received), truncated: false };
            let mut sink =
                Sink { batch: &mut self.batch, queue: &self.queue, now: self.now, bytes: &mut self.bytes };
            self.maker.make(&datagram, received, &mut sink);
        }
        self.bytes
    }
}

struct Sink<'a> {
    batch: &'a mut OpenBatch,
    queue: &'a Arc<Queue>,
    now: Instant,
    bytes: &'a mut usize,
}

impl EventSink for Sink<'_> {
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let received = Timestamp { seconds: 1_796_000_000, nanos: 1 };
        if let Some(batch) = self.batch.push(self.now, received, write) {
            *self.bytes += batch.body.len();
            // The queue is empty: it takes anything.
            self.queue.push(batch).ok();
            self.queue.lease_if(|_| true).and_then(crate::queue::Lease::settle);
        }
    }
}
