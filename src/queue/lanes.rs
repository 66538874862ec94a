//! Which batch may go next, where each sender's order is kept: one request in flight for each worker.

use std::collections::{HashSet, VecDeque};

use crate::batch::Batch;

/// What is in flight, in ordered mode.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// The workers' that have a batch in flight.
    busy: HashSet<usize>,
    /// One from disk is.
    disk: bool,
}

impl Lanes {
    /// The place of the first waiting batch that overtakes none of its lane. One from disk may be of any lane, so it goes when
    /// everything before it is settled, and nothing behind it goes before that is.
    pub(super) fn next(&self, waiting: &VecDeque<Batch>) -> Option<usize> {
        if self.disk {
            return None;
        }
        for (at, batch) in waiting.iter().enumerate() {
            match (batch.ticket, batch.lane) {
                (Some(_), _) if at == 0 && self.busy.is_empty() => return Some(at),
                (Some(_), _) => return None,
                // Of a busy lane: what is behind it in that lane is passed over, too.
                (None, Some(lane)) if self.busy.contains(&lane) => {}
                (None, _) => return Some(at),
            }
        }
        None
    }

    /// The batch leaves.
    pub(super) fn take(&mut self, batch: &Batch) {
        match (batch.ticket, batch.lane) {
            (Some(_), _) => self.disk = true,
            (None, Some(lane)) => drop(self.busy.insert(lane)),
            (None, None) => {}
        }
    }

    /// The batch is settled, or back at the front.
    pub(super) fn free(&mut self, batch: &Batch) {
        match (batch.ticket, batch.lane) {
            (Some(_), _) => self.disk = false,
            (None, Some(lane)) => drop(self.busy.remove(&lane)),
            (None, None) => {}
        }
    }
}
