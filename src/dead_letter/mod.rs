//! What Vector refuses for good, kept in a file: one JSON line for each event.
//!
//! In: [`Letter`]s, each the events of a request. Out: lines of `dead_letter.path`, which `load --corpus` sends again. A
//! thread of its own writes them. Nothing here stops the flow: what cannot be written is counted and logged.

mod file;
mod row;

pub(crate) use row::replayed;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::Code;
use tracing::{error, warn};

use crate::books::{DeadLetterBooks, Rejected};
use crate::config::DeadLetter;
use crate::datagram::Timestamp;
use crate::logs::Occasionally;
use file::Outcome;

/// Letters that may wait to be written; each holds a request's memory.
pub const WAITING: usize = 8;

/// How long a pusher waits for a place among them, as when the disk hangs.
const PATIENCE: Duration = Duration::from_secs(1);

static FULL: Occasionally = Occasionally::new();
static FAILED: Occasionally = Occasionally::new();
static BEHIND: Occasionally = Occasionally::new();

/// Events that were rejected together.
#[derive(Debug, Clone)]
pub struct Letter {
    /// When they were rejected.
    pub time: Timestamp,
    /// Why.
    pub reason: Rejected,
    /// The status that they were answered with; none where there was no answer.
    pub code: Option<Code>,
    /// What that status says.
    pub message: String,
    /// The request's body: gRPC's prefix, then a `PushEventsRequest`.
    pub body: Bytes,
    /// Events in it.
    pub events: u64,
}

/// Where letters are handed in; does nothing where no file is configured.
#[derive(Debug, Clone)]
pub struct DeadLetters {
    letters: Option<mpsc::Sender<Letter>>,
    books: Arc<DeadLetterBooks>,
}

/// The thread that writes; over once every [`DeadLetters`] is gone.
#[derive(Debug)]
pub struct Writing(JoinHandle<()>);

impl DeadLetters {
    /// Opens the file, so that a wrong path is said at once, and starts to write. Call it on a runtime.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn start(config: &DeadLetter, books: Arc<DeadLetterBooks>) -> io::Result<(Self, Writing)> {
        let Some(path) = config.path.clone() else {
            return Ok((Self { letters: None, books }, Writing(tokio::spawn(async {}))));
        };
        let file = file::Bounded::new(path, config.max_bytes as u64);
        file.probe()?;
        let (letters, mut waiting) = mpsc::channel(WAITING);
        let counted = Arc::clone(&books);
        let writing = tokio::task::spawn_blocking(move || {
            while let Some(letter) = waiting.blocking_recv() {
                write(&file, &letter, &counted);
            }
        });
        Ok((Self { letters: Some(letters), books }, Writing(writing)))
    }

    /// Hands in a letter. Waits a moment for a place, never for the disk.
    pub async fn post(&self, letter: Letter) {
        let Some(letters) = &self.letters else { return };
        let events = letter.events;
        if letters.send_timeout(letter, PATIENCE).await.is_err() {
            self.books.behind.fetch_add(events, Relaxed);
            if let Some(suppressed) = BEHIND.now() {
                error!(
                    events,
                    suppressed, "the dead-letter file's disk is too slow: not written, but counted"
                );
            }
        }
    }
}

impl Writing {
    /// Waits until the last letter is written; false when that takes longer than `timeout`.
    pub async fn end(self, timeout: Duration) -> bool {
        tokio::time::timeout(timeout, self.0).await.is_ok()
    }
}

fn write(file: &file::Bounded, letter: &Letter, books: &DeadLetterBooks) {
    let Outcome { written, unfit, failed } = file.append(row::lines(letter));
    books.written.fetch_add(written, Relaxed);
    books.full.fetch_add(unfit, Relaxed);
    if unfit > 0
        && let Some(suppressed) = FULL.now()
    {
        let path = file.path().display();
        warn!(%path, events = unfit, suppressed, "the dead-letter file is full: move it away, or raise dead_letter.max_bytes");
    }
    if let Some((lost, error)) = failed {
        books.failed.fetch_add(lost, Relaxed);
        if let Some(suppressed) = FAILED.now() {
            let path = file.path().display();
            error!(%path, %error, events = lost, suppressed, "cannot write dead letters; they are counted");
        }
    }
}
