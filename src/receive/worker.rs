//! One receive thread: read, encode, close batches, hand them over.

use std::io;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tracing::{error, warn};

use super::{DEPTH, Gate, Member, Pace, Step, Stop};
use crate::batch::{Batch, Closed, OpenBatch};
use crate::books::{Count, Run, Shed, WorkerBooks};
use crate::datagram::{Datagram, Timestamp};
use crate::encode::Sequence;
use crate::live::Live;
use crate::parse::{EventMaker, EventSink, Made, Options, ParseError};
use crate::queue::{Queue, Refused};
use crate::socket::slots::Slots;

/// How long to leave a socket alone that answers with an error: it must not spin, nor end its worker.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// A datagram that was on its way through the kernel when the socket was told to refuse new ones is in its
/// queue by then.
const SETTLE: Duration = Duration::from_millis(2);

/// More reads than the largest receive buffer can need.
const MAX_DRAIN_READS: usize = 100_000;

/// Reads one socket until it is told to stop; then drains it, unless it lives on, flushes and ends.
pub struct Worker {
    socket: Arc<Member>,
    slots: Slots,
    parse: Arc<Live<Options>>,
    /// The generation of `parse` that the maker is of.
    generation: u64,
    maker: EventMaker,
    sequence: Sequence,
    gate: Gate,
    batch: OpenBatch,
    pace: Pace,
    queue: Arc<Queue>,
    stop: Arc<Stop>,
    books: Arc<WorkerBooks>,
    count: Count,
    /// Who sent what the last read brought.
    runs: Vec<Run>,
}

impl Worker {
    /// A worker for one socket, granted `buffer` bytes, with slots for datagrams of up to `max_length` bytes.
    pub fn new(
        socket: Arc<Member>,
        (max_length, buffer): (usize, usize),
        (parse, sequence, gate): (Arc<Live<Options>>, Sequence, Gate),
        batch: OpenBatch,
        queue: Arc<Queue>,
        stop: Arc<Stop>,
        books: Arc<WorkerBooks>,
    ) -> Self {
        let (slots, pace) = (Slots::new(DEPTH, max_length), Pace::new(DEPTH, buffer));
        let (generation, options) = parse.get();
        let maker = EventMaker::new(&options).numbered(sequence);
        Self {
            socket,
            slots,
            parse,
            generation,
            maker,
            sequence,
            gate,
            batch,
            pace,
            queue,
            stop,
            books,
            count: Count::default(),
            runs: Vec::new(),
        }
    }

    /// Runs until the stop signal, then until the socket is empty; false when it panicked instead. What it held is
    /// counted as shed then.
    pub fn run(mut self) -> bool {
        let finished = panic::catch_unwind(AssertUnwindSafe(|| self.serve())).is_ok();
        if !finished {
            error!("a worker panicked (a bug, please report it): its socket is no longer read");
            self.count.shed(Shed::Internal, self.count.open);
            self.count.open = 0;
            self.books.publish(&self.count);
            self.books.gone.store(true, Relaxed);
        }
        finished
    }

    fn serve(&mut self) {
        loop {
            self.socket.begin_read();
            if self.stop.is_given() {
                self.socket.end_read();
                break;
            }
            let read = self.read();
            let now = Instant::now();
            if self.batch.deadline().is_some_and(|deadline| deadline <= now) {
                self.flush(Closed::Age);
            }
            let step = self.pace.after(read);
            self.rest(step, now);
        }
        // What waits in a socket that lives on is for whoever reads it next.
        if !self.socket.lives_on() {
            self.drain();
        }
        self.flush(Closed::Stop);
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
    }

