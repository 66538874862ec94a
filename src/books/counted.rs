//! What is counted for as long as it lasts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One more in a cell until it is dropped, however that comes: a connection that is up, a batch that waits.
#[derive(Debug)]
pub struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    /// Counts it.
    pub fn at(cell: &'a AtomicU64) -> Self {
        cell.fetch_add(1, Relaxed);
        Self(cell)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
