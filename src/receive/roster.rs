//! Which of a listener's threads read: as few as the load needs, and all of them at once when it grows.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::bell::Bell;

/// How long the load must have been low before threads are sent home.
const CALM: Duration = Duration::from_secs(1);

/// The part of its time that a thread may be busy with what is left to it. The rest is for bursts.
const BUSY: f64 = 0.4;

/// A thread that has not rested for this long needs help. The buffers' default size holds nearly twenty times what a burst of a
/// million a second brings in that time.
const LONG: Duration = Duration::from_millis(3);

/// How often the first thread at home looks after those on duty, which a hypervisor or a neighbour can hold up.
pub(super) const WATCH: Duration = Duration::from_millis(50);

/// Nobody is passed over.
const NOBODY: usize = usize::MAX;

/// The duty roster of a listener's threads, of which there are as many as sockets. The first [`Self::reading`] of them are on
/// duty and share the sockets; the others are at home.
#[derive(Debug)]
pub struct Roster {
    reading: AtomicUsize,
    /// The thread whose sockets the next one reads, since it is held up.
    passed_over: AtomicUsize,
    /// Held while these change.
    change: Mutex<()>,
    threads: Box<[Thread]>,
    /// How few may be on duty.
    fewest: usize,
}

#[derive(Debug)]
struct Thread {
    /// How long it has been busy so far, nanoseconds.
    busy: AtomicU64,
    /// Wakes it to look at the roster.
    bell: Bell,
}

impl Roster {
    /// For this many threads, of which the first is on duty or, unless others `may_rest`, all.
    ///
    /// # Errors
    /// The kernel's, as when no file descriptor is left.
    pub fn new(threads: usize, may_rest: bool) -> io::Result<Self> {
        let thread = |_| Ok(Thread { busy: AtomicU64::new(0), bell: Bell::new()? });
        let fewest = if may_rest { 1 } else { threads };
        let threads = (0..threads).map(thread).collect::<io::Result<_>>()?;
        let (reading, passed_over) = (AtomicUsize::new(fewest), AtomicUsize::new(NOBODY));
        Ok(Self { reading, passed_over, change: Mutex::default(), threads, fewest })
    }

    /// How many threads are on duty.
    pub fn reading(&self) -> usize {
        self.reading.load(Acquire)
    }

    /// The thread that reads a socket.
    pub fn reader_of(&self, socket: usize) -> usize {
        let (reading, passed_over) = (self.reading(), self.passed_over.load(Acquire));
        let thread = socket % reading;
        if thread == passed_over { (thread + 1) % reading } else { thread }
    }

    /// The sockets that a thread reads, by number: none where it is at home.
    pub fn sockets_of(&self, thread: usize) -> impl Iterator<Item = usize> {
        (0..self.threads.len()).filter(move |socket| self.reader_of(*socket) == thread)
    }

    /// Whether a thread has sockets to read.
    pub fn is_on_duty(&self, thread: usize) -> bool {
        thread < self.reading() && thread != self.passed_over.load(Acquire)
    }

    /// Calls every thread on duty.
    pub fn call_all(&self) {
        if self.reading() < self.threads.len() {
            let _change = self.lock();
            self.set(self.threads.len(), NOBODY);
        }
    }

    /// Calls all but the thread that should read this socket, for it is held up.
    pub fn pass_over_reader_of(&self, socket: usize) {
        let _change = self.lock();
        if self.reading() < self.threads.len() {
            self.set(self.threads.len(), self.reader_of(socket));
        }
    }

    /// How long a thread may wait at the most, to see to the roster: the first where others might go home, and the first of those
    /// at home, who looks after those on duty.
    pub(super) fn patience(&self, thread: usize) -> Option<Duration> {
        let reading = self.reading();
        match thread {
            0 if reading > self.fewest => Some(CALM),
            _ if thread == reading => Some(WATCH),
            _ => None,
        }
    }

    /// Calls every thread if this one was passed over, for it is there again.
    pub fn come_back(&self, thread: usize) {
        if self.passed_over.load(Acquire) == thread {
            let _change = self.lock();
            self.set(self.threads.len(), NOBODY);
        }
    }

    /// Sends all but the first `stay` threads home, unless somebody `objects`.
    fn keep(&self, stay: usize, objects: impl Fn() -> bool) {
        let stay = stay.max(self.fewest);
        let _change = self.lock();
        if stay < self.reading() && self.passed_over.load(Acquire) == NOBODY && !objects() {
            self.set(stay, NOBODY);
        }
    }

    fn set(&self, reading: usize, passed_over: usize) {
        self.reading.store(reading, Release);
        self.passed_over.store(passed_over, Release);
        for thread in &self.threads {
            thread.bell.ring().ok(); // fails where it rings all the same
        }
    }

    /// Rings when a thread should look at the roster; it stills it before it looks.
    pub(super) fn bell(&self, thread: usize) -> &Bell {
        &self.threads[thread].bell
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
    /// How many were on duty when it last rested.
    reading: usize,
}

impl<'a> Shift<'a> {
    pub(super) fn new(roster: &'a Roster, thread: usize, now: Instant) -> Self {
        Self { roster, thread, since: now, busy: Duration::ZERO, looked: (now, roster.busy()), reading: 0 }
    }

