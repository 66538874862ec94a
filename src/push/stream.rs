//! One request at a time: lease a batch, push it, act on the verdict.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout};
use tonic::Status;
use tracing::warn;

use super::answer::is_the_sinks;
use super::compression::{compressed, encoding};
use super::dial::Connection;
use super::place::Place;
use super::reject::{expire, is_expired};
use super::request::status_of_reset;
use super::{Backoff, Context, Target};
use crate::config::Compression;
use crate::logs::Occasionally;
use crate::queue::Lease;

/// Faults come with every batch when they come: logged once a second at most.
static UNANSWERED: Occasionally = Occasionally::new();

/// How a stream, or all of a connection's, came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// There is no work left and none will come.
    Finished,
    /// The connection is of no more use; `useful` when it delivered something.
    Broken { useful: bool },
}

impl End {
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Finished, end) | (end, Self::Finished) => end,
            (Self::Broken { useful: a }, Self::Broken { useful: b }) => Self::Broken { useful: a || b },
        }
    }
}

/// What a stream does after an answer.
pub(super) enum Act {
    /// It takes the next batch; this one was delivered.
    Delivered,
    /// It takes the next batch.
    Go,
    /// It lets the receiver rest.
    Pause,
}

/// What came of a request that got no answer.
enum Failure {
    Timeout,
    Transport(hyper::Error),
}

/// Pushes batches over the connection until it breaks or all work is done.
pub(super) async fn run(mut connection: Connection, place: Place, is_pioneer: bool, context: Context) -> End {
    let mut stream = Stream { backoff: Backoff::new(context.vector.retry_initial_backoff), place, context };
    let mut broken = connection.broken.subscribe();
    let mut retired = stream.context.retired.clone();
    let mut useful = false;
    loop {
        let lease = tokio::select! {
            biased;
            _ = broken.wait_for(|broken| *broken) => return End::Broken { useful },
            _ = retired.wait_for(|retired| *retired) => return End::Finished,
            lease = stream.next(is_pioneer) => lease,
        };
        let Some(lease) = lease else { return End::Finished };
        if is_expired(lease.batch(), stream.context.vector.retry_max_duration) {
            expire(&stream.context, lease).await;
            continue;
        }
        let begun = Instant::now();
        let act = match stream.push(&mut connection, &lease).await {
            Ok(status) => stream.act_on(&status, lease, begun.elapsed()).await,
            Err(failure) => {
                connection.broken.send_replace(true);
                stream.put_back(&failure, lease);
                Act::Pause
            }
        };
        match act {
            Act::Delivered => {
                useful = true;
                connection.failing.ends();
                stream.backoff.reset();
                continue;
            }
            Act::Go => continue,
            Act::Pause if connection.failing.lasts(stream.context.vector.request_timeout) => {
                stream.give_connection_up(&connection);
            }
            Act::Pause => {}
        }
        tokio::select! {
            _ = broken.wait_for(|broken| *broken) => {}
            () = stream.context.dismissed() => {}
            () = sleep(stream.backoff.next(fastrand::f64())) => {}
        }
    }
}

pub(super) struct Stream {
    pub(super) place: Place,
    pub(super) context: Context,
    pub(super) backoff: Backoff,
}

impl Stream {
    /// The next batch; while the place is not trusted, for the pioneer alone.
    async fn next(&self, is_pioneer: bool) -> Option<Lease> {
        loop {
            if is_pioneer {
                return self.context.queue.lease().await;
            }
            self.place.until_trusted_is(true).await;
            tokio::select! {
                lease = self.context.queue.lease() => return lease,
                () = self.place.until_trusted_is(false) => {}
            }
        }
    }

    /// Sends the batch and waits for the answer; a receiver that does not know the compression gets it without.
    async fn push(&self, connection: &mut Connection, lease: &Lease) -> Result<Status, Failure> {
        let Target { endpoint, books, compressor } = &self.place.target;
        loop {
            let (compression, body) = encoded(compressor.in_force(), lease.batch().body.clone()).await;
            self.context.books.push.sent_bytes.fetch_add(body.len() as u64, Relaxed);
            let call = connection.caller.call(&connection.template, body, encoding(compression));
            let status = match timeout(self.context.vector.request_timeout, call).await {
                Ok(Ok((status, _))) => status,
                Ok(Err(error)) => status_of_reset(&error).ok_or(Failure::Transport(error))?,
                Err(_) => return Err(Failure::Timeout),
            };
            if is_the_sinks(&status) || !compressor.is_refused(compression, status.code()) {
                return Ok(status);
            }
            let (code, message) = (status.code(), status.message());
            warn!(%endpoint, ?compression, ?code, message, "compressed requests are refused: it gets them uncompressed from now on");
            books.compression_refused.store(true, Relaxed);
        }
    }

    /// Puts a batch back that may have arrived.
    fn put_back(&self, failure: &Failure, lease: Lease) {
        let push = &self.context.books.push;
        push.retries.fetch_add(1, Relaxed);
        push.possible_duplicates.fetch_add(lease.batch().events, Relaxed);
        self.place.set_trusted(false);
        let Target { endpoint, books, .. } = &self.place.target;
        let error = match failure {
            Failure::Timeout => "no answer within the deadline".to_owned(),
            Failure::Transport(error) => with_causes(error),
        };
        books.failed(&error);
        if let Some(suppressed) = UNANSWERED.now() {
            warn!(%endpoint, error, suppressed, "a batch got no answer; trying again");
        }
    }

    /// The watchdog's: what answers and acknowledges nothing may be something between here and Vector, which another
    /// connection leads past.
    fn give_connection_up(&self, connection: &Connection) {
        let (endpoint, address) = (&self.place.target.endpoint, self.place.address);
        warn!(%endpoint, %address, "nothing was acknowledged within vector.request.timeout_secs; connecting anew");
        self.place.set_trusted(false);
        connection.broken.send_replace(true);
    }
}

/// The body as it goes out. Compressing takes milliseconds, so it is done where it holds up no other stream.
async fn encoded(compression: Compression, body: Bytes) -> (Compression, Bytes) {
    if compression == Compression::None {
        return (compression, body);
    }
    let plain = body.clone();
    match tokio::task::spawn_blocking(move || compressed(compression, &body)).await {
        Ok(Ok(body)) => (compression, body),
        _ => (Compression::None, plain),
    }
}

/// hyper says what failed; why is in the causes.
pub(super) fn with_causes(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    if text.contains("invalid size") || text.contains("invalid HTTP") {
        text.push_str("; is this the address of a `vector` source, and is its TLS off as http:// says?");
    }
    text
}
