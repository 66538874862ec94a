//! What the host lost before any of our sockets: from /proc, which needs no privilege.

use std::fs;

/// The host's own counters of loss; what it does not tell is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct HostCounters {
    /// UdpRcvbufErrors (/proc/net/snmp).
    pub udp_rcvbuf_errors: u64,
    /// UdpMemErrors (/proc/net/snmp).
    pub udp_mem_errors: u64,
    /// Packets that did not fit a core's backlog (/proc/net/softnet_stat, second column).
    pub softnet_dropped: u64,
    /// Times a core stopped with packets left over (the same, third column).
    pub softnet_squeezed: u64,
}

impl HostCounters {
    /// Reads them now.
    pub fn read() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/net/snmp"), &read("/proc/net/softnet_stat"))
    }

    fn parse(snmp: &str, softnet: &str) -> Self {
        let mut udp = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let names = udp.next().unwrap_or_default().split_whitespace();
        let values = udp.next().unwrap_or_default().split_whitespace();
        let mut counters = Self::default();
        for (name, value) in names.zip(values) {
            let value = value.parse().unwrap_or_default();
            match name {
                "RcvbufErrors" => counters.udp_rcvbuf_errors = value,
                "MemErrors" => counters.udp_mem_errors = value,
                _ => {}
            }
        }
        let column = |at: usize| {
            let number = |line: &str| u64::from_str_radix(line.split_whitespace().nth(at)?, 16).ok();
            softnet.lines().filter_map(number).sum()
        };
        counters.softnet_dropped = column(1);
        counters.softnet_squeezed = column(2);
        counters
    }
}

/// Resident memory of this process, bytes (/proc/self/status).
pub(crate) fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_tables() {
        let snmp = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors MemErrors\n\
                    Udp: 10 1 7 3 5 0 2\nUdpLite: InDatagrams\nUdpLite: 0\n";
        let softnet = "0000001a 00000003 00000000\n0000001b 0000000a 00000010\n";
        let expected = HostCounters {
            udp_rcvbuf_errors: 5,
            udp_mem_errors: 2,
            softnet_dropped: 13,
            softnet_squeezed: 16,
        };
        assert_eq!(HostCounters::parse(snmp, softnet), expected);
        assert_eq!(HostCounters::parse("", ""), HostCounters::default());
    }
}
