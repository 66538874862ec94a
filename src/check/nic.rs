//! Network cards: what they dropped, how many cores they feed, and whether they turn packets away by their route.

use std::fs;
use std::path::Path;

use super::finding::Finding;
use super::kernel::{number, setting_number, text};

/// A hint about RPS is worth its line from this many cores on.
const MANY_CORES: usize = 4;

/// A physical interface that is up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    /// `rx_dropped`, `rx_missed_errors`, `rx_fifo_errors` (Documentation/ABI/testing/sysfs-class-net-statistics).
    pub(super) dropped: u64,
    pub(super) missed: u64,
    pub(super) fifo: u64,
    /// Receive queues.
    pub(super) queues: usize,
    /// Whether any queue spreads its packets over cores (`rps_cpus`, Documentation/networking/scaling.rst).
    pub(super) rps: bool,
    /// `rp_filter` in force: 0 off, 1 strict, 2 loose (Documentation/networking/ip-sysctl.rst).
    pub(super) rp_filter: u64,
}

/// All that are up, in the order of their names, and the machine's cores, whatever part of them is ours.
pub(super) fn read() -> (Vec<Interface>, usize) {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.filter_map(|entry| interface(&entry.path())).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    (found, text("/sys/devices/system/cpu/online").as_deref().map_or(1, cores))
}

fn interface(path: &Path) -> Option<Interface> {
    let is_up = text(path.join("operstate")).is_some_and(|state| matches!(state.trim(), "up" | "unknown"));
    if !path.join("device").exists() || !is_up {
        return None;
    }
    let name = path.file_name()?.to_str()?.to_owned();
    let count = |name: &str| number(path.join("statistics").join(name)).unwrap_or_default();
    let queues: Vec<_> = fs::read_dir(path.join("queues"))
        .into_iter()
        .flatten()
        .flatten()
        .filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-"))
        .collect();
    let spreads = |mask: &str| mask.trim().chars().any(|digit| !matches!(digit, '0' | ','));
    let filter = |name: &str| setting_number(&format!("net.ipv4.conf.{name}.rp_filter")).unwrap_or_default();
    Some(Interface {
        dropped: count("rx_dropped"),
        missed: count("rx_missed_errors"),
        fifo: count("rx_fifo_errors"),
        queues: queues.len(),
        rps: queues.iter().filter_map(|queue| text(queue.path().join("rps_cpus"))).any(|mask| spreads(&mask)),
        rp_filter: filter("all").max(filter(&name)),
        name,
    })
}

/// How many cores a list such as `0-3,6` names.
fn cores(list: &str) -> usize {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    list.trim().split(',').filter_map(range).sum()
}

pub(super) fn judge(interfaces: &[Interface], cores: usize) -> Vec<Finding> {
    if interfaces.is_empty() {
        let means = "the node's cards are looked at on the node";
        return vec![Finding::ok("nic", "", "no physical interface is seen here", means)];
    }
    let strict = |interface: &&Interface| interfaces.len() > 1 && interface.rp_filter == 1;
    let each = interfaces.iter().flat_map(|interface| [drops(interface), queues(interface, cores)]);
    each.chain(interfaces.iter().filter(strict).map(rp_filter)).collect()
}

fn drops(interface: &Interface) -> Finding {
    let Interface { name, dropped, missed, fifo, .. } = interface;
    let found = format!("rx_dropped {dropped}, rx_missed_errors {missed}, rx_fifo_errors {fifo}");
    let finding = |means: &str| Finding::ok("nic_drops", name, found.clone(), means);
    match (missed + fifo, dropped) {
        (0, 0) => finding("the card has lost nothing"),
        (0, _) => finding("packets without a taker count here too, such as of unknown protocols")
            .warn([format!("ethtool -S {name} | grep -i -e drop -e discard, to see whether it is loss")]),
        _ => finding("the card's ring was full: packets were lost before the kernel saw them").warn([
            format!("ethtool -G {name} rx 4096"),
            format!("`ethtool -g {name}` says how large it can be; on the node"),
        ]),
    }
}

