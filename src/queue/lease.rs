//! A batch in somebody's hands.

use std::sync::Arc;

use super::{Back, Queue};
use crate::batch::{Batch, Trouble};

/// A batch that is being pushed. Dropped without a verdict, as when its task is cancelled or panics, it goes
/// back to the front of the queue: there is no path on which a batch is forgotten.
#[derive(Debug)]
pub struct Lease {
    queue: Arc<Queue>,
    batch: Option<Batch>,
}

impl Lease {
    pub(super) fn new(queue: Arc<Queue>, batch: Batch) -> Self {
        Self { queue, batch: Some(batch) }
    }

    /// The batch.
    pub fn batch(&self) -> &Batch {
        let Some(batch) = &self.batch else { unreachable!("a settled lease is consumed") };
        batch
    }

    /// Ends the lease: the batch is delivered, or refused for good. Returns it to be counted.
    pub fn settle(mut self) -> Option<Batch> {
        let batch = self.batch.take()?;
        self.queue.settle(&batch, Back::Nothing);
        Some(batch)
    }

    /// Notes what the batch went through, or that it is none of that; it keeps that wherever it goes.
    pub fn set_trouble(&mut self, trouble: Option<Trouble>) {
        if let Some(batch) = &mut self.batch {
            batch.trouble = trouble.map(Box::new);
        }
    }

    /// Puts the batch at the end of the queue, so that all others come before it, unless order is kept.
    pub fn give_way(mut self) {
        self.put_back(Back::Behind);
    }

    /// Puts the batch at the end of the queue, and out of its order.
    pub fn step_aside(mut self) {
        self.put_back(Back::Last);
    }

    fn put_back(&mut self, place: impl FnOnce(Batch) -> Back) {
        if let Some(batch) = self.batch.take() {
            let back = batch.clone();
            self.queue.settle(&batch, place(back));
        }
    }

    /// Replaces the batch by its halves, at the front and in order. A single event comes back to be settled.
    ///
    /// # Errors
    /// The lease itself when the batch cannot be halved.
    pub fn split(mut self) -> Result<(), Self> {
        let Some((first, second)) = self.batch().halves() else { return Err(self) };
        if let Some(batch) = self.batch.take() {
            self.queue.settle(&batch, Back::Halves(first, second));
        }
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.put_back(Back::Whole);
    }
}
