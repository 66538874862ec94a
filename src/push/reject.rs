//! The end of a batch that Vector never takes, or not in time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::sleep;
use tonic::{Code, Status};
use tracing::error;

use super::Context;
use crate::batch::Batch;
use crate::books::Rejected;
use crate::datagram::Timestamp;
use crate::dead_letter::Letter;
use crate::logs::Occasionally;
use crate::queue::Lease;

/// How often the queue is looked through for batches that are too old: no stream takes them while no connection is up.
const SWEEP: Duration = Duration::from_secs(1);

static EXPIRED: Occasionally = Occasionally::new();

/// Rejects what a status was the answer to.
pub(super) async fn reject(context: &Context, lease: Lease, reason: Rejected, status: &Status) {
    bury(context, lease, reason, Some(status.code()), status.message()).await;
}

/// Rejects a batch that is too old.
pub(super) async fn expire(context: &Context, lease: Lease) {
    if let Some(suppressed) = EXPIRED.now() {
        let events = lease.batch().events;
        error!(
            events,
            suppressed, "a batch was not taken within vector.request.retry_max_duration_secs: rejected"
        );
    }
    bury(context, lease, Rejected::Expired, None, "not acknowledged in time").await;
}

/// Whether a batch is older than it may be.
pub(super) fn is_expired(batch: &Batch, longest: Option<Duration>) -> bool {
    longest.is_some_and(|longest| Timestamp::now().seconds_since(batch.received) > longest.as_secs_f64())
}

/// Rejects batches at the front of the queue that are too old, until all work is done.
pub(super) async fn sweep(context: Context) {
    let longest = context.vector.retry_max_duration;
    loop {
        while let Some(lease) = context.queue.lease_if(|batch| is_expired(batch, longest)) {
            expire(&context, lease).await;
        }
        tokio::select! {
            () = sleep(SWEEP) => {}
            () = context.dismissed() => return,
        }
    }
}

async fn bury(context: &Context, lease: Lease, reason: Rejected, code: Option<Code>, message: &str) {
    let letter = Letter {
        time: Timestamp::now(),
        reason,
        code,
        message: message.to_owned(),
        body: lease.batch().body.clone(),
        events: lease.batch().events,
    };
    context.dead_letters.post(letter).await;
    settle(lease, &context.books.push.rejected[reason as usize]);
}

/// Ends a lease and counts its events.
pub(super) fn settle(lease: Lease, counter: &AtomicU64) {
    // Counted before it leaves the queue's books, so that no moment shows it in neither.
    counter.fetch_add(lease.batch().events, Relaxed);
    lease.settle();
}
