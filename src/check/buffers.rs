//! Receive buffers: what is asked for, what the kernel grants, and whether it may all be used at once.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use super::finding::{Finding, size, sysctl};
use super::kernel::{setting_number, text, udp_mem};
use crate::config::{Config, Listener};
use crate::socket::options::{self, GrantedBuffer};

/// What the kernel charges for a datagram of 1.1 KB, bytes of its own figure, which is twice the granted one.
const CHARGE: u64 = 2_304;

/// One listener's buffers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    pub(super) listener: SocketAddr,
    /// Sockets.
    pub(super) workers: u64,
    /// Of each.
    pub(super) each: GrantedBuffer,
    /// True where the process may go beyond `net.core.rmem_max` (`SO_RCVBUFFORCE`).
    pub(super) forced: bool,
}

/// All listeners' buffers and the kernel's limits.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) buffers: Vec<Buffer>,
    /// `net.core.rmem_max`, bytes.
    pub(super) rmem_max: Option<u64>,
    /// `net.ipv4.udp_mem`, pages; not told in a network namespace of its own.
    pub(super) udp_mem: Option<[u64; 3]>,
    /// Pages that UDP sockets hold now (/proc/net/sockstat).
    pub(super) used: u64,
    /// Bytes of a page.
    pub(super) page: u64,
}

impl Facts {
    /// # Errors
    /// When no socket can be had.
    pub(super) fn read(config: &Config) -> io::Result<Self> {
        Ok(Self {
            buffers: config.listeners.iter().map(Buffer::ask).collect::<io::Result<_>>()?,
            rmem_max: setting_number("net.core.rmem_max"),
            udp_mem: udp_mem(),
            used: text("/proc/net/sockstat").as_deref().and_then(used_pages).unwrap_or_default(),
            page: rustix::param::page_size() as u64,
        })
    }

    /// What the kernel lets all sockets hold, bytes of its own figure.
    pub(super) fn bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.each.granted as u64 * 2 * buffer.workers).sum()
    }
}

impl Buffer {
    /// Asks a throw-away socket, as `run` would.
    fn ask(listener: &Listener) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(listener.address), Type::DGRAM, Some(Protocol::UDP))?;
        let share = listener.receive_buffer_bytes / listener.workers;
        let each = options::request_receive_buffer(socket.as_fd(), share)?;
        let forced = options::may_force_receive_buffer(socket.as_fd());
        Ok(Self { listener: listener.address, workers: listener.workers as u64, each, forced })
    }
}

fn used_pages(sockstat: &str) -> Option<u64> {
    let udp = sockstat.lines().find_map(|line| line.strip_prefix("UDP:"))?;
    udp.split_once("mem ")?.1.split_whitespace().next()?.parse().ok()
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let most = facts.buffers.iter().map(|buffer| buffer.each.asked).max().unwrap_or_default();
    let listeners = facts.buffers.iter().map(|buffer| granted(buffer, facts.rmem_max, most as u64));
    listeners.chain(together(facts)).collect()
}

/// `most` is what the greediest listener asks for: one setting has to do for all.
fn granted(buffer: &Buffer, rmem_max: Option<u64>, most: u64) -> Finding {
    let Buffer { listener, workers, each, forced } = *buffer;
    let (asked, granted) = (each.asked as u64, each.granted as u64);
    let holds = granted * 2 * workers / CHARGE;
    let limit = match (forced, rmem_max) {
        (true, _) => "no limit with CAP_NET_ADMIN".to_owned(),
        (false, Some(limit)) => format!("net.core.rmem_max is {}", size(limit)),
        (false, None) => "net.core.rmem_max is not told here".to_owned(),
    };
    let found = format!("{workers} × {} asked, {} granted; {limit}", size(asked), size(granted));
    let means = format!("together they hold about {holds} datagrams of 1.1 KB");
    if !each.clamped() {
        return Finding::ok("receive_buffer", listener, found, means);
    }
    let finding =
        Finding::ok("receive_buffer", listener, found, format!("{means}; what a burst has beyond is lost"));
    let [set, keep] = sysctl("net.core.rmem_max", &most.to_string());
    let less = format!("or be content with what there is: --receive-buffer-bytes {}", granted * workers);
    // Within a factor of two it is the buffer that was asked for, more or less.
    if granted * 2 >= asked { finding.warn([set, keep, less]) } else { finding.fail([set, keep, less]) }
}

