//! One request at a time: lease a batch, push it, act on the verdict.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};
use tracing::{error, warn};

use super::dial::Connection;
use super::request::{self, is_stream_reset};
use super::verdict::{Verdict, verdict};
use super::{Backoff, Context, Target};
use crate::books::Rejected;
use crate::datagram::Timestamp;
use crate::dead_letter::Letter;
use crate::logs::Occasionally;
use crate::queue::Lease;

/// Faults come with every batch when they come: each kind is logged once a second at most.
static FAILED: Occasionally = Occasionally::new();
static REFUSED: Occasionally = Occasionally::new();
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
enum Act {
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
pub(super) async fn run(mut connection: Connection, target: Target, context: Context) -> End {
    let mut stream = Stream { backoff: Backoff::new(context.vector.retry_initial_backoff), target, context };
    let mut broken = connection.broken.subscribe();
    let mut retired = stream.context.retired.clone();
    let mut useful = false;
    loop {
        let lease = tokio::select! {
            biased;
            _ = broken.wait_for(|broken| *broken) => return End::Broken { useful },
            _ = retired.wait_for(|retired| *retired) => return End::Finished,
            lease = stream.context.queue.lease() => lease,
        };
        let Some(lease) = lease else { return End::Finished };
        let begun = Instant::now();
        let act = match stream.push(&mut connection, &lease).await {
            Ok(status) => stream.act_on(&status, lease, begun.elapsed()).await,
            Err(failure) => {
                connection.broken.send_if_modified(|broken| {
                    *broken |= stream.give_up(failure, lease);
                    *broken
                });
                Act::Pause
            }
        };
        match act {
            Act::Delivered => {
                useful = true;
                stream.backoff.reset();
                continue;
            }
            Act::Go => continue,
            Act::Pause => {}
        }
        tokio::select! {
            _ = broken.wait_for(|broken| *broken) => {}
            () = stream.context.dismissed() => {}
            () = sleep(stream.backoff.next(fastrand::f64())) => {}
        }
    }
}

struct Stream {
    target: Target,
    context: Context,
    backoff: Backoff,
}

impl Stream {
    async fn push(&self, connection: &mut Connection, lease: &Lease) -> Result<Status, Failure> {
        let body = lease.batch().body.clone();
        let answer = request::push(&mut connection.sender, &connection.template, body);
        match timeout(self.context.vector.request_timeout, answer).await {
            Ok(answer) => answer.map_err(Failure::Transport),
            Err(_) => Err(Failure::Timeout),
        }
    }

    /// Carries out the verdict on an answer.
    async fn act_on(&self, status: &Status, lease: Lease, latency: Duration) -> Act {
        let push = &self.context.books.push;
        if status.code() != Code::Ok {
            self.target.books.failed(&format!("{:?}: {}", status.code(), status.message()));
        }
        match verdict(status.code()) {
            Verdict::Delivered => {
                push.latency.observe(latency.as_secs_f64());
                push.age.observe(Timestamp::now().seconds_since(lease.batch().received));
                self.target.books.delivered.fetch_add(lease.batch().events, Relaxed);
                settle(lease, &push.delivered);
                push.requests.fetch_add(1, Relaxed);
                return Act::Delivered;
            }
            Verdict::Rejected => {
                self.complain(status, "Vector refused a batch for good");
                self.reject(lease, Rejected::DataLoss, status).await;
                return Act::Go;
            }
            Verdict::Split => match lease.split() {
                // Halving is progress, not a fault of the receiver's: no pause.
                Ok(()) => {
                    push.retries.fetch_add(1, Relaxed);
                    return Act::Go;
                }
                Err(single) if is_about_size(status) => {
                    self.complain(status, "a single event is too large for Vector");
                    self.reject(single, Rejected::TooLarge, status).await;
                    return Act::Go;
                }
                // It is not the size, then: the receiver is overloaded and says so with the same status.
                Err(single) => self.retry(status, single),
            },
            Verdict::Hold => {
                self.complain(status, "Vector takes no batches until somebody mends this; holding them");
                push.retries.fetch_add(1, Relaxed);
            }
            Verdict::Retry => self.retry(status, lease),
        }
        Act::Pause
    }

    /// Ends a batch that Vector will never take.
    async fn reject(&self, lease: Lease, reason: Rejected, status: &Status) {
        let letter = Letter {
            time: Timestamp::now(),
            reason,
            code: Some(status.code()),
            message: status.message().to_owned(),
            body: lease.batch().body.clone(),
            events: lease.batch().events,
        };
        self.context.dead_letters.post(letter).await;
        settle(lease, &self.context.books.push.rejected[reason as usize]);
    }

    fn retry(&self, status: &Status, lease: Lease) {
        let push = &self.context.books.push;
        push.retries.fetch_add(1, Relaxed);
        // A failure is an answer, but not that nothing arrived: a proxy may have lost Vector's acknowledgement.
        push.possible_duplicates.fetch_add(lease.batch().events, Relaxed);
        if let Some(suppressed) = FAILED.now() {
            let (endpoint, code, message) = (&self.target.endpoint, status.code(), status.message());
            warn!(%endpoint, ?code, message, suppressed, "a batch failed; trying again");
        }
    }

    /// Puts the batch back; true when the connection is to be given up with it.
    fn give_up(&self, failure: Failure, lease: Lease) -> bool {
        let push = &self.context.books.push;
        push.retries.fetch_add(1, Relaxed);
        push.possible_duplicates.fetch_add(lease.batch().events, Relaxed);
        let endpoint = &self.target.endpoint;
        let (broken, error) = match &failure {
            Failure::Timeout => (true, "no answer within the deadline".to_owned()),
            Failure::Transport(error) => (!is_stream_reset(error), with_causes(error)),
        };
        self.target.books.failed(&error);
        if let Some(suppressed) = UNANSWERED.now() {
            warn!(%endpoint, error, suppressed, "a batch got no answer; trying again");
        }
        broken
    }

    fn complain(&self, status: &Status, what: &str) {
        if let Some(suppressed) = REFUSED.now() {
            let (endpoint, code, message) = (&self.target.endpoint, status.code(), status.message());
            error!(%endpoint, ?code, message, suppressed, "{what}");
        }
    }
}

/// RESOURCE_EXHAUSTED is what some receivers say of a large message, and others of their own overload.
fn is_about_size(status: &Status) -> bool {
    let speaks_of_size =
        |message: &str| ["larger", "large", "size", "length"].iter().any(|word| message.contains(word));
    status.code() == Code::OutOfRange || speaks_of_size(&status.message().to_ascii_lowercase())
}

fn settle(lease: Lease, counter: &AtomicU64) {
    // Counted before it leaves the queue's books, so that no moment shows it in neither.
    counter.fetch_add(lease.batch().events, Relaxed);
    lease.settle();
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
