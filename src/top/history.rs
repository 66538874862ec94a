//! The rates of the last minutes, sample by sample.

use std::collections::VecDeque;
use std::time::Duration;

/// How far back a line of sparks reaches, more or less.
const SPAN: Duration = Duration::from_secs(180);

/// Samples kept: more than any terminal has columns.
const KEPT: usize = 4_096;

/// Rates over one interval, each in units a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Datagrams received.
    pub received: f64,
    /// Events acknowledged.
    pub delivered: f64,
    /// Bytes received.
    pub bytes: f64,
}

/// Samples, oldest first; one that is missing is a moment without an answer.
#[derive(Debug, Clone, Default)]
pub struct History {
    samples: VecDeque<Option<Rates>>,
    /// Samples forgotten.
    forgotten: usize,
}

impl History {
    /// Adds the newest sample.
    pub fn push(&mut self, sample: Option<Rates>) {
        if self.samples.len() == KEPT {
            self.samples.pop_front();
            self.forgotten += 1;
        }
        self.samples.push_back(sample);
    }

    /// The highest of each column, newest first, for a line of `width` columns. A column always holds the same samples:
    /// the line moves and does not flicker.
    pub fn columns(
        &self,
        width: usize,
        interval: Duration,
        value: impl Fn(&Rates) -> f64,
    ) -> Vec<Option<u64>> {
        let each = samples_per_column(width, interval);
        let highest = |column: &[usize]| {
            let values = column.iter().filter_map(|number| self.samples[*number].as_ref());
            values.map(|rates| value(rates).round() as u64).max()
        };
        let numbers: Vec<_> = (0..self.samples.len()).collect();
        let columns = numbers.chunk_by(|a, b| (self.forgotten + a) / each == (self.forgotten + b) / each);
        columns.rev().take(width).map(highest).collect()
    }
}

/// How far back a line of this width reaches.
pub fn reach(width: usize, interval: Duration) -> Duration {
    interval * (samples_per_column(width, interval) * width) as u32
}

fn samples_per_column(width: usize, interval: Duration) -> usize {
    let samples = SPAN.as_secs_f64() / interval.as_secs_f64();
    ((samples / width.max(1) as f64).round() as usize).clamp(1, KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rates(received: f64) -> Option<Rates> {
        Some(Rates { received, ..Rates::default() })
    }

    #[test]
    fn a_column_is_the_highest_of_its_samples_and_keeps_them() {
        let mut history = History::default();
        let columns = |history: &History| history.columns(60, SECOND, |rates| rates.received);
        for sample in [rates(1.0), rates(5.0), rates(2.0), rates(7.0)] {
            history.push(sample);
        }
        assert_eq!(columns(&history), [Some(7), Some(5)], "three samples a column");
        history.push(None);
        assert_eq!(columns(&history), [Some(7), Some(5)]);
        (0..4).for_each(|_| history.push(None));
        assert_eq!(columns(&history), [None, Some(7), Some(5)]);
        (0..KEPT * 2).for_each(|_| history.push(rates(3.0)));
        assert_eq!(columns(&history), vec![Some(3); 60]);
    }

    #[test]
    fn a_line_reaches_back_about_three_minutes_or_as_far_as_it_has_columns() {
        assert_eq!(reach(60, SECOND).as_secs(), 180);
        assert_eq!(reach(125, SECOND).as_secs(), 125);
        assert_eq!(reach(200, SECOND).as_secs(), 200);
        assert_eq!(reach(50, SECOND * 10).as_secs(), 500);
        assert_eq!(reach(0, Duration::from_millis(100)), Duration::ZERO);
    }
}
