//! One request at a time: lease a batch, push it, act on the verdict.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};
use tracing::{error, warn};

use super::dial::Connection;
use super::place::Place;
use super::poison::{Sentence, judge};
use super::reject::{expire, is_expired, reject, settle};
use super::request::{self, status_of_reset};
use super::verdict::{Verdict, verdict};
use super::{Backoff, Context};
use crate::batch::{Answers, Trouble};
use crate::books::Rejected;
use crate::config::OnRejected;
use crate::datagram::Timestamp;
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
    /// The request alone was reset: as good as this answer.
    Reset(Status),
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
            Err(Failure::Reset(status)) => stream.act_on(&status, lease, begun.elapsed()).await,
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

struct Stream {
    place: Place,
    context: Context,
    backoff: Backoff,
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

    async fn push(&self, connection: &mut Connection, lease: &Lease) -> Result<Status, Failure> {
        let body = lease.batch().body.clone();
        let answer = request::push(&mut connection.sender, &connection.template, body);
        match timeout(self.context.vector.request_timeout, answer).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(error)) => Err(status_of_reset(&error).map_or(Failure::Transport(error), Failure::Reset)),
            Err(_) => Err(Failure::Timeout),
        }
    }

    /// Carries out the verdict on an answer.
    async fn act_on(&mut self, status: &Status, lease: Lease, latency: Duration) -> Act {
        let books = Arc::clone(&self.context.books);
        let push = &books.push;
        if status.code() != Code::Ok {
            self.place.target.books.failed(&format!("{:?}: {}", status.code(), status.message()));
        }
        match verdict(status.code()) {
            Verdict::Delivered => {
                push.latency.observe(latency.as_secs_f64());
                push.age.observe(Timestamp::now().seconds_since(lease.batch().received));
                self.place.took(lease.batch().events);
                settle(lease, &push.delivered);
                push.requests.fetch_add(1, Relaxed);
                return Act::Delivered;
            }
            Verdict::Rejected
                if self.context.vector.on_rejected == OnRejected::Split && lease.batch().events > 1 =>
            {
                push.retries.fetch_add(1, Relaxed);
                push.possible_duplicates.fetch_add(lease.batch().events, Relaxed);
                // Halving is progress; a batch that cannot be taken apart comes back whole.
                return lease.split().map_or(Act::Pause, |()| Act::Go);
            }
            Verdict::Rejected => {
                self.complain(status, "Vector refused a batch for good");
                reject(&self.context, lease, Rejected::DataLoss, status).await;
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
                    reject(&self.context, single, Rejected::TooLarge, status).await;
                    return Act::Go;
                }
                // It is not the size, then: the receiver is overloaded and says so with the same status.
                Err(single) => self.retry(status, single),
            },
            Verdict::Hold => {
                self.complain(status, "Vector takes no batches until somebody mends this; holding them");
                push.retries.fetch_add(1, Relaxed);
            }
            Verdict::Suspect if !is_the_sinks(status) => return self.suspect(status, lease).await,
            Verdict::Suspect | Verdict::Retry => self.retry(status, lease),
        }
        Act::Pause
    }

    /// Tries a batch again that may be at fault itself, or no longer.
    async fn suspect(&mut self, status: &Status, mut lease: Lease) -> Act {
        let before = lease.batch().trouble.as_deref().copied().unwrap_or_default();
        let push = &self.context.books.push;
        let answers = Answers { taken: push.requests.load(Relaxed), failed: push.retries.load(Relaxed) };
        let acknowledged = self.place.delivered.load(Relaxed);
        let trouble = before.after_failure(self.place.number, acknowledged, answers);
        lease.set_trouble(trouble);
        if trouble.strikes > before.strikes {
            self.backoff.reset(); // the receiver is well, as others pass
        }
        let sentence = judge(lease.batch().events, &trouble, trouble.chance(answers));
        if sentence == Sentence::Reject {
            self.complain(
                status,
                "an event failed again and again while others passed: it is poison, and rejected",
            );
            reject(&self.context, lease, Rejected::Poison, status).await;
            return Act::Go;
        }
        self.count_retry(status, &lease);
        match sentence {
            Sentence::Halve => {
                lease.set_trouble(Trouble::of_half());
                return lease.split().map_or(Act::Pause, |()| Act::Go);
            }
            Sentence::GiveWay => lease.give_way(),
            Sentence::Again | Sentence::Reject => {}
        }
        Act::Pause
    }

    fn retry(&self, status: &Status, lease: Lease) {
        self.count_retry(status, &lease);
    }

    fn count_retry(&self, status: &Status, lease: &Lease) {
        let push = &self.context.books.push;
        push.retries.fetch_add(1, Relaxed);
        // A failure is an answer, but not that nothing arrived: a proxy may have lost Vector's acknowledgement.
        push.possible_duplicates.fetch_add(lease.batch().events, Relaxed);
        if let Some(suppressed) = FAILED.now() {
            let (endpoint, code, message) = (&self.place.target.endpoint, status.code(), status.message());
            warn!(%endpoint, ?code, message, suppressed, "a batch failed; trying again");
        }
    }

    /// Puts the batch back; true when the connection is to be given up with it.
    fn give_up(&self, failure: Failure, lease: Lease) -> bool {
        let push = &self.context.books.push;
        push.retries.fetch_add(1, Relaxed);
        push.possible_duplicates.fetch_add(lease.batch().events, Relaxed);
        let endpoint = &self.place.target.endpoint;
        let (broken, error) = match &failure {
            Failure::Timeout => (true, "no answer within the deadline".to_owned()),
            Failure::Reset(status) => (false, status.message().to_owned()),
            Failure::Transport(error) => (true, with_causes(error)),
        };
        if broken {
            self.place.set_trusted(false);
        }
        self.place.target.books.failed(&error);
        if let Some(suppressed) = UNANSWERED.now() {
            warn!(%endpoint, error, suppressed, "a batch got no answer; trying again");
        }
        broken
    }

    /// The watchdog's: what answers and acknowledges nothing may be something between here and Vector, which another
    /// connection leads past.
    fn give_connection_up(&self, connection: &Connection) {
        let (endpoint, address) = (&self.place.target.endpoint, self.place.address);
        warn!(%endpoint, %address, "nothing was acknowledged within vector.request.timeout_secs; connecting anew");
        self.place.set_trusted(false);
        connection.broken.send_replace(true);
    }

    fn complain(&self, status: &Status, what: &str) {
        if let Some(suppressed) = REFUSED.now() {
            let (endpoint, code, message) = (&self.place.target.endpoint, status.code(), status.message());
            error!(%endpoint, ?code, message, suppressed, "{what}");
        }
    }
}

/// Vector says so of a sink that failed: whatever the batch, it is to be sent again.
fn is_the_sinks(status: &Status) -> bool {
    status.code() == Code::Internal && status.message().contains("Delivery error")
}

/// RESOURCE_EXHAUSTED is what some receivers say of a large message, and others of their own overload.
fn is_about_size(status: &Status) -> bool {
    let speaks_of_size =
        |message: &str| ["larger", "large", "size", "length"].iter().any(|word| message.contains(word));
    status.code() == Code::OutOfRange || speaks_of_size(&status.message().to_ascii_lowercase())
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
