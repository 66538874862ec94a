//! Logs to stderr, and a brake for lines that a fault would repeat for every batch.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::config::{Log, LogFormat, LogLevel};

type Lines = Box<dyn Layer<Registry> + Send + Sync>;

/// What may be changed while the process runs.
struct Handles {
    writer: NonBlocking,
    lines: reload::Handle<Lines, Registry>,
    filter: Box<dyn Fn(EnvFilter) + Send + Sync>,
}

/// Lines that wait to be written at the most. Their places are made at the start: 4 MB for the library's default.
const LINES: usize = 4_096;

static HANDLES: OnceLock<Handles> = OnceLock::new();

/// Sends logs to stderr, by the defaults until [`configure`] says more. A second call changes nothing.
///
/// A thread of its own writes them, and drops what it cannot keep up with: a stderr that is full, or that nobody
/// reads any more, must not stop a datagram. Keep the guard until the end, so that the last lines are written.
pub fn start() -> WorkerGuard {
    let (writer, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).finish(io::stderr());
    let log = Log::default();
    let (lines, lines_handle) = reload::Layer::new(lines(&writer, log.format));
    let (filter, filter_handle) = reload::Layer::new(filter(log.level));
    // It fails only where logs were started before, as in a test that runs two commands.
    if tracing_subscriber::registry().with(lines).with(filter).try_init().is_ok() {
        let filter = Box::new(move |filter| filter_handle.reload(filter).unwrap_or_default());
        HANDLES.set(Handles { writer, lines: lines_handle, filter }).ok();
    }
    guard
}

/// Changes what is logged, and how.
pub fn configure(log: &Log) {
    let Some(handles) = HANDLES.get() else { return };
    handles.lines.reload(lines(&handles.writer, log.format)).unwrap_or_default();
    (handles.filter)(filter(log.level));
}

fn lines(writer: &NonBlocking, format: LogFormat) -> Lines {
    let on_terminal = io::stderr().is_terminal();
    let layer = fmt::layer().with_writer(writer.clone()).with_target(false).log_internal_errors(false);
    match format {
        LogFormat::Text => layer.with_ansi(on_terminal).boxed(),
        LogFormat::Auto if on_terminal => layer.with_ansi(true).boxed(),
        // Without spans: those that were opened before a change of format have no fields in this one.
        _ => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    }
}

/// `RUST_LOG`, where it is set, is for developers and comes first.
fn filter(level: LogLevel) -> EnvFilter {
    let word = format!("{level:?}").to_lowercase();
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(word))
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
