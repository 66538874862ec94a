//! One socket's worker: read, encode, close batches, hand them over.

use std::io;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tracing::{error, warn};

use super::{Gate, Member, Roster, Stop};
use crate::batch::{Batch, Closed, OpenBatch};
use crate::books::{Count, Counted, Run, Shed, WorkerBooks};
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

/// The thread that has a worker take its turn.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    /// True when it is this worker's, and not one that reads for it.
    pub is_own: bool,
    /// The books of the worker whose thread it is.
    pub books: &'a WorkerBooks,
}

/// Makes batches of what comes to one socket, in whichever thread calls it.
pub struct Worker {
    socket: Arc<Member>,
    parse: Arc<Live<Options>>,
    /// The generation of `parse` that the maker is of.
    generation: u64,
    maker: EventMaker,
    sequence: Sequence,
    gate: Gate,
    batch: OpenBatch,
    queue: Arc<Queue>,
    stop: Arc<Stop>,
    roster: Arc<Roster>,
    books: Arc<WorkerBooks>,
    count: Count,
    /// Who sent what the last read brought.
    runs: Vec<Run>,
}

impl Worker {
    /// A worker for one socket.
    pub fn new(
        socket: Arc<Member>,
        (parse, sequence, gate): (Arc<Live<Options>>, Sequence, Gate),
        batch: OpenBatch,
        queue: Arc<Queue>,
        (stop, roster): (Arc<Stop>, Arc<Roster>),
        books: Arc<WorkerBooks>,
    ) -> Self {
        let (generation, options) = parse.get();
        let maker = EventMaker::new(&options).numbered(sequence);
        Self {
            socket,
            parse,
            generation,
            maker,
            sequence,
            gate,
            batch,
            queue,
            stop,
            roster,
            books,
            count: Count::default(),
            runs: Vec::new(),
        }
    }

    /// Reads once, unless the stop signal was given, and hands over what is due: how many datagrams there were.
    pub fn turn(&mut self, slots: &mut Slots, reader: Reader<'_>) -> usize {
        self.follow();
        if self.maker.is_slow() {
            self.roster.call_all();
            if !reader.is_own {
                return 0;
            }
        }
        self.socket.begin_read();
        if self.stop.is_given() {
            self.socket.end_read();
            return 0;
        }
        let datagrams = self.read(slots, reader.books);
        if self.batch.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
            self.flush(Closed::Age, reader.books);
        }
        datagrams
    }

    /// Puts the options in force that were set since.
    fn follow(&mut self) {
        if self.parse.generation() != self.generation {
            let (generation, options) = self.parse.get();
            let maker = EventMaker::new(&options).numbered(self.sequence);
            (self.generation, self.maker) = (generation, maker);
        }
    }

    /// When the next turn has to be at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        self.batch.deadline()
    }

    /// After the stop signal: reads what is left, unless the socket lives on, and hands everything over.
    pub fn finish(&mut self, slots: &mut Slots) {
        // What waits in a socket that lives on is for whoever reads it next.
        if !self.socket.lives_on() {
            self.drain(slots);
        }
        let own = Arc::clone(&self.books);
        self.flush(Closed::Stop, &own);
    }

    /// Gives up after a panic: what it held is counted as shed, and its socket is no longer read.
    pub fn give_up(&mut self) {
        error!("a worker panicked (a bug, please report it): its socket is no longer read");
        self.batch.roll_back();
        drop(self.batch.close(Closed::Stop));
        self.count.shed(Shed::Internal, self.count.open);
        self.count.open = 0;
        self.books.publish(&self.count);
        self.books.gone.store(true, Relaxed);
    }

    /// True where a single event can take a program's time.
    pub fn is_slow(&self) -> bool {
        self.maker.is_slow()
    }

    /// Reads what the socket still holds. It ends even if the kernel could not be told to refuse new datagrams.
    fn drain(&mut self, slots: &mut Slots) {
        let own = Arc::clone(&self.books);
        for _ in 0..MAX_DRAIN_READS {
            if self.read(slots, &own) == 0 {
                std::thread::sleep(SETTLE);
                if self.read(slots, &own) == 0 {
                    break;
                }
            }
        }
    }

    /// One call: how many datagrams it brought.
    fn read(&mut self, slots: &mut Slots, reader: &WorkerBooks) -> usize {
        let received = slots.receive(self.socket.as_fd());
        self.socket.end_read();
        match received {
            Ok(0) => 0,
            Ok(datagrams) => {
                self.take(slots, reader);
                datagrams
            }
            Err(error) => {
                self.pause_after(&error);
                0
            }
        }
    }

    fn take(&mut self, slots: &Slots, reader: &WorkerBooks) {
        let now = Instant::now();
        let clock = Timestamp::now();
        self.gate.follow();
        let tracks_senders = self.books.senders.is_on();
        self.count.reads += 1;
        let (maker, gate) = (&mut self.maker, &mut self.gate);
        let mut filler = Filler {
            batch: &mut self.batch,
            way: Way { queue: &self.queue, roster: &self.roster, books: &self.books, reader },
            count: &mut self.count,
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

    fn flush(&mut self, why: Closed, reader: &WorkerBooks) {
        if let Some(batch) = self.batch.close(why) {
            let way = Way { queue: &self.queue, roster: &self.roster, books: &self.books, reader };
            way.hand_over(batch, &mut self.count);
            self.books.publish(&self.count);
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
    way: Way<'a>,
    count: &'a mut Count,
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
            self.way.hand_over(batch, self.count);
        }
        !self.way.queue.is_abandoned()
    }
}

impl EventSink for Filler<'_> {
    #[inline]
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let closed = self.batch.push(self.now, self.received, write);
        self.count.open += 1;
        self.added += 1;
        if let Some(batch) = closed {
            self.way.hand_over(batch, self.count);
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

/// The way of a closed batch.
#[derive(Clone, Copy)]
struct Way<'a> {
    queue: &'a Queue,
    roster: &'a Roster,
    books: &'a WorkerBooks,
    /// Of the worker whose thread waits then.
    reader: &'a WorkerBooks,
}

impl Way<'_> {
    /// Gives a batch to the queue, which may take its time: what waits there is published first.
    fn hand_over(self, batch: Batch, count: &mut Count) {
        let Self { queue, roster, books, reader } = self;
        let events = batch.events;
        count.batches[batch.closed as usize] += 1;
        books.batch_events.observe(events as f64);
        books.batch_bytes.observe(batch.body.len() as f64);
        books.publish(count);
        let waiting = [Counted::at(&books.waiting), Counted::at(&reader.waiting)];
        // Other sockets that this thread reads must not wait with it.
        let pushed = queue.push_telling(batch, || roster.call_all());
        drop(waiting);
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
}
