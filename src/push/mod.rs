//! Batches to Vector: endpoints × connections × streams, each stream pulling the next batch when it is free.
//!
//! In: [`Lease`](crate::queue::Lease)s from the queue. Out: requests, and a verdict on each answer. Nothing is lost here:
//! what is not acknowledged goes back to the front of the queue, and any stream tries it again.

mod backoff;
mod connection;
mod request;
mod stream;
mod tls;
mod transport;
mod verdict;
mod wire;

pub use backoff::Backoff;
pub use connection::{DialError, inspect};
pub use tls::Seen;
pub(crate) use tls::{server_name, system_roots};
pub use verdict::{Verdict, verdict};

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{error, warn};

use crate::books::Books;
use crate::config::{Endpoint, Vector};
use crate::queue::Queue;

/// A bug that strikes at once must not fill the log.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// What every connection and stream shares.
#[derive(Debug, Clone)]
pub struct Context {
    /// Where to push.
    pub vector: Arc<Vector>,
    /// Where batches come from.
    pub queue: Arc<Queue>,
    /// Where outcomes are counted.
    pub books: Arc<Books>,
}

/// Starts every connection on the current runtime. The tasks end when the queue is closed and settled, or
/// abandoned; dropping the set cancels them, and what they hold goes back to the queue.
pub fn start(context: &Context) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    warn_of_what_is_not_verified(&context.vector);
    for endpoint in &context.vector.endpoints {
        for number in 0..context.vector.connections {
            tasks.spawn(supervise(endpoint.clone(), number, context.clone()));
        }
    }
    tasks
}

fn warn_of_what_is_not_verified(vector: &Vector) {
    match &vector.tls {
        _ if !vector.endpoints.iter().any(|endpoint| endpoint.tls) => {}
        tls if !tls.verify_certificate => {
            warn!(
                "vector.tls.verify_certificate is false: anybody may pretend to be Vector and read what is sent"
            );
        }
        tls if !tls.verify_hostname => {
            warn!("vector.tls.verify_hostname is false: any certificate of a trusted CA passes for Vector's");
        }
        _ => {}
    }
}

/// Starts a connection's task again should it ever panic: its batches are back in the queue by then.
async fn supervise(endpoint: Endpoint, number: usize, context: Context) {
    let keep = || connection::keep(endpoint.clone(), number, context.clone());
    while AssertUnwindSafe(keep()).catch_unwind().await.is_err() {
        error!(%endpoint, connection = number, "a connection's task panicked (a bug, please report it); starting it again");
        sleep(AFTER_PANIC).await;
    }
}
