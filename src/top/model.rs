//! What is known of a sluicegate from look to look. Pure: times are given to it.

use std::time::{Duration, Instant};

use super::client::PATIENCE;
use super::history::{History, Rates};
use super::status::{Endpoint, Snapshot, Status, Worker};

/// What is known.
#[derive(Debug, Clone)]
pub struct Model {
    /// Where the admin port is.
    pub address: String,
    /// Time from look to look.
    pub interval: Duration,
    /// Rates of the last minutes.
    pub history: History,
    /// How often it was seen to have been started again.
    pub restarts: u32,
    /// The last look that was answered.
    latest: Option<Seen>,
    /// The one before, of the same process.
    before: Option<Seen>,
    trouble: Option<Trouble>,
    /// When it was last asked.
    now: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Seen {
    at: Instant,
    snapshot: Snapshot,
}

#[derive(Debug, Clone)]
struct Trouble {
    why: String,
    since: Instant,
}

impl Model {
    /// Nothing is known yet.
    pub fn new(address: String, interval: Duration) -> Self {
        Self {
            address,
            interval,
            history: History::default(),
            restarts: 0,
            latest: None,
            before: None,
            trouble: None,
            now: None,
        }
    }

    /// Takes what a look brought: a snapshot, or why there is none.
    pub fn take(&mut self, at: Instant, look: Result<Snapshot, String>) {
        self.now = Some(at);
        match look {
            Ok(snapshot) => {
                self.trouble = None;
                let before = self.latest.replace(Seen { at, snapshot });
                self.before = before.filter(|before| !self.is_restarted_since(before));
                self.history.push(self.rates());
            }
            Err(why) => {
                let since = self.trouble.as_ref().map_or(at, |trouble| trouble.since);
                self.trouble = Some(Trouble { why, since });
                self.history.push(None);
            }
        }
    }

    /// A process that is younger than it should be is another one, and so is one whose counters go back.
    fn is_restarted_since(&mut self, before: &Seen) -> bool {
        let Some(latest) = &self.latest else { return false };
        let (old, new) = (&before.snapshot.status, &latest.snapshot.status);
        let elapsed = latest.at.duration_since(before.at);
        let younger = match (old.uptime_secs, new.uptime_secs) {
            // An answer may have been on its way for a while.
            (Some(old), Some(new)) => new < old || new + PATIENCE.as_secs_f64() < old + elapsed.as_secs_f64(),
            _ => false,
        };
        let counters = [
            |status: &Status| status.received,
            |status: &Status| status.received_bytes,
            |status: &Status| status.delivered,
            |status: &Status| status.kernel_drops,
            |status: &Status| status.requests.unwrap_or_default(),
        ];
        let restarted = younger || counters.iter().any(|count| count(new) < count(old));
        self.restarts += u32::from(restarted);
        restarted
    }

    /// The last snapshot.
    pub fn latest(&self) -> Option<&Snapshot> {
        self.latest.as_ref().map(|seen| &seen.snapshot)
    }

    /// The last status.
    pub fn status(&self) -> Option<&Status> {
        self.latest().map(|snapshot| &snapshot.status)
    }

    /// Why the last look had no answer, and for how long that has been so.
    pub fn trouble(&self) -> Option<(&str, Duration)> {
        let trouble = self.trouble.as_ref()?;
        Some((&trouble.why, self.now?.duration_since(trouble.since)))
    }

    /// What a counter grew by in a second, over the last interval; nothing before there are two looks at one process.
    pub fn rate(&self, count: impl Fn(&Status) -> Option<u64>) -> Option<f64> {
        let (before, latest) = (self.before.as_ref()?, self.latest.as_ref()?);
        let grown = count(&latest.snapshot.status)?.saturating_sub(count(&before.snapshot.status)?);
        let elapsed = latest.at.duration_since(before.at).as_secs_f64();
        Some(grown as f64 / elapsed.max(1e-3))
    }

    /// All three of the lines at the top.
    pub fn rates(&self) -> Option<Rates> {
        Some(Rates {
            received: self.rate(|status| Some(status.received))?,
            delivered: self.rate(|status| Some(status.delivered))?,
            bytes: self.rate(|status| Some(status.received_bytes))?,
        })
    }

    /// What a counter of this worker grew by in a second.
    pub fn worker_rate(&self, worker: &Worker, count: impl Fn(&Worker) -> u64) -> Option<f64> {
        let same = |other: &&Worker| (&other.listener, other.worker) == (&worker.listener, worker.worker);
        self.rate(|status| status.workers.iter().find(same).map(&count))
    }

    /// Events a second that this endpoint acknowledges.
    pub fn endpoint_rate(&self, endpoint: &Endpoint) -> Option<f64> {
        let same = |other: &&Endpoint| other.endpoint == endpoint.endpoint;
        self.rate(|status| status.endpoints.as_ref()?.iter().find(same).map(|endpoint| endpoint.delivered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(received: u64, uptime_secs: Option<f64>) -> Result<Snapshot, String> {
        let status = Status { received, uptime_secs, ..Status::default() };
        Ok(Snapshot { status, senders: None, live: Ok(()), ready: Ok(()) })
    }

    fn received(model: &Model) -> Option<f64> {
        model.rates().map(|rates| rates.received)
    }

    #[test]
    fn rates_are_of_the_last_interval() {
        let (mut model, start) = (Model::new(String::new(), Duration::from_secs(1)), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        model.take(at(0), snapshot(1_000, Some(10.0)));
        assert_eq!(received(&model), None);
        model.take(at(1), snapshot(1_500, Some(11.0)));
        assert_eq!(received(&model), Some(500.0));
        model.take(at(3), snapshot(1_700, Some(13.0)));
        assert_eq!(received(&model), Some(100.0));
    }

    #[test]
    fn an_outage_is_no_restart_and_a_restart_has_no_negative_rates() {
        let (mut model, start) = (Model::new(String::new(), Duration::from_secs(1)), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        model.take(at(0), snapshot(1_000, Some(10.0)));
        model.take(at(5), Err("refused".into()));
        model.take(at(9), Err("refused".into()));
        assert_eq!(model.trouble(), Some(("refused", Duration::from_secs(4))));
        assert_eq!(model.status().unwrap().received, 1_000, "the last that is known");
        model.take(at(10), snapshot(2_000, Some(20.0)));
        assert_eq!((received(&model), model.trouble(), model.restarts), (Some(100.0), None, 0));

        model.take(at(11), snapshot(5, Some(0.2)));
        assert_eq!((received(&model), model.restarts), (None, 1), "its age tells");
        model.take(at(12), snapshot(25, Some(1.2)));
        assert_eq!((received(&model), model.restarts), (Some(20.0), 1));
        model.take(at(60), snapshot(90, Some(2.0)));
        assert_eq!((received(&model), model.restarts), (None, 2), "older than it was, and yet too young");
        model.take(at(61), snapshot(80, None));
        assert_eq!((received(&model), model.restarts), (None, 3), "its counters tell");
    }
}
