//! What a batch has gone through: it lives with the batch, on its way back to the queue and out again.

/// A batch's failures of the kind that may be its own fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trouble {
    /// How often it failed so.
    pub failures: u32,
    /// How many of those speak against it: the same Vector took other batches since the failure before.
    pub strikes: u32,
    /// Whether it is part of a larger batch that was halved for its failures.
    pub is_half: bool,
    /// Where it failed last: the endpoint's number, and the events that it had acknowledged by then.
    last: Option<(usize, u64)>,
    /// What all requests had come to when it first failed.
    since: Option<Answers>,
}

/// How many requests, of any batch, were acknowledged, and how many failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// Acknowledged.
    pub taken: u64,
    /// Failed.
    pub failed: u64,
}

impl Trouble {
    /// No failure yet, but part of a batch that was halved for its own.
    pub fn of_half() -> Self {
        Self { is_half: true, ..Self::default() }
    }

    /// After another failure, at the endpoint of this number that has acknowledged so many events. A failure at
    /// an endpoint that takes nothing at all is the endpoint's fault.
    #[must_use]
    pub fn after_failure(self, endpoint: usize, acknowledged: u64, answers: Answers) -> Self {
        let others_passed = self.last.is_some_and(|(last, before)| last == endpoint && acknowledged > before);
        Self {
            failures: self.failures + 1,
            strikes: self.strikes + u32::from(others_passed),
            last: Some((endpoint, acknowledged)),
            since: self.since.or(Some(answers)),
            ..self
        }
    }

    /// How likely a batch without fault is to have as many strikes, 0 to 1: the share of other requests that failed
    /// meanwhile (with one more of each kind, as few say little), to the power of its strikes.
    pub fn chance(&self, answers: Answers) -> f64 {
        let Some(since) = self.since else { return 1.0 };
        let own = u64::from(self.failures.saturating_sub(1));
        let failed = answers.failed.saturating_sub(since.failed).saturating_sub(own) as f64;
        let taken = answers.taken.saturating_sub(since.taken) as f64;
        ((failed + 1.0) / (failed + taken + 2.0)).powf(self.strikes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_where_others_pass_in_between_speak_against_a_batch() {
        let strikes = |failures: &[(usize, u64)]| {
            let after = |trouble: Trouble, (endpoint, acknowledged): &(usize, u64)| {
                trouble.after_failure(*endpoint, *acknowledged, Answers::default())
            };
            failures.iter().fold(Trouble::default(), after).strikes
        };
        assert_eq!(strikes(&[(0, 10)]), 0, "the first failure has none before it");
        assert_eq!(strikes(&[(0, 10), (0, 10), (0, 10)]), 0, "an outage");
        assert_eq!(strikes(&[(0, 10), (0, 11), (0, 11), (0, 50)]), 2);
        assert_eq!(
            strikes(&[(0, 0), (1, 10), (0, 0), (1, 20)]),
            0,
            "one takes nothing, the other was not asked twice"
        );
        assert_eq!(strikes(&[(0, 0), (1, 10), (1, 20), (0, 0)]), 1);
    }

    #[test]
    fn chance_falls_with_strikes_and_faster_where_all_others_pass() {
        let chance = |failures: u32, taken: u64, failed: u64| {
            let begin = Answers { taken: 100, failed: 50 };
            let after = |trouble: Trouble, n| trouble.after_failure(0, n, begin);
            let trouble = (0..u64::from(failures)).fold(Trouble::default(), after);
            trouble.chance(Answers { taken: 100 + taken, failed: 50 + failed })
        };
        assert_eq!(Trouble::default().chance(Answers::default()), 1.0);
        assert_eq!(chance(1, 1_000, 0), 1.0, "no strike");
        assert!(chance(6, 1_000, 5) < 1e-14, "its own failures are not others'");
        assert!(chance(6, 3, 5) > 1e-4, "few answers say little");
        assert!(chance(6, 100, 5 + 300) > 0.2, "three of four fail");
        assert!(chance(61, 100, 60 + 300) < 1e-6, "but so many are no chance");
    }
}
