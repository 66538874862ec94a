//! Batches to Vector: endpoints × connections × streams, each stream pulling the next batch when it is free.
//!
//! In: [`Lease`](crate::queue::Lease)s from the queue. Out: requests, and a verdict on each answer. Nothing is lost here:
//! what is not acknowledged goes back to the front of the queue, and any stream tries it again.

mod answer;
mod backoff;
mod compression;
mod connection;
mod dial;
mod gather;
mod place;
mod places;
mod poison;
mod probe;
mod reject;
mod request;
mod stream;
mod tls;
mod transport;
mod verdict;
mod wire;

pub use backoff::Backoff;
pub use dial::DialError;
pub use probe::{Health, Probe};
pub use tls::Seen;
pub(crate) use tls::{server_name, system_roots};
pub use verdict::{Verdict, status_name, verdict};

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{error, warn};

use crate::books::{Books, EndpointBooks};
use crate::config::{Endpoint, Vector};
use crate::dead_letter::DeadLetters;
use crate::queue::Queue;
use compression::Compressor;
use place::Place;

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
    /// Where rejected batches go.
    pub dead_letters: DeadLetters,
    /// True once others push in these ones' place.
    pub retired: watch::Receiver<bool>,
}

impl Context {
    /// Waits until others take this one's place, or all work is done.
    async fn dismissed(&self) {
        let mut retired = self.retired.clone();
        tokio::select! {
            _ = retired.wait_for(|retired| *retired) => {}
            () = self.queue.finished() => {}
        }
    }
}

/// An endpoint, and the books of what it was sent.
#[derive(Debug, Clone)]
struct Target {
    endpoint: Endpoint,
    books: Arc<EndpointBooks>,
    compressor: Arc<Compressor>,
}

/// Starts every connection among `tasks`, on the current runtime. They end when the queue is closed and settled, or
/// abandoned, or when they are retired; dropping the set cancels them, and what they hold goes back to the queue.
pub fn start(context: &Context, tasks: &mut JoinSet<()>) {
    warn_of_what_is_not_verified(&context.vector);
    let endpoints = &context.vector.endpoints;
    let names: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
    let books = context.books.push.set_endpoints(&names, context.vector.connections);
    if context.vector.retry_max_duration.is_some() {
        tasks.spawn(reject::sweep(context.clone()));
    }
    for (endpoint, books) in endpoints.iter().cloned().zip(books) {
        books.compression_refused.store(false, Relaxed);
        let compressor = Arc::new(Compressor::new(context.vector.compression));
        tasks.spawn(places::keep(Target { endpoint, books, compressor }, context.clone()));
    }
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
async fn supervise(place: Place, number: usize, context: Context) {
    let endpoint = &place.target.endpoint;
    let keep = || connection::keep(place.clone(), number, context.clone());
    while AssertUnwindSafe(keep()).catch_unwind().await.is_err() {
        error!(%endpoint, connection = number, "a connection's task panicked (a bug, please report it); starting it again");
        sleep(AFTER_PANIC).await;
    }
}
