//! One address of an endpoint, as its connections share it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use tokio::sync::watch;

use super::Target;

/// A Vector at an address.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) target: Target,
    pub(super) address: SocketAddr,
    /// Its number, unlike any other's of this process.
    pub(super) number: usize,
    /// Events that it acknowledged.
    pub(super) delivered: Arc<AtomicU64>,
    /// Whether it takes batches as it should. One that does not is given a single batch at a time, by one stream of one
    /// connection, until it takes that: one which is silent may hold each for `request.timeout_secs`.
    trusted: watch::Sender<bool>,
}

impl Place {
    pub(super) fn new(target: Target, address: SocketAddr) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self {
            target,
            address,
            number: NEXT.fetch_add(1, Relaxed),
            delivered: Arc::default(),
            trusted: watch::Sender::new(true),
        }
    }

    /// Waits until it is trusted, or until it is not.
    pub(super) async fn until_trusted_is(&self, wanted: bool) {
        // The sender is part of this: it cannot be gone.
        self.trusted.subscribe().wait_for(|trusted| *trusted == wanted).await.ok();
    }

    /// Notes that it acknowledged a batch of so many events.
    pub(super) fn took(&self, events: u64) {
        self.target.books.delivered.fetch_add(events, Relaxed);
        self.delivered.fetch_add(events, Relaxed);
        self.set_trusted(true);
    }

    /// Notes that it took a batch, or that it failed so that the next one had better be alone.
    pub(super) fn set_trusted(&self, now: bool) {
        self.trusted.send_if_modified(|trusted| std::mem::replace(trusted, now) != now);
    }
}
