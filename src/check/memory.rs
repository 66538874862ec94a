//! The memory ceiling and the sockets' buffers against what the process may have.

use super::finding::{Finding, size};
use super::kernel::text;
use crate::config::Config;

/// What the program itself takes, bytes: code, runtime, a compiled VRL program.
const PROGRAM: u64 = 64 << 20;

/// A queue smaller than this is none.
const SMALLEST_BUFFER: u64 = 16 << 20;

/// What there is, and what is asked of it; all in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// [`Config::memory_ceiling`].
    pub(super) ceiling: u64,
    /// What the sockets may hold: the kernel charges it to the same control group.
    pub(super) sockets: u64,
    /// The queue's part of the ceiling.
    pub(super) buffer: u64,
    /// The control group's limit.
    pub(super) limit: Option<u64>,
    /// What the machine could give now (`MemAvailable`, proc_meminfo(5)).
    pub(super) available: Option<u64>,
}

impl Facts {
    pub(super) fn read(config: &Config, sockets: u64, limit: Option<u64>) -> Self {
        Self {
            ceiling: config.memory_ceiling() as u64,
            sockets,
            buffer: config.buffer.max_bytes as u64,
            limit,
            available: text("/proc/meminfo").as_deref().and_then(available),
        }
    }
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1_024)
}

pub(super) fn judge(facts: &Facts) -> Finding {
    let Facts { ceiling, sockets, buffer, limit, available } = *facts;
    let need = ceiling.saturating_add(sockets).saturating_add(PROGRAM);
    let parts = format!(
        "{} at most (events {}, sockets {}, program {})",
        size(need),
        size(ceiling),
        size(sockets),
        size(PROGRAM)
    );
    let found = |beside: String, means: &str| Finding::ok("memory", "", format!("{parts}; {beside}"), means);
    let smaller = |have: u64| match buffer.checked_sub(need - have) {
        Some(fits) if fits >= SMALLEST_BUFFER => format!("--buffer-max-bytes {fits}"),
        _ => "a smaller --buffer-max-bytes, --receive-buffer-bytes, --batch-max-bytes or fewer --streams"
            .to_owned(),
    };
    match (limit, available) {
        (Some(limit), _) if limit < need => found(
            format!("the control group's limit is {}", size(limit)),
            "when Vector is down long enough, the kernel kills it",
        )
        .fail([
            smaller(limit),
            format!(
                "or raise the container's memory limit to {need} bytes (Kubernetes: resources.limits.memory)"
            ),
        ]),
        (_, Some(available)) if available < need => found(
            format!("{} are available now", size(available)),
            "when Vector is down long enough, the machine may run out",
        )
        .warn([smaller(available), "or give the machine more memory".to_owned()]),
        (Some(limit), _) => found(format!("the control group's limit is {}", size(limit)), "it fits"),
        (None, Some(available)) => found(format!("{} are available, no limit", size(available)), "it fits"),
        (None, None) => found("no limit".to_owned(), "how much is available is not told here"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn facts(limit: Option<u64>, available: Option<u64>) -> Facts {
        Facts { ceiling: 300 * MIB, sockets: 128 * MIB, buffer: 256 * MIB, limit, available }
    }

    #[test]
    fn it_fits_or_the_mend_makes_it_fit() {
        assert_eq!(judge(&facts(None, None)).level, Level::Ok);
        assert_eq!(judge(&facts(Some(492 * MIB), Some(600 * MIB))).level, Level::Ok);
        let tight = judge(&facts(Some(491 * MIB), Some(600 * MIB)));
        assert_eq!(tight.level, Level::Fail);
        let fits: u64 = tight.mend[0].strip_prefix("--buffer-max-bytes ").unwrap().parse().unwrap();
        let mended =
            Facts { ceiling: 300 * MIB - (256 * MIB - fits), buffer: fits, ..facts(Some(491 * MIB), None) };
        assert_eq!(judge(&mended).level, Level::Ok);
        let hopeless = judge(&facts(Some(64 * MIB), None));
        assert!(hopeless.mend[0].contains("fewer --streams"), "{hopeless:?}");
    }

    #[test]
    fn a_full_machine_is_a_warning() {
        assert_eq!(judge(&facts(None, Some(400 * MIB))).level, Level::Warn);
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   24 kB\n"), Some(24 * 1_024));
        assert_eq!(available(""), None);
    }
}
