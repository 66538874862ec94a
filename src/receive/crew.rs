//! A listener's threads and its workers: every socket has a worker, and every worker is some thread's.
//!
//! A thread for each socket, awake all the time, wastes CPU where one thread could read them all: at 80,000/s two cost a quarter
//! more than one, sixteen twice as much (bench/HISTORY.md). So threads that are not needed stay at home, and their sockets are
//! read by others. Nothing changes for who sends: each socket is open, steered to and buffered as before.

use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::roster::Shift;
use super::worker::Reader;
use super::{DEPTH, Member, Pace, Roster, Step, Stop, Worker};
use crate::books::WorkerBooks;
use crate::socket::slots::Slots;

/// When to look again at a socket that another thread was at: soon, and not so often as to cost anything where that one waits for
/// room.
const AGAIN: Duration = Duration::from_millis(5);

/// How often the first thread at home looks after those on duty, which a hypervisor or a neighbour can hold up.
const WATCH: Duration = Duration::from_millis(50);

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
    max_length: usize,
    /// Granted to each socket, bytes.
    buffer: usize,
}

impl Crew {
    /// A crew without workers, for sockets granted `buffer` bytes each and datagrams of up to `max_length` bytes.
    pub fn new(roster: Arc<Roster>, stop: Arc<Stop>, max_length: usize, buffer: usize) -> Self {
        Self { seats: Vec::new(), roster, stop, max_length, buffer }
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
        let (own, mut seen) = (&self.seats[thread], Vec::new());
        while !self.stop.is_given() {
            self.roster.come_back(thread);
            own.books.has_thread.store(self.roster.is_on_duty(thread), Relaxed);
            let step = self.sweep(thread, (&mut slots, &mut pace), &panicked);
            let now = Instant::now();
            shift.go_on(now);
            if step != Step::Read {
                shift.rest(now, || self.needs_all());
                self.rest(thread, step, now);
                if thread == self.roster.reading() {
                    self.look_after(&mut seen);
                }
                shift.begin(Instant::now());
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
                let watch = (thread == self.roster.reading()).then_some(WATCH);
                let mut awaited = vec![self.roster.wake(thread)];
                awaited.extend(seats().filter(|seat| !seat.is_gone()).map(|seat| seat.socket.as_fd()));
                self.stop.wait(&awaited, timeout.or(watch));
                self.roster.is_awake(thread);
            }
        }
    }

    /// Passes over a thread that leaves a socket unread in which something waits, now and at the last look: `seen` has the reads
    /// so far of each such socket.
    fn look_after(&self, seen: &mut Vec<Option<u64>>) {
        let mut sockets: Vec<_> =
            self.seats.iter().map(|seat| PollFd::new(&*seat.socket, PollFlags::IN)).collect();
        if poll(&mut sockets, Some(&Timespec::default())).is_err() {
            return;
        }
        let waits = |socket: &PollFd<'_>| socket.revents().contains(PollFlags::IN);
        let unread = |(seat, socket): (&Seat, &PollFd<'_>)| waits(socket).then(|| seat.books.reads());
        let now: Vec<_> = self.seats.iter().zip(&sockets).map(unread).collect();
        if let Some(socket) = now.iter().zip(&*seen).position(|(now, then)| now.is_some() && now == then) {
            self.roster.pass_over(self.roster.reader_of(socket));
        }
        *seen = now;
    }

    /// True while a worker waits for room, or may have to for a program: nobody else's socket shall wait with it.
    fn needs_all(&self) -> bool {
        let may_wait = |seat: &Seat| {
            seat.books.waits_for_room() || seat.try_lock().is_none_or(|worker| worker.is_slow())
        };
        self.seats.iter().any(may_wait)
    }
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
