//! Who has a port: /proc/net's tables name the socket, /proc/*/fd the process.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::kernel::text;

/// Which table of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Udp,
    /// Listening sockets only.
    Tcp,
}

/// A process that has the port, or, where that cannot be seen, only its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holder {
    Process {
        pid: u32,
        name: String,
    },
    User {
        uid: u32,
    },
    /// This process, which has just taken it for another listener.
    Ours,
}

impl Holder {
    pub(super) fn is_sluicegate(&self) -> bool {
        matches!(self, Self::Process { name, .. } if name == "sluicegate")
    }

    /// A socket unit's socket, unless a sluicegate has it as well.
    pub(super) fn is_systemd(&self) -> bool {
        matches!(self, Self::Process { pid: 1, name } if name == "systemd")
    }

    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Process { pid, .. } => Some(*pid),
            Self::User { .. } | Self::Ours => None,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, name } => write!(f, "{name} (pid {pid})"),
            Self::User { uid } => write!(f, "a process of user {uid} that is not seen from here"),
            Self::Ours => f.write_str("another listener of this configuration"),
        }
    }
}

/// Everybody whose socket overlaps `address`, each once.
pub(super) fn find(protocol: Protocol, address: SocketAddr) -> Vec<Holder> {
    let tables = match protocol {
        Protocol::Udp => ["/proc/net/udp", "/proc/net/udp6"],
        Protocol::Tcp => ["/proc/net/tcp", "/proc/net/tcp6"],
    };
    let mut entries: Vec<_> =
        tables.iter().flat_map(|path| parse(&text(path).unwrap_or_default(), protocol)).collect();
    entries.retain(|entry| overlaps(address, entry.local));
    if entries.is_empty() {
        return Vec::new();
    }
    let inodes: HashSet<u64> = entries.iter().map(|entry| entry.inode).collect();
    let (processes, seen) = processes_with(&inodes);
    let mut unseen: Vec<_> =
        entries.iter().filter(|entry| !seen.contains(&entry.inode)).map(|entry| entry.uid).collect();
    unseen.sort_unstable();
    unseen.dedup();
    processes.into_iter().chain(unseen.into_iter().map(|uid| Holder::User { uid })).collect()
}

/// A line of a table.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    local: SocketAddr,
    uid: u32,
    inode: u64,
}

/// proc_net(5): slot, local address, remote address, state, queues, timer, retransmits, uid, timeout, inode.
fn parse(table: &str, protocol: Protocol) -> Vec<Entry> {
    const LISTENING: &str = "0A";
    let entry = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        if protocol == Protocol::Tcp && *columns.get(3)? != LISTENING {
            return None;
        }
        let (ip, port) = columns.get(1)?.split_once(':')?;
        let local = SocketAddr::new(address(ip)?, u16::from_str_radix(port, 16).ok()?);
        Some(Entry { local, uid: columns.get(7)?.parse().ok()?, inode: columns.get(9)?.parse().ok()? })
    };
    table.lines().filter_map(entry).collect()
}

/// Words of 32 bits, each printed as this machine's number.
fn address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hex.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// Whether both cannot be bound. An IPv6 wildcard may or may not take IPv4: here it does.
fn overlaps(a: SocketAddr, b: SocketAddr) -> bool {
    let families = |a: IpAddr, b: IpAddr| {
        a.is_ipv4() == b.is_ipv4() || [a, b].iter().any(|ip| ip.is_ipv6() && ip.is_unspecified())
    };
    let (ours, theirs) = (a.ip().to_canonical(), b.ip().to_canonical());
    let meet = ours == theirs || ours.is_unspecified() || theirs.is_unspecified();
    a.port() == b.port() && meet && families(ours, theirs)
}

/// Processes that hold one of these sockets, and the sockets that somebody was seen to hold.
fn processes_with(inodes: &HashSet<u64>) -> (Vec<Holder>, HashSet<u64>) {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else { continue };
        let held: Vec<_> = descriptors
            .flatten()
            .filter_map(|descriptor| socket_inode(&fs::read_link(descriptor.path()).ok()?.to_string_lossy()))
            .filter(|inode| inodes.contains(inode))
            .collect();
        if !held.is_empty() {
            found.push(holder(pid));
            seen.extend(held);
        }
    }
    (found, seen)
}

fn holder(pid: u32) -> Holder {
    if pid == std::process::id() {
        return Holder::Ours;
    }
    let name = text(format!("/proc/{pid}/comm")).unwrap_or_default();
    Holder::Process { pid, name: name.trim().to_owned() }
}

fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn tables_are_read() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref\n\
                     1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n\
                     2: 00000000:0016 0200007F:1000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n";
        let expected = Entry { local: "127.0.0.1:8080".parse().unwrap(), uid: 1_000, inode: 4_711 };
        assert_eq!(parse(table, Protocol::Tcp), [expected]);
        assert_eq!(parse(table, Protocol::Udp).len(), 2);
        assert_eq!(address("00000000000000000000000001000000"), Some("::1".parse().unwrap()));
        assert_eq!(address("0000000000000000FFFF00000100007F"), Some("127.0.0.1".parse().unwrap()));
        assert_eq!(address("01"), None);
    }

    #[test]
    fn wildcards_overlap_what_they_take() {
        let overlap = |a: &str, b: &str| overlaps(a.parse().unwrap(), b.parse().unwrap());
        assert!(overlap("0.0.0.0:1", "127.0.0.1:1") && overlap("[::]:1", "127.0.0.1:1"));
        assert!(overlap("127.0.0.1:1", "127.0.0.1:1") && overlap("[::1]:1", "[::]:1"));
        assert!(!overlap("127.0.0.1:1", "127.0.0.1:2") && !overlap("127.0.0.1:1", "127.0.0.2:1"));
        assert!(!overlap("0.0.0.0:1", "[::1]:1"));
    }

    #[test]
    fn this_process_is_found_by_its_sockets() {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(find(Protocol::Udp, udp.local_addr().unwrap()), [Holder::Ours]);
        let tcp = TcpListener::bind("[::1]:0").unwrap();
        assert_eq!(find(Protocol::Tcp, tcp.local_addr().unwrap()), [Holder::Ours]);
        let free = udp.local_addr().unwrap();
        drop(udp);
        assert!(find(Protocol::Udp, free).is_empty());
    }
}
