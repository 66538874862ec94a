//! The bounded queue between receive workers (threads) and pusher streams (tasks).
//!
//! In: closed batches. Out: [`Lease`]s, which come back by themselves unless they are settled. What can be
//! lost: with `drop_newest`, a batch that does not fit; after [`Queue::abandon`], what is left.
//!
//! One lock, taken once a batch and never across an await: at 100,000 events a second, a hundred times.

mod lanes;
mod lease;
mod overflow;
mod state;

pub use lease::Lease;
pub use state::{Level, Levels};

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::batch::Batch;
use crate::config::{Buffer, WhenFull};
use crate::spool::Place;
use lanes::Lanes;
use state::{Back, OVERHEAD, State};

/// A bounded queue of batches. Failed ones go back to its front.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    /// Signals workers that wait for room.
    room: Condvar,
    /// Signals streams that wait for a batch.
    ready: Notify,
    /// Signals those that wait for the end. Not `ready`: they would take wake-ups that streams need.
    done: Notify,
    limits: Buffer,
    /// Where batches wait that do not fit.
    spool: Arc<Place>,
    /// The state's flag of that name, for those who ask too often for the lock.
    abandoned: AtomicBool,
}

/// A batch that was not taken, and why.
#[derive(Debug)]
pub enum Refused {
    /// The queue is full and told to drop the newest.
    Full(Batch),
    /// Nor does it fit on disk.
    SpoolFull(Batch),
    /// The disk does not take it.
    SpoolFailed(Batch),
    /// The process is past its shutdown deadline.
    Abandoned(Batch),
}

impl Queue {
    /// An empty queue.
    pub fn new(limits: Buffer) -> Arc<Self> {
        Self::over(limits, Arc::default())
    }

