//! How values are spread, in buckets that are known beforehand, as Prometheus has them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets, and how fine their sum is.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Upper bounds, in ascending order.
    bounds: &'static [f64],
    /// Parts of one that the sum is kept in: few enough that it never overflows.
    parts: f64,
}

/// Upper bounds for seconds between a millisecond and a minute; closer together around 0.2 s, where a batch closes for its age.
pub const SECONDS: Scale = Scale {
    parts: 1e6,
    bounds: &[
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.21, 0.22, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
        30.0, 60.0,
    ],
};

/// Upper bounds for the events of a batch.
pub const EVENTS: Scale =
    Scale { parts: 1.0, bounds: &[1.0, 10.0, 50.0, 100.0, 250.0, 500.0, 750.0, 1_000.0, 2_500.0, 10_000.0] };

/// Upper bounds for the bytes of a batch: 1 KiB to 4 MiB.
pub const BYTES: Scale = Scale {
    parts: 1.0,
    bounds: &[
        1_024.0,
        4_096.0,
        16_384.0,
        65_536.0,
        131_072.0,
        262_144.0,
        524_288.0,
        1_048_576.0,
        4_194_304.0,
    ],
};

/// Counts values by bucket; many may count at once. Meant for what happens once a batch.
#[derive(Debug)]
pub struct Histogram {
    scale: Scale,
    /// One for each bound, and one for what is above the last.
    counts: Vec<AtomicU64>,
    /// In the scale's parts.
    sum: AtomicU64,
}

impl Histogram {
    /// An empty one.
    pub fn new(scale: Scale) -> Self {
        Self {
            scale,
            counts: (0..=scale.bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    /// Counts a value, which is not negative.
    pub fn observe(&self, value: f64) {
        let bucket = self.scale.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add((value * self.scale.parts) as u64, Relaxed);
    }

    /// What was counted so far.
    pub fn read(&self) -> Distribution {
        Distribution {
            bounds: self.scale.bounds,
            counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(),
            sum: self.sum.load(Relaxed) as f64 / self.scale.parts,
        }
    }
}

/// A [`Histogram`] at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Upper bounds of all buckets but the last, which has none.
    pub bounds: &'static [f64],
    /// Values in each bucket, not in those below it.
    pub counts: Vec<u64>,
    /// All values added up.
    pub sum: f64,
}

impl Distribution {
    /// One of the same bounds added to this one.
    #[must_use]
    pub fn merged(mut self, other: &Self) -> Self {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
        self
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A value that this part of all is not above, by straight lines within buckets; none where there are no values.
    /// What is above the last bound counts as that.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let rank = part * self.count() as f64;
        let mut below = 0.0;
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let high = self.bounds.get(bucket).or(self.bounds.last()).copied()?;
            let low = if bucket == 0 { 0.0 } else { self.bounds[bucket - 1] };
            let within = (rank - below) / *count as f64;
            if within <= 1.0 {
                return Some(low + (high - low) * within.max(0.0));
            }
            below += *count as f64;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_buckets_that_include_their_bound() {
        let histogram = Histogram::new(Scale { bounds: &[1.0, 10.0], parts: 10.0 });
        assert_eq!(histogram.read().quantile(0.5), None);
        for value in [0.0, 1.0, 1.5, 10.0, 11.0, 1e9] {
            histogram.observe(value);
        }
        let read = histogram.read();
        assert_eq!((&read.counts[..], read.sum, read.count()), (&[2, 2, 2][..], 1e9 + 23.5, 6));
        let twice = read.clone().merged(&read);
        assert_eq!((&twice.counts[..], twice.sum), (&[4, 4, 4][..], 2e9 + 47.0));
    }

    #[test]
    fn quantiles_lie_within_the_right_bucket() {
        let histogram = Histogram::new(Scale { bounds: &[1.0, 10.0], parts: 10.0 });
        (0..90).for_each(|_| histogram.observe(0.5));
        (0..10).for_each(|_| histogram.observe(5.0));
        let read = histogram.read();
        assert_eq!(read.quantile(0.45), Some(0.5));
        assert_eq!(read.quantile(0.95), Some(5.5));
        histogram.observe(100.0);
        assert_eq!(histogram.read().quantile(1.0), Some(10.0));
    }
}