    /// One call: how many datagrams it brought.
    fn read(&mut self) -> usize {
        let received = self.slots.receive(self.socket.as_fd());
        self.socket.end_read();
        match received {
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
        if self.parse.generation() != self.generation {
            let (generation, options) = self.parse.get();
            let maker = EventMaker::new(&options).numbered(self.sequence);
            (self.generation, self.maker) = (generation, maker);
        }
        self.gate.follow();
        let tracks_senders = self.books.senders.is_on();
        self.count.reads += 1;
        let (maker, gate, slots) = (&mut self.maker, &mut self.gate, &self.slots);
        let mut filler = Filler {
            batch: &mut self.batch,
            queue: &self.queue,
            count: &mut self.count,
            books: &self.books,
            now,
            received: clock,
            added: 0,
        };
        for (at, datagram) in slots.datagrams().enumerate() {
            let received = datagram.received.unwrap_or(clock);
            let refused = gate.refuses(datagram.peer.ip(), received, || slots.run_from(at));
            if datagram.payload.is_empty() {
                filler.count.empty += 1;
                continue;
            }
            filler.count.received += 1;
            filler.count.received_bytes += datagram.payload.len() as u64;
            if tracks_senders {
                note_sender(&mut self.runs, &datagram);
            }
            if let Some(why) = refused.or(datagram.truncated.then_some(Shed::TooLong)) {
                filler.count.shed(why, 1);
                continue;
            }
            if maker.is_slow() && !filler.is_in_time() {
                filler.count.shed(Shed::Shutdown, 1);
                continue;
            }
            maker.next(received, filler.count.received);
            (filler.received, filler.added) = (received, 0);
            let made = make(maker, &datagram, received, &mut filler);
            filler.count.note(&made, filler.added);
            if let Some(run) = self.runs.last_mut().filter(|_| made.error.is_some()) {
                run.parse_failures += 1;
            }
        }
        if tracks_senders {
            self.books.senders.add(&self.runs);
            self.runs.clear();
        }
        self.books.publish(&self.count);
    }

    fn flush(&mut self, why: Closed) {
        if let Some(batch) = self.batch.close(why) {
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

/// Where a worker's events go: into its open batch, and that to the queue when it closes.
struct Filler<'a> {
    batch: &'a mut OpenBatch,
    queue: &'a Queue,
    count: &'a mut Count,
    books: &'a WorkerBooks,
    now: Instant,
    /// When the datagram at hand was received, and its events so far.
    received: Timestamp,
    added: u64,
}

impl Filler<'_> {
    /// A VRL program can take longer for one event than a batch may wait, or a stop: looks at the clock for it. False
    /// when the shutdown deadline is over.
    fn is_in_time(&mut self) -> bool {
        self.now = Instant::now();
        if self.batch.deadline().is_some_and(|deadline| deadline <= self.now)
            && let Some(batch) = self.batch.close(Closed::Age)
        {
            hand_over(batch, self.queue, self.count, self.books);
        }
        !self.queue.is_abandoned()
    }
}

impl EventSink for Filler<'_> {
    #[inline]
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let closed = self.batch.push(self.now, self.received, write);
        self.count.open += 1;
        self.added += 1;
        if let Some(batch) = closed {
            hand_over(batch, self.queue, self.count, self.books);
        }
    }
}

/// Makes a datagram's events. Should a parser panic, the datagram is sent as it came.
fn make(
    maker: &mut EventMaker,
    datagram: &Datagram<'_>,
    received: Timestamp,
    filler: &mut Filler<'_>,
) -> Made {
    let made = panic::catch_unwind(AssertUnwindSafe(|| maker.make(datagram, received, filler)));
    made.unwrap_or_else(|_| {
        // An event that was added whole stays; one that was begun is taken back.
        filler.batch.roll_back();
        maker.make_unparsed(datagram, received, ParseError::Internal, filler)
    })
}

/// Adds a datagram to the run of its sender: neighbours mostly have the same one.
fn note_sender(runs: &mut Vec<Run>, datagram: &Datagram<'_>) {
    let (sender, bytes) = (datagram.peer.ip(), datagram.payload.len() as u64);
    match runs.last_mut().filter(|run| run.sender == sender) {
        Some(run) => {
            run.messages += 1;
            run.bytes += bytes;
        }
        None => runs.push(Run { sender, messages: 1, bytes, parse_failures: 0 }),
    }
}

/// Gives a closed batch to the queue, which may take its time: what waits there is published first.
fn hand_over(batch: Batch, queue: &Queue, count: &mut Count, books: &WorkerBooks) {
    let events = batch.events;
    count.batches[batch.closed as usize] += 1;
    books.batch_events.observe(events as f64);
    books.batch_bytes.observe(batch.body.len() as f64);
    books.publish(count);
    books.waits_for_room.store(true, Relaxed);
    let pushed = queue.push(batch);
    books.waits_for_room.store(false, Relaxed);
    let shed = match pushed {
        Ok(()) => None,
        Err(Refused::Full(_)) => Some(Shed::QueueFull),
        Err(Refused::SpoolFull(_)) => Some(Shed::SpoolFull),
        Err(Refused::SpoolFailed(_)) => Some(Shed::SpoolFailed),
        Err(Refused::Abandoned(_)) => Some(Shed::Shutdown),
    };
    count.open -= events;
    if let Some(why) = shed {
        count.shed(why, events);
    }
}
