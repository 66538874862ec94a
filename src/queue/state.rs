//! What is behind the queue's lock: where a batch goes, and which one goes next.

use std::collections::VecDeque;

use super::lanes::Lanes;
use crate::batch::Batch;

/// Bytes that a batch costs beside its own: its place in the queue, the allocator's and `Bytes`' books.
pub(super) const OVERHEAD: usize = 160;

/// What the queue holds, in events and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level {
    /// Events.
    pub events: u64,
    /// Bytes of memory.
    pub bytes: usize,
}

/// Both halves of what is neither received anew nor settled yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Levels {
    /// Batches that wait for a stream.
    pub waiting: Level,
    /// Batches that a stream has leased.
    pub in_flight: Level,
}

/// What comes back of a batch.
#[derive(Debug)]
pub(super) enum Back {
    /// It is settled.
    Nothing,
    /// All of it, to be tried again first.
    Whole(Batch),
    /// Its halves, in this order.
    Halves(Batch, Batch),
    /// All of it, to be tried again after all others, unless order is kept.
    Behind(Batch),
    /// All of it, after all others.
    Last(Batch),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) waiting: VecDeque<Batch>,
    pub(super) levels: Levels,
    /// Where each lane's order is kept.
    pub(super) lanes: Option<Lanes>,
    /// Batches are on disk, or on their way from there: where order is kept, new ones go behind them.
    pub(super) spilled: bool,
    /// Nothing leaves yet: the process before has older batches.
    pub(super) held: bool,
    /// Nor while what it has left on disk is out of reach.
    pub(super) awaits_disk: bool,
    /// No worker is left to push: streams end when the rest is settled.
    pub(super) closed: bool,
    /// Nothing is taken or leased any more.
    pub(super) abandoned: bool,
}

impl State {
    /// The place of the batch that goes next.
    pub(super) fn first(&self) -> Option<usize> {
        match &self.lanes {
            _ if self.held || self.awaits_disk => None,
            Some(lanes) => lanes.next(&self.waiting),
            None => (!self.waiting.is_empty()).then_some(0),
        }
    }

    pub(super) fn take(&mut self, at: usize) -> Option<Batch> {
        let batch = self.waiting.remove(at)?;
        if let Some(lanes) = &mut self.lanes {
            lanes.take(&batch);
        }
        self.levels.waiting.remove(&batch);
        self.levels.in_flight.add(&batch);
        Some(batch)
    }

    pub(super) fn put_first(&mut self, batch: Batch) {
        self.levels.waiting.add(&batch);
        self.waiting.push_front(batch);
    }

    pub(super) fn put_last(&mut self, batch: Batch) {
        self.levels.waiting.add(&batch);
        self.waiting.push_back(batch);
    }

    /// Whether a batch would overtake one on disk.
    pub(super) fn must_spill(&self) -> bool {
        self.lanes.is_some() && self.spilled
    }

    pub(super) fn is_finished(&self) -> bool {
        let settled = self.waiting.is_empty() && self.levels.in_flight.events == 0;
        self.abandoned || (self.closed && settled)
    }
}

impl Level {
    pub(super) fn add(&mut self, batch: &Batch) {
        self.events += batch.events;
        self.bytes += batch.weight + OVERHEAD;
    }

    pub(super) fn remove(&mut self, batch: &Batch) {
        self.events -= batch.events;
        self.bytes -= batch.weight + OVERHEAD;
    }
}
