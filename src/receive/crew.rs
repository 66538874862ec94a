//! A listener's threads and its workers: every socket has a worker, and every worker is some thread's.
//!
//! A thread that wakes costs CPU, whatever it reads: at 100,000/s a thread for each of sixteen sockets takes half as much again as
//! one that reads them all (bench/HISTORY.md). So threads that are not needed stay at home, and their sockets are read by others.
//! Nothing changes for who sends: each socket is open, steered to and buffered as before.

use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::roster::{Shift, WATCH};
use super::{DEPTH, Member, Pace, Reader, Roster, Step, Stop, Worker};
use crate::books::WorkerBooks;
use crate::live::Live;
use crate::parse::Options;
use crate::socket::slots::Slots;

/// When to look again at a socket that another thread was at: soon, and not so often as to cost anything where that one waits for
/// room.
const AGAIN: Duration = Duration::from_millis(5);

/// A worker and what is seen of it from outside.
struct Seat {
    worker: Mutex<Worker>,
    socket: Arc<Member>,
    books: Arc<WorkerBooks>,
}

/// The workers of one listener, in the order of its sockets, and the threads that read for them.
pub struct Crew {
    seats: Vec<Seat>,
    roster: Arc<Roster>,
    stop: Arc<Stop>,
    parse: Arc<Live<Options>>,
    max_length: usize,
    /// Granted to each socket, bytes.
    buffer: usize,
}

impl Crew {
    /// A crew without workers, for sockets granted `buffer` bytes each and datagrams of up to `max_length` bytes.
    pub fn new(
        roster: Arc<Roster>,
        stop: Arc<Stop>,
        parse: Arc<Live<Options>>,
        (max_length, buffer): (usize, usize),
    ) -> Self {
        Self { seats: Vec::new(), roster, stop, parse, max_length, buffer }
    }

    /// Takes in the worker of the next socket.
    pub fn add(&mut self, worker: Worker, socket: Arc<Member>, books: Arc<WorkerBooks>) {
        self.seats.push(Seat { worker: Mutex::new(worker), socket, books });
    }

    /// Thread number `thread` reads until the stop signal, and then ends its own worker's work. Calls `panicked` when a worker
    /// panics; the others go on.
    pub fn run(&self, thread: usize, panicked: impl Fn()) {
        let mut slots = Slots::new(DEPTH, self.max_length);
        let mut pace = Pace::new(DEPTH, self.buffer);
        let mut shift = Shift::new(&self.roster, thread, Instant::now());
        let (own, mut seen) = (&self.seats[thread], Seen::default());
        while !self.stop.is_given() {
            self.roster.come_back(thread);
            own.books.has_thread.store(self.roster.is_on_duty(thread), Relaxed);
            let step = self.sweep(thread, (&mut slots, &mut pace), &panicked);
            let now = Instant::now();
            shift.go_on(now);
            if step != Step::Read {
                shift.rest(now, || self.needs_all());
                self.rest(thread, step, now);
                let now = Instant::now();
                if thread == self.roster.reading() {
                    self.look_after(&mut seen, now);
                }
                shift.begin(now);
            }
        }
        let worker = own.lock();
        if !own.is_gone() {
            own.turn(worker, &panicked, |worker| worker.finish(&mut slots));
        }
    }

    /// Reads each of a thread's sockets once, unless another thread is at it.
    fn sweep(&self, thread: usize, (slots, pace): (&mut Slots, &mut Pace), panicked: &impl Fn()) -> Step {
        let (mut datagrams, mut more, mut again) = (0, false, false);
        for socket in self.roster.sockets_of(thread) {
            let seat = &self.seats[socket];
            let Some(worker) = seat.try_lock() else {
                again = true; // who has it may leave something to us
                continue;
            };
            // The roster may have changed, and who reads a socket has to see to its batch.
            if self.roster.reader_of(socket) != thread || seat.is_gone() {
                continue;
            }
            // A program is waited for by its own thread alone.
            again |= socket != thread && worker.is_slow();
            let reader = Reader { is_own: socket == thread, books: &self.seats[thread].books };
            let read = seat.turn(worker, panicked, |worker| worker.turn(slots, reader)).unwrap_or(0);
            datagrams += read;
            more |= read == slots.depth();
        }
        match pace.after(datagrams, more) {
            Step::Wait if again => Step::Nap(AGAIN),
            step => step,
        }
    }

