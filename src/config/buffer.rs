//! What events wait in: batches, and the queue.

use std::time::Duration;

/// When a batch closes: whichever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Batch {
    /// Bytes on the wire.
    pub max_bytes: usize,
    /// Events.
    pub max_events: usize,
    /// Age.
    pub timeout: Duration,
}

impl Default for Batch {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_events: 1_000, timeout: Duration::from_millis(200) }
    }
}

/// The queue between workers and pushers.
#[derive(Debug, Clone, Copy)]
pub struct Buffer {
    /// Bytes of waiting batches.
    pub max_bytes: usize,
    /// What happens to a batch that does not fit.
    pub when_full: WhenFull,
    /// Bytes of batches on disk, with `overflow`.
    pub max_disk_bytes: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { max_bytes: 256 << 20, when_full: WhenFull::Block, max_disk_bytes: 1 << 30 }
    }
}

/// What happens to a batch that does not fit the queue; Vector's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// Reading stops; the kernel's buffer and drop counter take over.
    Block,
    /// The new batch is shed and counted.
    #[value(name = "drop_newest")]
    DropNewest,
    /// It goes to disk, up to `max_disk_bytes`.
    Overflow,
}
