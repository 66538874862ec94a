//! How long to wait after a failure.

use std::time::Duration;

/// Exponential backoff with full jitter, so that many streams do not come back in step.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    next: Duration,
}

impl Backoff {
    /// No wait is longer: a receiver that is back should be used again within seconds.
    pub const LONGEST: Duration = Duration::from_secs(5);

    /// Waits of up to `first`, then twice that, and so on.
    pub fn new(first: Duration) -> Self {
        let first = first.clamp(Duration::from_millis(1), Self::LONGEST);
        Self { first, next: first }
    }

    /// The next wait; `random` is 0.0 to 1.0. Never under half of what the step allows, so that waits grow.
    pub fn next(&mut self, random: f64) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(Self::LONGEST);
        step.mul_f64(0.5 + random / 2.0)
    }

    /// Back to the first step, after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_ceiling_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_millis(100));
        let waits: Vec<_> = (0..8).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        backoff.reset();
        assert_eq!(backoff.next(0.0), Duration::from_millis(50));
    }
}
