//! Whether a batch that fails again and again is at fault itself: one table, no state.
//!
//! Vector's decoder panics over some events (CANCELLED) and refuses others (INTERNAL), and says nothing of which one of the
//! batch it was. Halving is harmless, so it comes early; to reject an event is for good, so chance must be ruled out.

use crate::batch::Trouble;

/// What to do with a batch that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sentence {
    /// Try it again first of all: order is kept, and the fault is likely not the batch's.
    Again,
    /// Try it again after all that waits now, so that it holds nobody up.
    GiveWay,
    /// Try it again after all that waits now, though order be kept: else its sender would be heard no more.
    StepAside,
    /// Halve it.
    Halve,
    /// Reject it: it is a single event.
    Reject,
}

/// Strikes that halve a batch, or reject an event. Each needs a failure of this batch after a success of others at the
/// same Vector, so an outage gives none.
const STRIKES: u32 = 5;

/// Strikes that halve a half: one of the two has to be bad.
const STRIKES_OF_HALF: u32 = 1;

/// A batch without fault may be halved with at most this chance, and an event rejected with at most that.
const CHANCE_TO_HALVE: f64 = 1e-3;
const CHANCE_TO_REJECT: f64 = 1e-9;

/// Failures after which a batch goes to the end of the queue. With a single stream, nothing else could pass before.
const PATIENCE: u32 = 3;

/// Failures after which a single event holds nobody up even where order is kept.
const OBSTINATE: u32 = 20;

/// Failures that halve a batch though nothing passes: where every batch has a bad event, only a half can.
const DESPAIR: u32 = 10;

/// The sentence on a batch of so many events, whose strikes have this chance to be none of its fault.
pub(super) fn judge(events: u64, trouble: &Trouble, chance: f64) -> Sentence {
    let Trouble { failures, strikes, is_half, .. } = *trouble;
    let is_guilty = match events {
        0 | 1 => strikes >= STRIKES && chance < CHANCE_TO_REJECT,
        _ if is_half => strikes >= STRIKES_OF_HALF || failures >= DESPAIR,
        _ => strikes >= STRIKES && chance < CHANCE_TO_HALVE || failures >= DESPAIR,
    };
    match is_guilty {
        true if events < 2 => Sentence::Reject,
        true => Sentence::Halve,
        false if events < 2 && failures >= OBSTINATE => Sentence::StepAside,
        false if is_half || failures >= PATIENCE => Sentence::GiveWay,
        false => Sentence::Again,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let trouble = |failures, strikes, is_half| {
            let mut trouble = if is_half { Trouble::of_half() } else { Trouble::default() };
            (trouble.failures, trouble.strikes) = (failures, strikes);
            trouble
        };
        for (events, failures, strikes, is_half, chance, expected) in [
            (1_000, 1, 0, false, 1.0, Sentence::Again),
            (1_000, 2, 1, false, 0.0, Sentence::Again),
            (1_000, 3, 0, false, 1.0, Sentence::GiveWay),
            (1_000, 9, 4, false, 0.0, Sentence::GiveWay),
            (1_000, 6, 5, false, 0.01, Sentence::GiveWay), // others fail as well
            (1_000, 6, 5, false, 0.0001, Sentence::Halve),
            (1_000, 10, 0, false, 1.0, Sentence::Halve), // nothing passes: perhaps a half does
            (500, 1, 0, true, 1.0, Sentence::GiveWay),
            (500, 2, 1, true, 0.5, Sentence::Halve),
            (2, 2, 1, true, 0.5, Sentence::Halve),
            (1, 2, 1, true, 0.0, Sentence::GiveWay),
            (1, 19, 4, true, 0.0, Sentence::GiveWay),
            (1, 20, 4, true, 0.0, Sentence::StepAside),
            (1, 900, 0, true, 1.0, Sentence::StepAside), // an outage rejects nothing, however long
            (1, 900, 20, true, 0.01, Sentence::StepAside),
            (1, 6, 5, true, 1e-10, Sentence::Reject),
            (1, 1, 0, false, 1.0, Sentence::Again),
            (1, 6, 5, false, 1e-10, Sentence::Reject),
        ] {
            let got = judge(events, &trouble(failures, strikes, is_half), chance);
            assert_eq!(got, expected, "{events} events, {failures} failures, {strikes} strikes, {chance}");
        }
    }
}