/// `udp_mem` is shared by all UDP sockets. The kernel drops from its first number on, as UDP has no state of memory
/// pressure (net/core/sock.c, `__sk_mem_raise_allocated`), and counts that as UdpMemErrors.
fn together(facts: &Facts) -> Option<Finding> {
    let [low, pressure, high] = facts.udp_mem?;
    let need = facts.bytes().div_ceil(facts.page);
    let (all, room) = (size(need * facts.page), size(low * facts.page));
    let used = size(facts.used * facts.page);
    let found = format!("full buffers take {all} of the {room} of net.ipv4.udp_mem, {used} in use");
    if need + facts.used <= low {
        return Some(Finding::ok("udp_mem", "", found, "they can be full at once"));
    }
    let means = "the kernel drops before the buffers are full, and counts it as UdpMemErrors";
    let enough = need + facts.used;
    let numbers = format!("{enough} {} {}", pressure.max(enough / 3 * 4), high.max(enough * 2));
    let [set, keep] = sysctl("net.ipv4.udp_mem", &numbers);
    Some(Finding::ok("udp_mem", "", found, means).warn([
        set,
        keep,
        "or a smaller --receive-buffer-bytes".to_owned(),
    ]))
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    const MIB: usize = 1 << 20;

    fn facts(asked: usize, granted: usize, udp_mem: Option<[u64; 3]>) -> Facts {
        let buffer = Buffer {
            listener: "[::]:5514".parse().unwrap(),
            workers: 4,
            each: GrantedBuffer { asked, granted },
            forced: false,
        };
        Facts { buffers: vec![buffer], rmem_max: Some(granted as u64), udp_mem, used: 100, page: 4_096 }
    }

    #[test]
    fn a_clamped_buffer_is_found_and_the_mend_is_what_was_asked_for() {
        let level = |asked, granted| judge(&facts(asked, granted, None))[0].level;
        assert_eq!(level(16 * MIB, 16 * MIB), Level::Ok);
        assert_eq!(level(16 * MIB, 8 * MIB), Level::Warn);
        assert_eq!(level(16 * MIB, 212_992), Level::Fail);
        let finding = &judge(&facts(16 * MIB, 212_992, None))[0];
        assert_eq!(finding.mend[0], "sysctl -w net.core.rmem_max=16777216");
        assert!(finding.mend[2].ends_with("--receive-buffer-bytes 851968"), "{finding:?}");
        assert!(finding.found.contains("4 × 16 MiB asked, 208 KiB granted"), "{finding:?}");
        assert!(finding.means.contains("about 739 datagrams"), "{finding:?}");
    }

    #[test]
    fn the_setting_does_for_the_greediest_listener() {
        let mut facts = facts(MIB, 4_096, None);
        let greedy = Buffer { each: GrantedBuffer { asked: 9 * MIB, granted: 4_096 }, ..facts.buffers[0] };
        facts.buffers.push(greedy);
        let findings = judge(&facts);
        assert!(findings.iter().all(|finding| finding.mend[0] == "sysctl -w net.core.rmem_max=9437184"));
    }

    #[test]
    fn buffers_that_udp_mem_cannot_hold_are_found_and_the_mend_holds_them() {
        // 4 sockets × 16 MiB, doubled, are 32,768 pages.
        assert_eq!(judge(&facts(16 * MIB, 16 * MIB, None)).len(), 1);
        let roomy = judge(&facts(16 * MIB, 16 * MIB, Some([32_868, 40_000, 50_000])));
        assert_eq!(roomy[1].level, Level::Ok);
        let tight = judge(&facts(16 * MIB, 16 * MIB, Some([32_867, 40_000, 50_000])));
        assert_eq!(tight[1].level, Level::Warn);
        assert_eq!(tight[1].mend[0], "sysctl -w net.ipv4.udp_mem='32868 43824 65736'");
        let mended = judge(&facts(16 * MIB, 16 * MIB, Some([32_868, 43_824, 65_736])));
        assert_eq!(mended[1].level, Level::Ok);
    }

    #[test]
    fn the_kernels_table_is_read() {
        let sockstat = "sockets: used 15\nTCP: inuse 2 orphan 0 tw 0 alloc 2 mem 124\nUDP: inuse 3 mem 7\n";
        assert_eq!(used_pages(sockstat), Some(7));
        assert_eq!(used_pages("UDPLITE: inuse 0\n"), None);
    }
}
