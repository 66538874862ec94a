//! A group of sockets on paper: how much is lost for a buffer and a stall of some length, with any number of workers.
//!
//! In: rate, workers, cost of a datagram, buffer, stalls. Out: datagrams lost. Time goes in steps of 100 µs: in each, every
//! datagram goes to a socket at random, as under `spread` steering, and every worker that does not stall reads what it can.

use fastrand::Rng;
use serde::Serialize;

/// A step, seconds.
const STEP: f64 = 1e-4;

/// What is simulated.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Model {
    /// Datagrams a second.
    pub rate: f64,
    /// Workers, each with a socket.
    pub workers: usize,
    /// A worker's CPU for each datagram, seconds.
    pub cost: f64,
    /// Cores that the workers share.
    pub cores: usize,
    /// Datagrams that each socket's buffer holds.
    pub buffer: usize,
    /// Seconds of a stall: for so long the scheduler gives a worker nothing.
    pub stall: f64,
    /// Stalls of each worker, a second.
    pub stalls: f64,
    /// Seconds to simulate.
    pub seconds: f64,
}

impl Model {
    /// Datagrams sent, and of those the lost ones.
    pub fn run(&self, rng: &mut Rng) -> (u64, u64) {
        let mut waiting = vec![0_usize; self.workers];
        let mut stalled_until = vec![0.0_f64; self.workers];
        let (mut sent, mut lost, mut due) = (0, 0, 0.0);
        for step in 0..(self.seconds / STEP) as u64 {
            let now = step as f64 * STEP;
            due += self.rate * STEP;
            while due >= 1.0 {
                due -= 1.0;
                sent += 1;
                let queue = &mut waiting[rng.usize(..self.workers)];
                if *queue < self.buffer {
                    *queue += 1;
                } else {
                    lost += 1;
                }
            }
            for stalled in &mut stalled_until {
                if *stalled <= now && rng.f64() < self.stalls * STEP {
                    *stalled = now + self.stall;
                }
            }
            self.read(&mut waiting, |worker| stalled_until[worker] > now);
        }
        (sent, lost)
    }

    /// The cores' time of a step, shared by those who have something to read.
    fn read(&self, waiting: &mut [usize], is_stalled: impl Fn(usize) -> bool) {
        let mut budget = self.cores as f64 * STEP / self.cost;
        let ready: Vec<_> =
            (0..waiting.len()).filter(|worker| waiting[*worker] > 0 && !is_stalled(*worker)).collect();
        for (served, worker) in ready.iter().enumerate() {
            // One worker has one core at the most.
            let share = (budget / (ready.len() - served) as f64).min(STEP / self.cost);
            let read = waiting[*worker].min(share as usize);
            waiting[*worker] -= read;
            budget -= read as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: Model = Model {
        rate: 100_000.0,
        workers: 2,
        cost: 4e-6,
        cores: 2,
        buffer: 1_000,
        stall: 0.0,
        stalls: 0.0,
        seconds: 5.0,
    };

    fn lost(model: &Model) -> f64 {
        let (sent, lost) = model.run(&mut Rng::with_seed(1));
        assert!((sent as f64 - model.rate * model.seconds).abs() < 2.0);
        lost as f64 / sent as f64
    }

    #[test]
    fn what_the_workers_can_carry_is_not_lost_and_the_rest_is() {
        assert_eq!(lost(&MODEL), 0.0);
        // Two cores carry 500,000 a second at 4 µs each.
        let over = lost(&Model { rate: 1_000_000.0, ..MODEL });
        assert!((over - 0.5).abs() < 0.02, "{over}");
        let one_core = lost(&Model { rate: 400_000.0, cores: 1, ..MODEL });
        assert!((one_core - 0.375).abs() < 0.02, "{one_core}");
    }

    #[test]
    fn a_stall_is_survived_by_a_buffer_that_holds_it() {
        // In 10 ms half of 100,000 a second are 500 datagrams.
        let stalling = Model { stall: 0.010, stalls: 5.0, ..MODEL };
        assert_eq!(lost(&Model { buffer: 1_000, ..stalling }), 0.0);
        assert!(lost(&Model { buffer: 100, ..stalling }) > 0.01);
    }
}
