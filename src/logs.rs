//! Logs to stderr, and a brake for lines that a fault would repeat for every batch.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// Sends logs to stderr: `info` and above unless `RUST_LOG` says otherwise. A second call changes nothing.
///
/// A thread of its own writes them, and drops what it cannot keep up with: a stderr that is full, or that nobody
/// reads any more, must not stop a datagram. Keep the guard until the end, so that the last lines are written.
pub fn start() -> WorkerGuard {
    let (writer, guard) = NonBlockingBuilder::default().lossy(true).finish(io::stderr());
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let human = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .log_internal_errors(false);
    // It fails only where logs were started before, as in a test that runs two commands.
    human.try_init().ok();
    guard
}

/// Lets one through each second, and says how many it held back since.
#[derive(Debug)]
pub struct Occasionally {
    state: Mutex<(Option<Instant>, u64)>,
}

impl Occasionally {
    const INTERVAL: Duration = Duration::from_secs(1);

    /// One that has let nothing through yet.
    pub const fn new() -> Self {
        Self { state: Mutex::new((None, 0)) }
    }

    /// The number held back since the last one, when it is time for the next.
    pub fn now(&self) -> Option<u64> {
        self.at(Instant::now())
    }

    fn at(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, held_back) = &mut *state;
        if last.is_some_and(|last| now.duration_since(last) < Self::INTERVAL) {
            *held_back += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(held_back))
    }
}

impl Default for Occasionally {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_a_second_and_the_rest_counted() {
        let (limit, start) = (Occasionally::new(), Instant::now());
        let at = |ms| limit.at(start + Duration::from_millis(ms));
        assert_eq!(
            [at(0), at(1), at(999), at(1_000), at(1_500), at(3_000)],
            [Some(0), None, None, Some(2), None, Some(1)]
        );
    }
}
