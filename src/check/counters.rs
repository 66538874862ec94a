//! What the kernel has lost already, before and at the sockets.

use super::finding::{Finding, sysctl};
use super::kernel::{setting_number, udp_mem};
use crate::metrics::HostCounters;

/// Counters, and the settings that decide about them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    pub(super) counters: HostCounters,
    /// `net.core.netdev_max_backlog`, packets of a core's queue.
    pub(super) backlog: u64,
    /// `net.core.netdev_budget`, packets of one round.
    pub(super) budget: u64,
    /// `net.ipv4.udp_mem`, pages; not told in a network namespace of its own.
    pub(super) udp_mem: Option<[u64; 3]>,
}

impl Facts {
    pub(super) fn read() -> Self {
        Self {
            counters: HostCounters::read(),
            // The kernel's defaults, where a namespace does not show them (net/core/hotdata.c).
            backlog: setting_number("net.core.netdev_max_backlog").unwrap_or(1_000),
            budget: setting_number("net.core.netdev_budget").unwrap_or(300),
            udp_mem: udp_mem(),
        }
    }
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Facts { counters, backlog, budget, udp_mem } = *facts;
    let finding = |id, count: u64, means: &str, mend: [String; 2]| match count {
        0 => Finding::ok(id, "", "0 since boot", "none lost there"),
        count => Finding::ok(id, "", format!("{count} since boot"), means).warn(mend),
    };
    vec![
        finding(
            "udp_rcvbuf_errors",
            counters.udp_rcvbuf_errors,
            "datagrams met a full buffer of some UDP socket",
            [
                "if `nstat -az UdpRcvbufErrors` still grows while sluicegate runs: a larger --receive-buffer-bytes"
                    .to_owned(),
                "sluicegate's own share is sluicegate_receive_kernel_drops_total".to_owned(),
            ],
        ),
        finding(
            "udp_mem_errors",
            counters.udp_mem_errors,
            "all UDP sockets together held more than net.ipv4.udp_mem, or the control group's memory",
            more_memory(udp_mem),
        ),
        finding(
            "softnet_dropped",
            counters.softnet_dropped,
            "a core's backlog was full before any socket was asked",
            sysctl("net.core.netdev_max_backlog", &(backlog * 4).max(10_000).to_string()),
        ),
        finding(
            "softnet_squeezed",
            counters.softnet_squeezed,
            "a core stopped with packets left over; harmless unless it grows fast",
            sysctl("net.core.netdev_budget", &(budget * 2).max(600).to_string()),
        ),
    ]
}

/// Twice of what there is, where that is told.
fn more_memory(udp_mem: Option<[u64; 3]>) -> [String; 2] {
    let less =
        "or smaller receive buffers on this machine, if `nstat -az UdpMemErrors` still grows".to_owned();
    match udp_mem {
        Some([low, pressure, high]) => {
            let [set, _] = sysctl("net.ipv4.udp_mem", &format!("{} {} {}", low * 2, pressure * 2, high * 2));
            [set, less]
        }
        None => ["on the node: a larger first number in net.ipv4.udp_mem".to_owned(), less],
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn what_was_lost_is_found_with_the_setting_that_helps() {
        let facts = |counters| Facts { counters, backlog: 1_000, budget: 300, udp_mem: Some([10, 20, 30]) };
        assert!(judge(&facts(HostCounters::default())).iter().all(|finding| finding.level == Level::Ok));
        let counters =
            HostCounters { udp_rcvbuf_errors: 5, udp_mem_errors: 6, softnet_dropped: 7, softnet_squeezed: 8 };
        let findings = judge(&facts(counters));
        assert!(findings.iter().all(|finding| finding.level == Level::Warn));
        let found: Vec<_> = findings.iter().map(|finding| finding.found.as_str()).collect();
        assert_eq!(found, ["5 since boot", "6 since boot", "7 since boot", "8 since boot"]);
        assert_eq!(findings[1].mend[0], "sysctl -w net.ipv4.udp_mem='20 40 60'");
        assert_eq!(findings[2].mend[0], "sysctl -w net.core.netdev_max_backlog=10000");
        assert_eq!(findings[3].mend[0], "sysctl -w net.core.netdev_budget=600");
    }
}