    /// It begins to work, after a rest.
    pub(super) fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// It has worked until now, and may need help.
    pub(super) fn go_on(&mut self, now: Instant) {
        let worked = now.duration_since(self.since);
        let busy = u64::try_from((self.busy + worked).as_nanos()).unwrap_or(u64::MAX);
        self.roster.threads[self.thread].busy.store(busy, Relaxed);
        if worked > LONG {
            self.roster.call_all();
        }
    }

    /// It rests until [`Self::begin`]. Fewer may do, unless somebody `objects`.
    pub(super) fn rest(&mut self, now: Instant, objects: impl Fn() -> bool) {
        self.busy += now.duration_since(self.since);
        self.since = now;
        let reading = self.roster.reading();
        if std::mem::replace(&mut self.reading, reading) < reading {
            self.looked = (now, self.roster.busy()); // what was before the call says nothing
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_socket_is_one_threads_whoever_is_on_duty() {
        let roster = Roster::new(5, true).unwrap();
        for (reading, passed_over, expected) in [
            (1, NOBODY, [&[0, 1, 2, 3, 4][..], &[], &[], &[], &[]]),
            (2, NOBODY, [&[0, 2, 4], &[1, 3], &[], &[], &[]]),
            (4, NOBODY, [&[0, 4], &[1], &[2], &[3], &[]]),
            (5, NOBODY, [&[0], &[1], &[2], &[3], &[4]]),
            (5, 0, [&[], &[0, 1], &[2], &[3], &[4]]),
            (5, 4, [&[0, 4], &[1], &[2], &[3], &[]]),
        ] {
            roster.set(reading, passed_over);
            for (thread, sockets) in expected.iter().enumerate() {
                assert_eq!(&roster.sockets_of(thread).collect::<Vec<_>>(), sockets);
                assert_eq!(roster.is_on_duty(thread), !sockets.is_empty());
            }
        }
    }

    #[test]
    fn who_is_held_up_is_passed_over_until_it_is_back() {
        let (roster, start) = (Roster::new(3, true).unwrap(), Instant::now());
        roster.pass_over_reader_of(2);
        assert_eq!((0..3).map(|socket| roster.reader_of(socket)).collect::<Vec<_>>(), [1, 1, 2]);
        let mut shift = Shift::new(&roster, 0, start);
        shift.rest(start, || false);
        shift.rest(start + CALM, || false);
        roster.come_back(1);
        assert!(!roster.is_on_duty(0), "nobody is sent home meanwhile, nor called back by another");
        roster.come_back(0);
        assert_eq!((0..3).map(|socket| roster.reader_of(socket)).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn the_first_and_the_first_at_home_have_to_look() {
        let roster = Roster::new(4, true).unwrap();
        for (reading, patience) in [
            (1, [None, Some(WATCH), None, None]),
            (3, [Some(CALM), None, None, Some(WATCH)]),
            (4, [Some(CALM), None, None, None]),
        ] {
            roster.set(reading, NOBODY);
            assert_eq!([0, 1, 2, 3].map(|thread| roster.patience(thread)), patience);
        }
    }

    #[test]
    fn nobody_rests_where_nobody_may() {
        let (roster, start) = (Roster::new(3, false).unwrap(), Instant::now());
        let mut shift = Shift::new(&roster, 0, start);
        shift.rest(start, || false);
        shift.rest(start + CALM, || false);
        assert_eq!((roster.reading(), roster.patience(0)), (3, None));
    }

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn who_does_not_come_to_rest_calls_the_others() {
        let (roster, start) = (Roster::new(3, true).unwrap(), Instant::now());
        let mut shift = Shift::new(&roster, 0, start);
        shift.go_on(start + LONG);
        shift.rest(start + LONG, || false);
        shift.begin(start + LONG * 2);
        shift.go_on(start + LONG * 3);
        assert_eq!(roster.reading(), 1, "it had rested");
        shift.go_on(start + LONG * 3 + MILLISECOND);
        assert_eq!(roster.reading(), 3);
    }

    #[test]
    fn as_many_stay_as_the_last_second_needed() {
        let (roster, start) = (Roster::new(16, true).unwrap(), Instant::now());
        let mut shift = Shift::new(&roster, 0, start);
        let mut second = |end: u32, of_others: u64, objects: bool| {
            roster.threads[7].busy.fetch_add(of_others * 1_000_000, Relaxed);
            let end = start + MILLISECOND * end;
            shift.begin(end - MILLISECOND);
            shift.go_on(end);
            shift.rest(end, || objects);
            roster.reading()
        };
        assert_eq!(second(60_000, 0, false), 1, "a quiet minute");
        roster.call_all();
        assert_eq!(second(60_100, 0, false), 16, "is over");
        assert_eq!(second(61_099, 2_099, false), 16, "not yet");
        assert_eq!(second(61_100, 0, false), 6, "2.1 s of work in a second, 0.4 s each");
        assert_eq!(second(62_100, 0, true), 6, "somebody objects");
        assert_eq!(second(63_100, 300, false), 1);
        assert_eq!(second(64_100, 10_000, false), 1, "who needs help calls for it");
    }
}
