//! In which order what is measured: once, over rates, over workers, or towards the highest rate without loss.

use serde::Serialize;

use super::{Forwarder, Offer, Outcome, StageError};

/// Rates at which losses are compared, datagrams a second: those of the articles that people know.
pub const LOSS_RATES: [u64; 6] = [4_500, 9_000, 27_000, 50_000, 150_000, 350_000];

/// Numbers of workers that are compared.
pub const WORKERS: [usize; 5] = [1, 2, 4, 8, 16];

/// Runs of a rate that all have to be without loss.
const CONFIRM: usize = 2;

/// How a set of runs is made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// Each forwarder at the rate
    Once,
    /// Each forwarder at 4,500 to 350,000 messages a second
    Loss,
    /// Each forwarder with 1 to 16 workers
    Workers,
    /// The highest rate without loss of each forwarder, up to the rate
    Sweep,
}

impl Plan {
    /// The offers of a turn, in order; a sweep makes its own.
    pub fn offers(self, offer: &Offer) -> Vec<Offer> {
        match self {
            Self::Once | Self::Sweep => vec![offer.clone()],
            Self::Loss => LOSS_RATES.map(|rate| Offer { rate, ..offer.clone() }).into(),
            Self::Workers => WORKERS.map(|workers| Offer { workers, ..offer.clone() }).into(),
        }
    }
}

/// Looks for the highest rate, from 1,000 a second to the offer's, at which nothing is lost. `seen` is given every run.
///
/// # Errors
/// A stage's, or those of `seen`.
pub fn sweep<E: From<StageError>>(
    forwarder: &Forwarder,
    offer: &Offer,
    mut seen: impl FnMut(Outcome) -> Result<(), E>,
) -> Result<Option<u64>, E> {
    highest(1_000, offer.rate, |rate| {
        for _ in 0..CONFIRM {
            let outcome = forwarder.measure(&Offer { rate, ..offer.clone() })?;
            // A sender that cannot keep up says nothing of the forwarder.
            let holds = outcome.lost() == 0 && outcome.rate > 0.98 * rate as f64;
            seen(outcome)?;
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// The highest number from `low` to `high` for which `holds` is true, to 3 %, if it is true for `low` and, once it is
/// false, stays so.
fn highest<E>(low: u64, high: u64, mut holds: impl FnMut(u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    if holds(high)? {
        return Ok(Some(high));
    }
    let (mut good, mut bad) = (None, high);
    let mut next = (high / 2).max(low);
    loop {
        match holds(next)? {
            true => good = Some(next),
            false => bad = next,
        }
        next = match good {
            Some(good) if (bad - good) * 33 <= good => break,
            Some(good) => good + (bad - good) / 2,
            None if next == low => break,
            None => (next / 2).max(low),
        };
    }
    Ok(good)
}

/// The middle one, and how far the others are from it at the most, as a share of it.
pub fn median(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let middle = *values.get(values.len() / 2)?;
    let spread = (middle - values.first()?).max(values.last()? - middle);
    Some((middle, spread / middle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_is_found_to_three_percent() {
        for limit in [1_000, 1_234, 50_000, 199_999, 350_000] {
            let mut tried = 0;
            let found = highest(1_000, 350_000, |rate| {
                tried += 1;
                Ok::<_, ()>(rate <= limit)
            });
            let found = found.unwrap().unwrap();
            assert!(found <= limit && found as f64 >= limit as f64 * 0.96, "{found} for {limit}");
            assert!(tried < 20, "{tried} tries");
        }
        assert_eq!(highest(1_000, 350_000, |_| Ok::<_, ()>(false)), Ok(None));
    }

    #[test]
    fn the_median_has_its_spread() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some((2.0, 0.5)));
        assert_eq!(median(vec![]), None);
    }
}