    fn rest(&self, thread: usize, step: Step, now: Instant) {
        match step {
            Step::Read => {}
            Step::Nap(nap) => thread::sleep(nap),
            Step::Wait => {
                let seats = || self.roster.sockets_of(thread).map(|socket| &self.seats[socket]);
                // Who has a worker may leave a batch in it.
                let deadline =
                    |seat: &Seat| seat.try_lock().map_or(Some(now + AGAIN), |worker| worker.deadline());
                let deadline = seats().filter_map(deadline).min();
                let timeout = deadline.map(|deadline| deadline.saturating_duration_since(now));
                let timeout = timeout.into_iter().chain(self.roster.patience(thread)).min();
                let bell = self.roster.bell(thread);
                let mut awaited = vec![bell.as_fd()];
                awaited.extend(seats().filter(|seat| !seat.is_gone()).map(|seat| seat.socket.as_fd()));
                self.stop.wait(&awaited, timeout);
                bell.still();
            }
        }
    }

    /// Passes over a thread that leaves a socket unread in which something waits, now and at the last look.
    fn look_after(&self, seen: &mut Seen, now: Instant) {
        let mut sockets: Vec<_> =
            self.seats.iter().map(|seat| PollFd::new(&*seat.socket, PollFlags::IN)).collect();
        if poll(&mut sockets, Some(&Timespec::default())).is_err() {
            return;
        }
        let unread = |(seat, socket): (&Seat, &PollFd<'_>)| {
            (socket.revents().contains(PollFlags::IN) && !seat.is_gone()).then(|| seat.books.reads())
        };
        let unread = self.seats.iter().zip(&sockets).map(unread).collect();
        let before = std::mem::replace(seen, Seen { at: Some(now), unread });
        // Two looks at once say nothing, nor does one after a pause of the whole process.
        let apart = before.at.map(|then| now.duration_since(then));
        if apart.is_none_or(|apart| apart < WATCH / 2 || apart > WATCH * 2) {
            return;
        }
        let stays = |(now, then): (&Option<u64>, &Option<u64>)| now.is_some() && now == then;
        if let Some(socket) = seen.unread.iter().zip(&before.unread).position(stays) {
            self.roster.pass_over_reader_of(socket);
        }
    }

    /// True while a worker waits for room, or may have to for a program: nobody else's socket shall wait with it.
    fn needs_all(&self) -> bool {
        self.parse.get().1.program.is_some() || self.seats.iter().any(|seat| seat.books.waits_for_room())
    }
}

/// What the first thread at home saw at its last look.
#[derive(Default)]
struct Seen {
    at: Option<Instant>,
    /// The reads so far of each socket in which something waits.
    unread: Vec<Option<u64>>,
}

impl Seat {
    fn lock(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker, unless a thread has it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Worker>> {
        match self.worker.try_lock() {
            Ok(worker) => Some(worker),
            Err(TryLockError::Poisoned(worker)) => Some(worker.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn is_gone(&self) -> bool {
        self.books.gone.load(Relaxed)
    }

    /// Has the worker do something; none where it panicked.
    fn turn<T>(
        &self,
        mut worker: MutexGuard<'_, Worker>,
        panicked: &impl Fn(),
        work: impl FnOnce(&mut Worker) -> T,
    ) -> Option<T> {
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(&mut worker)));
        done.map_err(|_| {
            worker.give_up();
            panicked();
        })
        .ok()
    }
}
