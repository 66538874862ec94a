//! Which of a listener's threads read: as few as the load needs, and all of them at once when it grows.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

/// How long the load must have been low before threads are sent home.
const CALM: Duration = Duration::from_secs(1);

/// The part of its time that a thread may be busy with what is left to it. The rest is for bursts.
const BUSY: f64 = 0.4;

/// A thread that has not rested for this long needs help. The buffers' default size holds nearly twenty times what a burst of a
/// million a second brings in that time.
const LONG: Duration = Duration::from_millis(3);

/// A thread on duty that has taken no turn for this long is held up, by the scheduler or a neighbour: others read for it.
const HELD_UP: Duration = Duration::from_millis(50);

/// Said of a thread that waits in the kernel for a datagram.
const WAITS: u64 = u64::MAX;

/// The duty roster of a listener's threads, of which there are as many as sockets. The first [`Self::reading`] of them are on
/// duty and share the sockets; the others are at home.
#[derive(Debug)]
pub struct Roster {
    reading: AtomicUsize,
    /// Held while that changes.
    change: Mutex<()>,
    threads: Box<[Thread]>,
    /// What times are counted from.
    epoch: Instant,
}

#[derive(Debug)]
struct Thread {
    /// How long it has been busy so far, nanoseconds.
    busy: AtomicU64,
    /// When it last began to work, nanoseconds, or that it waits.
    began: AtomicU64,
    /// An eventfd that wakes it to look at the roster.
    wake: OwnedFd,
}

impl Roster {
    /// For this many threads, of which the first is on duty.
    ///
    /// # Errors
    /// The kernel's, as when no file descriptor is left.
    pub fn new(threads: usize) -> io::Result<Self> {
        let thread = |_| {
            let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Thread { busy: AtomicU64::new(0), began: AtomicU64::new(WAITS), wake })
        };
        let threads = (0..threads).map(thread).collect::<io::Result<_>>()?;
        Ok(Self { reading: AtomicUsize::new(1), change: Mutex::default(), threads, epoch: Instant::now() })
    }

    /// How many threads are on duty.
    pub fn reading(&self) -> usize {
        self.reading.load(Acquire)
    }

    /// The sockets that a thread reads, by number: none where it is at home.
    pub fn sockets_of(&self, thread: usize) -> impl ExactSizeIterator<Item = usize> + use<> {
        let reading = self.reading();
        let end = if thread < reading { self.threads.len() } else { thread };
        (thread..end).step_by(reading)
    }

    /// Whether a socket is a thread's to read.
    pub fn is_of(&self, thread: usize, socket: usize) -> bool {
        socket % self.reading() == thread
    }

    /// Calls every thread on duty.
    pub fn call_all(&self) {
        if self.reading() < self.threads.len() {
            let _change = self.lock();
            self.set(self.threads.len());
        }
    }

    /// Sends all but the first `stay` threads home, unless somebody `objects`.
    fn keep(&self, stay: usize, objects: impl Fn() -> bool) {
        let _change = self.lock();
        if stay < self.reading() && !objects() {
            self.set(stay);
        }
    }

    fn set(&self, reading: usize) {
        self.reading.store(reading, Release);
        for thread in &self.threads {
            // It fails when the counter is at its end, which wakes as well.
            rustix::io::write(&thread.wake, &1u64.to_ne_bytes()).ok();
        }
    }

    /// Readable when a thread should look at the roster.
    pub(super) fn wake(&self, thread: usize) -> BorrowedFd<'_> {
        self.threads[thread].wake.as_fd()
    }

    /// It has looked, or is about to.
    pub(super) fn is_awake(&self, thread: usize) {
        rustix::io::read(&self.threads[thread].wake, &mut [0; 8]).ok(); // fails when there was no call
    }

    /// How long a thread may stay at home before it looks after those on duty: only the first of those at home does.
    pub(super) fn watch(&self, thread: usize) -> Option<Duration> {
        (thread == self.reading()).then_some(HELD_UP)
    }

    /// Calls every thread on duty when one that is has been held up.
    pub(super) fn look_after(&self, now: Instant) {
        let on_duty = &self.threads[..self.reading()];
        let began = on_duty.iter().map(|thread| thread.began.load(Relaxed)).min();
        if began.is_some_and(|began| began != WAITS && began + nanos(HELD_UP) < nanos(now - self.epoch)) {
            self.call_all();
        }
    }

    fn busy(&self) -> Duration {
        Duration::from_nanos(self.threads.iter().map(|thread| thread.busy.load(Relaxed)).sum())
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread's time: notes how long it is busy, calls the others when that is long and, the first, sends them home again. Reads
/// no clock.
#[derive(Debug)]
pub(super) struct Shift<'a> {
    roster: &'a Roster,
    thread: usize,
    /// When it last began to work after a rest.
    since: Instant,
    /// How long it had been busy by then.
    busy: Duration,
    /// When the first last looked how busy all are, and how busy they had been.
    looked: (Instant, Duration),
}

