//! Cores against workers.

use super::finding::Finding;
use crate::config::{Config, usable_cores};

/// What there is, and what is asked of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// Cores that this process may use; affinity and quota respected.
    pub(super) usable: usize,
    /// CPU time that its control group may use, in cores; none without a limit.
    pub(super) quota: Option<f64>,
    /// Workers of the listener that has most.
    pub(super) workers: usize,
}

impl Facts {
    pub(super) fn read(config: &Config, quota: Option<f64>) -> Self {
        let workers = config.listeners.iter().map(|listener| listener.workers).max().unwrap_or_default();
        Self { usable: usable_cores(), quota, workers }
    }
}

pub(super) fn judge(facts: &Facts) -> Finding {
    let Facts { usable, quota, workers } = *facts;
    let said =
        quota.map_or_else(|| "no CPU quota".to_owned(), |quota| format!("a CPU quota of {quota:.2} cores"));
    let found = |means: &str| {
        Finding::ok(
            "cores",
            "",
            format!("workers {workers} a listener, usable cores {usable}, {said}"),
            means,
        )
    };
    if workers > usable {
        return found("more workers than cores take turns: they cost more and read no faster")
            .warn([format!("--workers {usable}")]);
    }
    match quota {
        Some(quota) if quota < workers as f64 => found(
            "once the quota is used up, nothing is read for the rest of each period (100 ms)",
        )
        .warn([format!(
            "raise the container's CPU limit to {workers} (Kubernetes: resources.limits.cpu), or give it none"
        )]),
        _ => found("each worker can have a core"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn workers_want_a_core_each_and_time_on_it() {
        let judge = |usable, quota, workers| judge(&Facts { usable, quota, workers });
        assert_eq!(judge(4, None, 4).level, Level::Ok);
        assert_eq!(judge(4, Some(4.0), 2).level, Level::Ok);
        let crowded = judge(2, None, 8);
        assert_eq!((crowded.level, crowded.mend[0].as_str()), (Level::Warn, "--workers 2"));
        let throttled = judge(1, Some(0.5), 1);
        assert!(
            throttled.level == Level::Warn && throttled.mend[0].contains("CPU limit to 1"),
            "{throttled:?}"
        );
        assert!(throttled.found.contains("0.50 cores"), "{throttled:?}");
    }
}
