//! What was given up because Vector would never take it.

use std::sync::atomic::AtomicU64;

/// Why an event was rejected; a closed set, fit for a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// A sink of Vector's refused it, or something in its batch, for good.
    DataLoss,
    /// It is too large for Vector all by itself.
    TooLarge,
    /// It failed again and again, all by itself, while others passed.
    Poison,
    /// It was not acknowledged within `vector.request.retry_max_duration_secs`.
    Expired,
}

impl Rejected {
    /// Every reason, in the order of its counters.
    pub const ALL: [Self; 4] = [Self::DataLoss, Self::TooLarge, Self::Poison, Self::Expired];

    /// The reason's name in reports, metrics and dead letters.
    pub fn reason(self) -> &'static str {
        match self {
            Self::DataLoss => "data_loss",
            Self::TooLarge => "too_large",
            Self::Poison => "poison",
            Self::Expired => "expired",
        }
    }
}

/// What became of dead letters, in events.
#[derive(Debug, Default)]
pub struct DeadLetterBooks {
    /// Those in the file.
    pub written: AtomicU64,
    /// Those that did not fit.
    pub full: AtomicU64,
    /// Those that could not be written.
    pub failed: AtomicU64,
    /// Those that came faster than the disk took them.
    pub behind: AtomicU64,
}

impl DeadLetterBooks {
    /// Those that are in no file, by why.
    pub fn lost(&self) -> [(&'static str, &AtomicU64); 3] {
        [("full", &self.full), ("error", &self.failed), ("behind", &self.behind)]
    }
}