impl<'a> Shift<'a> {
    pub(super) fn new(roster: &'a Roster, thread: usize, now: Instant) -> Self {
        Self { roster, thread, since: now, busy: Duration::ZERO, looked: (now, roster.busy()) }
    }

    /// It begins to work, after a rest.
    pub(super) fn begin(&mut self, now: Instant) {
        self.since = now;
        self.thread().began.store(nanos(now - self.roster.epoch), Relaxed);
    }

    /// It has worked until now, and may need help.
    pub(super) fn go_on(&mut self, now: Instant) {
        let worked = now.duration_since(self.since);
        self.thread().busy.store(nanos(self.busy + worked), Relaxed);
        if worked > LONG {
            self.roster.call_all();
        }
    }

    /// It rests until [`Self::begin`], in the kernel where it `waits`. Fewer may do, unless somebody `objects`.
    pub(super) fn rest(&mut self, now: Instant, waits: bool, objects: impl Fn() -> bool) {
        self.busy += now.duration_since(self.since);
        self.since = now;
        if waits {
            self.thread().began.store(WAITS, Relaxed);
        }
        let (then, before) = self.looked;
        let time = now.duration_since(then);
        if self.thread == 0 && time >= CALM {
            let busy = self.roster.busy();
            self.looked = (now, busy);
            let needed = busy.saturating_sub(before).as_secs_f64() / time.as_secs_f64() / BUSY;
            self.roster.keep((needed.ceil() as usize).max(1), objects);
        }
    }

    fn thread(&self) -> &Thread {
        &self.roster.threads[self.thread]
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(WAITS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(roster: &Roster, threads: usize) -> Vec<Vec<usize>> {
        (0..threads).map(|thread| roster.sockets_of(thread).collect()).collect()
    }

    #[test]
    fn every_socket_is_one_threads_whoever_is_on_duty() {
        let roster = Roster::new(5).unwrap();
        for (reading, expected) in [
            (1, vec![vec![0, 1, 2, 3, 4], vec![], vec![], vec![], vec![]]),
            (2, vec![vec![0, 2, 4], vec![1, 3], vec![], vec![], vec![]]),
            (4, vec![vec![0, 4], vec![1], vec![2], vec![3], vec![]]),
            (5, vec![vec![0], vec![1], vec![2], vec![3], vec![4]]),
        ] {
            roster.set(reading);
            assert_eq!(owners(&roster, 5), expected);
            for (thread, sockets) in expected.iter().enumerate() {
                assert!((0..5).all(|socket| roster.is_of(thread, socket) == sockets.contains(&socket)));
            }
        }
    }

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn who_does_not_come_to_rest_calls_the_others() {
        let (roster, start) = (Roster::new(3).unwrap(), Instant::now());
        let mut shift = Shift::new(&roster, 0, start);
        shift.go_on(start + LONG);
        shift.rest(start + LONG, false, || false);
        shift.begin(start + LONG * 2);
        shift.go_on(start + LONG * 3);
        assert_eq!(roster.reading(), 1, "it had rested");
        shift.go_on(start + LONG * 3 + MILLISECOND);
        assert_eq!(roster.reading(), 3);
    }

    #[test]
    fn as_many_stay_as_the_last_second_needed() {
        let (roster, start) = (Roster::new(16).unwrap(), Instant::now());
        let mut shift = Shift::new(&roster, 0, start);
        let mut second = |end: u32, of_others: u64, objects: bool| {
            roster.threads[7].busy.fetch_add(of_others * 1_000_000, Relaxed);
            let end = start + MILLISECOND * end;
            shift.begin(end - MILLISECOND);
            shift.go_on(end);
            shift.rest(end, false, || objects);
            roster.reading()
        };
        roster.call_all();
        assert_eq!(second(999, 2_099, false), 16, "not yet");
        assert_eq!(second(1_000, 0, false), 6, "2.1 s of work in a second, 0.4 s each");
        assert_eq!(second(2_000, 0, true), 6, "somebody objects");
        assert_eq!(second(3_000, 300, false), 1);
        assert_eq!(second(4_000, 10_000, false), 1, "who needs help calls for it");
    }

    #[test]
    fn the_first_at_home_looks_after_those_on_duty() {
        let roster = Roster::new(4).unwrap();
        let start = roster.epoch;
        let mut shift = Shift::new(&roster, 0, start);
        roster.set(2);
        assert_eq!([1, 2, 3].map(|thread| roster.watch(thread)), [None, Some(HELD_UP), None]);
        roster.look_after(start + HELD_UP * 9);
        assert_eq!(roster.reading(), 2, "both wait");
        shift.begin(start + HELD_UP);
        roster.look_after(start + HELD_UP * 2);
        shift.begin(start + HELD_UP * 3);
        shift.rest(start + HELD_UP * 3, true, || false);
        roster.look_after(start + HELD_UP * 9);
        assert_eq!(roster.reading(), 2, "it works, then it waits");
        shift.begin(start + HELD_UP * 9);
        roster.look_after(start + HELD_UP * 10 + MILLISECOND);
        assert_eq!(roster.reading(), 4, "it is held up");
    }
}