    /// An empty queue that overflows into a spool, where there is one.
    pub fn over(limits: Buffer, spool: Arc<Place>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            room: Condvar::new(),
            ready: Notify::new(),
            done: Notify::new(),
            limits,
            spool,
            abandoned: AtomicBool::new(false),
        })
    }

    /// Keeps the order of each worker's batches from now on: one of them in flight at a time.
    pub fn keep_order(&self) {
        let mut state = self.lock();
        state.lanes = Some(Lanes::default());
        state.spilled = self.spool().is_some_and(|spool| spool.level().events > 0);
    }

    /// Lets nothing out until [`Self::let_go`] and, where batches overflow, until there is a spool.
    pub fn hold(&self) {
        let mut state = self.lock();
        state.held = true;
        state.awaits_disk = self.limits.when_full == WhenFull::Overflow && self.spool().is_none();
    }

    /// Lets batches out.
    pub fn let_go(&self) {
        self.lock().held = false;
        self.ready.notify_one();
    }

    /// Adds a batch at the end; with `block`, waits for room. An empty queue takes a batch of any size.
    ///
    /// # Errors
    /// The batch comes back where it was not taken: the caller counts it.
    pub fn push(&self, batch: Batch) -> Result<(), Refused> {
        self.push_telling(batch, || {})
    }

    /// The same, and calls `before_waiting` before it waits, for room or for the disk.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_telling(&self, batch: Batch, before_waiting: impl Fn()) -> Result<(), Refused> {
        self.admit(batch, self.limits.when_full, before_waiting)
    }

    /// Adds a batch at the end if there is room for it now.
    ///
    /// # Errors
    /// The batch comes back where it was not taken.
    pub fn offer(&self, batch: Batch) -> Result<(), Refused> {
        self.admit(batch, WhenFull::DropNewest, || {})
    }

    fn admit(&self, batch: Batch, when_full: WhenFull, before_waiting: impl Fn()) -> Result<(), Refused> {
        // A batch that has to wait should not hold more memory than it needs.
        let batch = if self.levels().waiting.events > 0 { batch.compacted() } else { batch };
        let (mut state, mut told) = (self.lock(), false);
        loop {
            if state.abandoned {
                drop(state);
                return if self.spool().is_some() {
                    self.append(batch)
                } else {
                    Err(Refused::Abandoned(batch))
                };
            }
            let fits = state.waiting.is_empty()
                || state.levels.waiting.bytes + batch.weight + OVERHEAD <= self.limits.max_bytes;
            if fits && !state.must_spill() {
                break;
            }
            match when_full {
                WhenFull::DropNewest => return Err(Refused::Full(batch)),
                WhenFull::Overflow if self.spool().is_some() => {
                    let keeps_order = state.lanes.is_some();
                    drop(state);
                    before_waiting(); // a disk takes its time
                    let appended = self.append(batch);
                    if keeps_order {
                        // Only now: it may have been found empty meanwhile.
                        self.lock().spilled = true;
                    }
                    return appended;
                }
                // With `overflow`: until the process before lets go of the disk.
                WhenFull::Block | WhenFull::Overflow if !told => {
                    drop(state);
                    before_waiting();
                    told = true;
                    state = self.lock();
                }
                WhenFull::Block | WhenFull::Overflow => {
                    state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        state.put_last(batch);
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Takes the first batch, waiting for one; none once the queue is closed and all is settled.
    pub async fn lease(self: &Arc<Self>) -> Option<Lease> {
        loop {
            // Registered before the look, so that a push between look and wait is not missed.
            let ready = self.ready.notified();
            tokio::pin!(ready);
            ready.as_mut().enable();
            {
                let mut state = self.lock();
                if state.is_finished() {
                    return None;
                }
                if let Some(batch) = state.first().and_then(|at| state.take(at)) {
                    let more = !state.waiting.is_empty();
                    drop(state);
                    self.room.notify_all();
                    if more {
                        self.ready.notify_one();
                    }
                    return Some(Lease::new(Arc::clone(self), batch));
                }
            }
            ready.await;
        }
    }

    /// Takes the first batch if there is one and it is as `wanted`.
    pub fn lease_if(self: &Arc<Self>, wanted: impl FnOnce(&Batch) -> bool) -> Option<Lease> {
        let mut state = self.lock();
        let at = state.first().filter(|_| !state.abandoned)?;
        let batch = if wanted(&state.waiting[at]) { state.take(at)? } else { return None };
        drop(state);
        self.room.notify_all();
        Some(Lease::new(Arc::clone(self), batch))
    }

    /// Waits until no work is left and none can come, or all is abandoned.
    pub async fn finished(&self) {
        loop {
            let done = self.done.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            if self.lock().is_finished() {
                return;
            }
            done.await;
        }
    }

    /// Says that no worker will push again.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake_all();
    }

    /// Ends everything at once: workers and streams return, and what waits stays to be counted.
    pub fn abandon(&self) {
        self.lock().abandoned = true;
        self.abandoned.store(true, Relaxed);
        self.wake_all();
        self.room.notify_all();
    }

    /// True once everything has ended.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Relaxed)
    }

    /// Takes what is left after [`Self::abandon`], to be counted.
    pub fn leftovers(&self) -> Vec<Batch> {
        let mut state = self.lock();
        state.levels.waiting = Level::default();
        state.waiting.drain(..).collect()
    }

    /// What waits and what is in flight.
    pub fn levels(&self) -> Levels {
        self.lock().levels
    }

    fn settle(&self, batch: &Batch, back: Back) {
        let mut state = self.lock();
        state.levels.in_flight.remove(batch);
        let is_final = matches!(back, Back::Nothing);
        let keeps_order = state.lanes.is_some();
        if let Some(lanes) = &mut state.lanes {
            lanes.free(batch);
        }
        match back {
            Back::Nothing => {}
            Back::Whole(batch) => state.put_first(batch),
            Back::Halves(first, second) => {
                state.put_first(second);
                state.put_first(first);
            }
            Back::Behind(batch) if keeps_order => state.put_first(batch),
            Back::Behind(batch) | Back::Last(batch) => state.put_last(batch),
        }
        if let (true, Some(spool), Some(ticket)) = (is_final, self.spool(), batch.ticket) {
            spool.settle(ticket, batch.events);
        }
        let (some, finished) = (!state.waiting.is_empty(), state.is_finished());
        drop(state);
        if finished {
            self.wake_all();
        } else if some {
            self.ready.notify_one();
        }
    }

    fn wake_all(&self) {
        self.ready.notify_waiters();
        self.done.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent at every unlock, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
