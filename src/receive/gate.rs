//! Who is let in: looked at once for each run of datagrams of one sender.

use std::net::IpAddr;
use std::sync::Arc;

use super::Limiter;
use crate::books::Shed;
use crate::config::Origins;
use crate::datagram::Timestamp;
use crate::live::Live;

/// What a listener's senders are held to; the same for all its workers, and replaced by a reload.
#[derive(Debug, Default)]
pub struct Rules {
    /// Who may send.
    pub permit_origin: Origins,
    /// How much, where there is a limit.
    pub limiter: Option<Arc<Limiter>>,
}

/// One worker's look at the rules.
#[derive(Debug)]
pub struct Gate {
    live: Arc<Live<Rules>>,
    generation: u64,
    rules: Arc<Rules>,
    /// Datagrams of the run at hand that are still to come, and how many of them are let in.
    left: usize,
    passing: usize,
    /// Why the others are not.
    why: Shed,
    /// When the last run began that was held to a limit.
    time: Option<Timestamp>,
}

impl Gate {
    /// A gate with these rules.
    pub fn new(live: Arc<Live<Rules>>) -> Self {
        let (generation, rules) = live.get();
        Self { live, generation, rules, left: 0, passing: 0, why: Shed::NotPermitted, time: None }
    }

    /// Puts the rules in force that were set since; call it before each read's datagrams.
    pub fn follow(&mut self) {
        if let (Some(limiter), Some(time)) = (&self.rules.limiter, self.time.take()) {
            limiter.advance(time);
        }
        if self.live.generation() != self.generation {
            (self.generation, self.rules) = self.live.get();
        }
        (self.left, self.passing) = (0, 0);
    }

    /// Why a datagram of this sender, received at `time`, is not let in. Every datagram of a read has to come here, in order;
    /// `run` says how many of this sender there are in a row, this one among them.
    #[inline]
    pub fn refuses(&mut self, sender: IpAddr, time: Timestamp, run: impl FnOnce() -> usize) -> Option<Shed> {
        if self.left == 0 {
            self.begin(sender, time, run);
        }
        self.left -= 1;
        if self.passing == 0 {
            return Some(self.why);
        }
        self.passing -= 1;
        None
    }

    fn begin(&mut self, sender: IpAddr, time: Timestamp, run: impl FnOnce() -> usize) {
        let rules = &*self.rules;
        if rules.permit_origin.is_open() && rules.limiter.is_none() {
            (self.left, self.passing) = (usize::MAX, usize::MAX);
            return;
        }
        self.left = run();
        (self.passing, self.why) = match &rules.limiter {
            _ if !rules.permit_origin.permits(sender) => (0, Shed::NotPermitted),
            None => (self.left, Shed::NotPermitted),
            Some(limiter) => {
                self.time = Some(time);
                (limiter.take(sender, self.left, time), Shed::RateLimited)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::RateLimit;

    const NOW: Timestamp = Timestamp { seconds: 1_796_000_000, nanos: 0 };

    fn rules(list: &[&str], threshold: usize) -> Rules {
        let limit = RateLimit { threshold, window: Duration::from_secs(1) };
        let limiter = Limiter::new(limit, NOW).map(Arc::new);
        Rules { permit_origin: Origins::parse(list).unwrap(), limiter }
    }

    /// How many of a run are let in, and why the last one is not.
    fn run(gate: &mut Gate, sender: &str, length: usize) -> (usize, Option<Shed>) {
        let sender = sender.parse().unwrap();
        let verdicts: Vec<_> = (0..length).map(|at| gate.refuses(sender, NOW, || length - at)).collect();
        (verdicts.iter().filter(|verdict| verdict.is_none()).count(), verdicts.last().copied().flatten())
    }

    #[test]
    fn a_change_is_in_force_with_the_next_read() {
        let live = Arc::new(Live::new(rules(&["192.0.2.0/24"], 0)));
        let mut gate = Gate::new(Arc::clone(&live));
        let refused = (0, Some(Shed::NotPermitted));
        for _ in 0..2 {
            assert_eq!(run(&mut gate, "192.0.2.1", 3), (3, None));
            assert_eq!(run(&mut gate, "203.0.113.1", 2), refused);
        }
        live.replace(rules(&["203.0.113.1"], 0));
        assert_eq!(run(&mut gate, "203.0.113.1", 1), refused, "the read goes on as it began");
        gate.follow();
        assert_eq!(run(&mut gate, "192.0.2.1", 1), refused);
        assert_eq!(run(&mut gate, "203.0.113.1", 1), (1, None));
        live.replace(rules(&[], 0));
        gate.follow();
        assert_eq!(run(&mut gate, "192.0.2.1", 5), (5, None));
        assert_eq!(run(&mut gate, "203.0.113.1", 5), (5, None));
    }

    #[test]
    fn a_run_is_cut_where_the_limit_is() {
        let mut gate = Gate::new(Arc::new(Live::new(rules(&["192.0.2.0/24"], 100))));
        assert_eq!(run(&mut gate, "192.0.2.1", 64), (64, None));
        assert_eq!(run(&mut gate, "192.0.2.2", 1), (1, None));
        gate.follow();
        assert_eq!(run(&mut gate, "192.0.2.1", 64), (36, Some(Shed::RateLimited)));
        assert_eq!(run(&mut gate, "203.0.113.1", 64), (0, Some(Shed::NotPermitted)));
        assert_eq!(run(&mut gate, "192.0.2.2", 99), (99, None));
    }
}
