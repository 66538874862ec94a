//! What does not fit goes to disk, and comes back from there.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tracing::error;

use super::{Queue, Refused};
use crate::batch::Batch;
use crate::logs::Occasionally;
use crate::spool::{self, Spool};

/// A full disk comes with every batch.
static FAILED: Occasionally = Occasionally::new();

impl Queue {
    /// What waits on disk, where there is a spool.
    pub fn spool(&self) -> Option<&Arc<Spool>> {
        self.spool.get()
    }

    /// Overflows into this spool from now on. Where order is kept, what it holds comes before what waits here, which goes behind it.
    pub fn fill_spool(&self, spool: Arc<Spool>) {
        let mut state = self.lock();
        if state.lanes.is_some() && spool.level().events > 0 {
            state.spilled = true;
            // Once in the life of a process, with all workers waiting: that is quicker than it is to keep them apart.
            for batch in std::mem::take(&mut state.waiting) {
                match spool.append(&batch) {
                    Ok(()) => state.levels.waiting.remove(&batch),
                    Err(_) => state.waiting.push_back(batch), // out of order is better than not at all
                }
            }
        }
        state.awaits_disk = false;
        // Under the lock: a worker that has just found no spool is told, or sees it.
        self.spool.fill(spool);
        self.room.notify_all();
        drop(state);
        self.ready.notify_one();
    }

    /// There will be no spool.
    pub fn go_without_spool(&self) {
        self.lock().awaits_disk = false;
        self.ready.notify_one();
    }

    pub(super) fn append(&self, batch: Batch) -> Result<(), Refused> {
        let Some(spool) = self.spool() else { return Err(Refused::Full(batch)) };
        spool.append(&batch).map_err(|refused| match refused {
            spool::Refused::Full => Refused::SpoolFull(batch),
            spool::Refused::Failed(error) => {
                if let Some(suppressed) = FAILED.now() {
                    error!(%error, suppressed, "a batch could not be kept on disk and is shed");
                }
                Refused::SpoolFailed(batch)
            }
        })
    }

    /// Brings batches from disk into memory, oldest first, whenever that is half empty; until the queue is closed or
    /// abandoned. A thread's whole life.
    pub fn refill(&self) {
        const LOOK: Duration = Duration::from_millis(50); // what came to disk gives no sign
        let Some(spool) = self.spool() else { return };
        loop {
            let mut state = self.lock();
            while !state.closed && !state.abandoned && state.levels.waiting.bytes > self.limits.max_bytes / 2
            {
                state = self.room.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            }
            if state.closed || state.abandoned {
                return;
            }
            drop(state);
            let Some(batch) = spool.take() else {
                // What came from there and is not settled bars the way for what is behind it.
                self.lock().spilled &= spool.level().events > 0;
                std::thread::sleep(LOOK);
                continue;
            };
            self.lock().put_last(batch);
            self.ready.notify_one();
        }
    }
}
