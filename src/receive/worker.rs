//! One receive thread: read, encode, close batches, hand them over.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;
use tracing::warn;

use super::{DEPTH, Pace, Step, Stop};
use crate::batch::{Batch, OpenBatch};
use crate::books::{Count, Shed, WorkerBooks};
use crate::datagram::Timestamp;
use crate::encode::SocketEncoder;
use crate::queue::{Queue, Refused};
use crate::socket::slots::Slots;

/// How long to leave a socket alone that answers with an error: it must not spin, nor end its worker.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// A datagram that was on its way through the kernel when the socket was told to refuse new ones is in its
/// queue by then.
const SETTLE: Duration = Duration::from_millis(2);

/// More reads than the largest receive buffer can need.
const MAX_DRAIN_READS: usize = 100_000;

/// Reads one socket until it is told to stop; then drains it, flushes and ends.
pub struct Worker {
    socket: Arc<Socket>,
    slots: Slots,
    encoder: SocketEncoder,
    batch: OpenBatch,
    pace: Pace,
    queue: Arc<Queue>,
    stop: Arc<Stop>,
    books: Arc<WorkerBooks>,
    count: Count,
}

impl Worker {
    /// A worker for one socket, granted `buffer` bytes, with slots for datagrams of up to `max_length` bytes.
    pub fn new(
        socket: Arc<Socket>,
        (max_length, buffer): (usize, usize),
        batch: OpenBatch,
        queue: Arc<Queue>,
        stop: Arc<Stop>,
        books: Arc<WorkerBooks>,
    ) -> Self {
        let (slots, pace) = (Slots::new(DEPTH, max_length), Pace::new(DEPTH, buffer));
        Self {
            socket,
            slots,
            encoder: SocketEncoder::default(),
            batch,
            pace,
            queue,
            stop,
            books,
            count: Count::default(),
        }
    }

    /// Runs until the stop signal, then until the socket is empty.
    pub fn run(mut self) {
        while !self.stop.is_given() {
            let read = self.read();
            let now = Instant::now();
            if self.batch.deadline().is_some_and(|deadline| deadline <= now) {
                self.flush();
            }
            let step = self.pace.after(read);
            self.rest(step, now);
        }
        self.drain();
    }

    /// Reads what the socket still holds. It ends even if the kernel could not be told to refuse new datagrams.
    fn drain(&mut self) {
        for _ in 0..MAX_DRAIN_READS {
            if self.read() == 0 {
                std::thread::sleep(SETTLE);
                if self.read() == 0 {
                    break;
                }
            }
        }
        self.flush();
    }

    /// One call: how many datagrams it brought.
    fn read(&mut self) -> usize {
        match self.slots.receive(self.socket.as_fd()) {
            Ok(0) => 0,
            Ok(datagrams) => {
                self.take();
                datagrams
            }
            Err(error) => {
                self.pause_after(&error);
                0
            }
        }
    }

    fn take(&mut self) {
        let now = Instant::now();
        let clock = Timestamp::now();
        let (count, encoder) = (&mut self.count, &mut self.encoder);
        for datagram in self.slots.datagrams() {
            if datagram.payload.is_empty() {
                count.empty += 1;
                continue;
            }
            count.received += 1;
            count.received_bytes += datagram.payload.len() as u64;
            if datagram.truncated {
                count.shed(Shed::TooLong, 1);
                continue;
            }
            count.open += 1;
            let received = datagram.received.unwrap_or(clock);
            let closed = self.batch.push(now, |out| encoder.encode(out, &datagram, received));
            if let Some(batch) = closed {
                hand_over(batch, &self.queue, count, &self.books);
            }
        }
        self.books.publish(count);
    }

    fn flush(&mut self) {
        if let Some(batch) = self.batch.close() {
            hand_over(batch, &self.queue, &mut self.count, &self.books);
            self.books.publish(&self.count);
        }
    }

    fn rest(&self, step: Step, now: Instant) {
        match step {
            Step::Read => {}
            Step::Nap(nap) => std::thread::sleep(nap),
            Step::Wait => {
                let timeout = self.batch.deadline().map(|deadline| deadline.saturating_duration_since(now));
                self.stop.wait(self.socket.as_fd(), timeout);
            }
        }
    }

    fn pause_after(&mut self, error: &io::Error) {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
            return;
        }
        // The kernel reports some faults of the network here, such as ENOBUFS or a passing ENETDOWN.
        self.count.receive_errors += 1;
        if self.count.receive_errors.is_power_of_two() {
            warn!(%error, times = self.count.receive_errors, "the socket could not be read; trying on");
        }
        std::thread::sleep(AFTER_ERROR);
    }
}

/// Gives a closed batch to the queue, which may take its time: what waits there is published first.
fn hand_over(batch: Batch, queue: &Queue, count: &mut Count, books: &WorkerBooks) {
    let events = batch.events;
    count.batches += 1;
    books.publish(count);
    let shed = match queue.push(batch) {
        Ok(()) => None,
        Err(Refused::Full(_)) => Some(Shed::QueueFull),
        Err(Refused::Abandoned(_)) => Some(Shed::Shutdown),
    };
    count.open -= events;
    if let Some(why) = shed {
        count.shed(why, events);
    }
}
