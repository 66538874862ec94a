//! Live: the workers make progress. Ready: the sockets are bound and the queue has room.
//!
//! Ready does not mean "Vector is up": an unready pod loses UDP at once, while one that waits for Vector holds it.

use std::time::{Duration, Instant};

/// A worker that has something to read and does not read it for this long is stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a probe is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Why the process should be started again; nothing when it should not.
    pub live: Result<(), String>,
    /// Why it should get no more datagrams, if there is a choice.
    pub ready: Result<(), String>,
}

impl Health {
    /// True when the process should go on.
    pub fn is_live(&self) -> bool {
        self.live.is_ok()
    }

    /// True when it should get datagrams.
    pub fn is_ready(&self) -> bool {
        self.ready.is_ok()
    }
}

/// What is known of a worker at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerState {
    /// Reads of its socket so far.
    pub reads: u64,
    /// True when datagrams wait in its socket.
    pub has_work: bool,
    /// True while it waits for room in the queue, which is back-pressure and no fault.
    pub waits_for_room: bool,
    /// True once it has panicked.
    pub gone: bool,
}

/// Follows the workers from look to look.
#[derive(Debug, Default)]
pub struct Progress {
    seen: Vec<(u64, Instant)>,
}

impl Progress {
    /// Judges by what changed since the last look. Reads no clock.
    pub fn look(&mut self, now: Instant, workers: &[WorkerState], ready: Result<(), String>) -> Health {
        self.seen.resize(workers.len(), (0, now));
        let mut live = Ok(());
        for (number, (worker, (reads, since))) in workers.iter().zip(&mut self.seen).enumerate() {
            if worker.reads != *reads || !worker.has_work || worker.waits_for_room {
                (*reads, *since) = (worker.reads, now);
            }
            if worker.gone {
                live = Err(format!("worker {number} has panicked"));
            } else if now.duration_since(*since) > PATIENCE {
                live = Err(format!("worker {number} has not read its socket for {} s", PATIENCE.as_secs()));
            }
        }
        Health { live, ready }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_worker_that_has_work_and_does_nothing_is_stuck() {
        let start = Instant::now();
        let worker =
            |reads, has_work, waits_for_room| WorkerState { reads, has_work, waits_for_room, gone: false };
        let after = |progress: &mut Progress, seconds, worker| {
            progress.look(start + Duration::from_secs(seconds), &[worker], Ok(())).is_live()
        };
        let mut progress = Progress::default();
        assert!(after(&mut progress, 0, worker(5, true, false)));
        assert!(after(&mut progress, 9, worker(5, true, false)));
        assert!(after(&mut progress, 10, worker(6, true, false)), "it read");
        assert!(!after(&mut progress, 21, worker(6, true, false)), "it stopped");
        assert!(after(&mut progress, 22, worker(7, true, false)), "it went on");
        assert!(after(&mut progress, 100, worker(7, false, false)), "it is idle");
        assert!(after(&mut progress, 200, worker(7, true, true)), "it waits for room");
        assert!(after(&mut progress, 205, worker(7, true, false)));
        let gone = WorkerState { gone: true, ..worker(7, false, false) };
        assert!(!after(&mut progress, 206, gone));
    }
}