fn queues(interface: &Interface, cores: usize) -> Finding {
    let Interface { name, queues, rps, .. } = interface;
    let spread = if *rps { "RPS on" } else { "RPS off" };
    let finding = |means: &str| {
        Finding::ok("nic_queues", name, format!("receive queues {queues}, {spread}, cores {cores}"), means)
    };
    if *queues <= 1 && !rps && cores >= MANY_CORES {
        return finding("one core takes every packet in; RPS spreads senders, though each stays on one core")
            .warn([format!("echo {} > /sys/class/net/{name}/queues/rx-0/rps_cpus", mask(cores))]);
    }
    finding("each sender is taken in by one core")
}

/// All cores as the kernel writes a mask: hexadecimal, a comma between words of 32 bits.
fn mask(cores: usize) -> String {
    let words = cores.div_ceil(32);
    let word = |at: usize| {
        let bits = (cores - at * 32).min(32);
        format!("{:x}", u32::MAX >> (32 - bits))
    };
    (0..words).rev().map(word).collect::<Vec<_>>().join(",")
}

fn rp_filter(interface: &Interface) -> Finding {
    let name = &interface.name;
    let means = "datagrams whose answer would leave by another interface are dropped, uncounted";
    Finding::ok("rp_filter", name, "strict (1), beside other interfaces", means).warn([
        format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2"),
        "not needed where every sender is reached by the interface it sends to".to_owned(),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn card(name: &str) -> Interface {
        Interface { name: name.to_owned(), queues: 1, ..Interface::default() }
    }

    fn levels(interfaces: &[Interface], cores: usize) -> Vec<(&'static str, Level)> {
        judge(interfaces, cores).iter().map(|finding| (finding.id, finding.level)).collect()
    }

    #[test]
    fn loss_in_the_card_is_told_from_packets_without_a_taker() {
        assert_eq!(drops(&card("eth0")).level, Level::Ok);
        let ring = drops(&Interface { missed: 3, ..card("eth0") });
        assert_eq!((ring.level, ring.mend[0].as_str()), (Level::Warn, "ethtool -G eth0 rx 4096"));
        let stray = drops(&Interface { dropped: 3, ..card("eth0") });
        assert!(stray.level == Level::Warn && stray.mend[0].contains("ethtool -S eth0"), "{stray:?}");
    }

    #[test]
    fn one_queue_on_many_cores_is_a_hint() {
        let ok = [("nic_drops", Level::Ok), ("nic_queues", Level::Ok)];
        assert_eq!(levels(&[card("eth0")], 2), ok);
        assert_eq!(levels(&[Interface { rps: true, ..card("eth0") }], 8), ok);
        assert_eq!(levels(&[Interface { queues: 8, ..card("eth0") }], 8), ok);
        let hint = queues(&card("eth0"), 8);
        assert_eq!(
            (hint.level, hint.mend[0].as_str()),
            (Level::Warn, "echo ff > /sys/class/net/eth0/queues/rx-0/rps_cpus")
        );
        assert_eq!(["0\n", "0-3", "0-3,6,8-9"].map(cores), [1, 4, 7]);
        assert_eq!([4, 32, 40, 64].map(mask), ["f", "ffffffff", "ff,ffffffff", "ffffffff,ffffffff"]);
    }

    #[test]
    fn a_strict_filter_matters_beside_other_interfaces() {
        let strict = Interface { rp_filter: 1, ..card("eth1") };
        assert_eq!(levels(std::slice::from_ref(&strict), 1).len(), 2);
        let found = judge(&[card("eth0"), strict], 1);
        assert_eq!(found.last().unwrap().mend[0], "sysctl -w net.ipv4.conf.eth1.rp_filter=2");
        assert_eq!(found.len(), 5);
        assert_eq!(levels(&[card("eth0"), Interface { rp_filter: 2, ..card("eth1") }], 1).len(), 4);
        assert_eq!(levels(&[], 64), [("nic", Level::Ok)]);
    }
}
