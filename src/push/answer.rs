//! What a stream does with an answer: the verdict, carried out.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tonic::{Code, Status};
use tracing::{error, warn};

use super::poison::{Sentence, judge};
use super::reject::{reject, settle};
use super::stream::{Act, Stream};
use super::verdict::{Verdict, verdict};
use crate::batch::{Answers, Trouble};
use crate::books::Rejected;
use crate::config::OnRejected;
use crate::datagram::Timestamp;
use crate::logs::Occasionally;
use crate::queue::Lease;

/// Faults come with every batch when they come: each kind is logged once a second at most.
static FAILED: Occasionally = Occasionally::new();
static REFUSED: Occasionally = Occasionally::new();

impl Stream {
    /// Carries out the verdict on an answer.
    pub(super) async fn act_on(&mut self, status: &Status, mut lease: Lease, latency: Duration) -> Act {
        let books = Arc::clone(&self.context.books);
        let push = &books.push;
        push.answers[status.code() as usize].fetch_add(1, Relaxed);
        if status.code() != Code::Ok {
            self.place.target.books.failed(&format!("{:?}: {}", status.code(), status.message()));
        }
        let verdict = verdict(status.code());
        if matches!(verdict, Verdict::Rejected | Verdict::Split) {
            lease.set_trouble(None); // that was another kind of failure, and no fault of a half
        }
        match verdict {
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
        lease.set_trouble(Some(trouble));
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
                lease.set_trouble(Some(Trouble::of_half()));
                return lease.split().map_or(Act::Pause, |()| Act::Go);
            }
            Sentence::GiveWay => lease.give_way(),
            Sentence::StepAside => lease.step_aside(),
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

    fn complain(&self, status: &Status, what: &str) {
        if let Some(suppressed) = REFUSED.now() {
            let (endpoint, code, message) = (&self.place.target.endpoint, status.code(), status.message());
            error!(%endpoint, ?code, message, suppressed, "{what}");
        }
    }
}

/// Vector says so of a sink that failed: whatever the batch, it is to be sent again.
pub(super) fn is_the_sinks(status: &Status) -> bool {
    status.code() == Code::Internal && status.message().contains("Delivery error")
}

/// RESOURCE_EXHAUSTED is what some receivers say of a large message, and others of their own overload.
fn is_about_size(status: &Status) -> bool {
    let speaks_of_size =
        |message: &str| ["larger", "large", "size", "length"].iter().any(|word| message.contains(word));
    status.code() == Code::OutOfRange || speaks_of_size(&status.message().to_ascii_lowercase())
}
