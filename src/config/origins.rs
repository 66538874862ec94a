//! Addresses that may send: a list of networks, made for looking up one address among thousands.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Problems of a list that are told one by one; what is beyond is only counted.
const TOLD: usize = 10;

/// The networks of a `permit_origin`, as written and as ranges. An empty list lets everyone send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    written: Vec<String>,
    four: Ranges<u32>,
    six: Six,
}

impl Origins {
    /// Reads a list of networks (`10.0.0.0/8`) and addresses (`::1`). Bits behind the prefix are passed over, as in Vector,
    /// and an IPv4-mapped network (`::ffff:10.0.0.0/104`) is the IPv4 one.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place in the list.
    pub fn parse<T: AsRef<str>>(list: &[T]) -> Result<Self, String> {
        let (mut four, mut six, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
        for (at, text) in list.iter().map(AsRef::as_ref).enumerate() {
            match network(text) {
                Ok(Network::Four(first, last)) => four.push((first, last)),
                Ok(Network::Six(first, last)) => six.push((first, last)),
                Err(why) => wrong.push(format!("number {}, `{text}`, {why}", at + 1)),
            }
        }
        if wrong.is_empty() {
            let written = list.iter().map(|text| text.as_ref().to_owned()).collect();
            return Ok(Self { written, four: Ranges::of(four), six: Six::of(six) });
        }
        let more = wrong.len().saturating_sub(TOLD);
        wrong.truncate(TOLD);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        Err(wrong.join("; ") + &more)
    }

    /// The list as it was written.
    pub fn written(&self) -> &[String] {
        &self.written
    }

    /// True when everyone may send.
    pub fn is_open(&self) -> bool {
        self.written.is_empty()
    }

    /// Whether this address may send; an IPv4-mapped one is looked up as IPv4.
    #[inline]
    pub fn permits(&self, sender: IpAddr) -> bool {
        match sender.to_canonical() {
            IpAddr::V4(ip) => self.is_open() || self.four.contains(ip.into()),
            IpAddr::V6(ip) => self.is_open() || self.six.contains(ip.into()),
        }
    }
}

/// The first and the last address of a network.
enum Network {
    Four(u32, u32),
    Six(u128, u128),
}

fn network(text: &str) -> Result<Network, String> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let no_network = "is no network: write ADDRESS/PREFIX, such as 10.0.0.0/8, or one address, such as ::1";
    let address: IpAddr = address.parse().map_err(|_| no_network.to_owned())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        None => most,
        Some(prefix) => prefix
            .parse()
            .ok()
            .filter(|bits| *bits <= most)
            .ok_or_else(|| format!("has a prefix that is none: write 0 to {most} behind the slash"))?,
    };
    Ok(match address {
        IpAddr::V4(ip) => four(ip, prefix),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) if prefix >= 96 => four(ip, prefix - 96),
            _ => six(ip, prefix),
        },
    })
}

fn four(ip: Ipv4Addr, prefix: u32) -> Network {
    let host = u32::MAX.checked_shr(prefix).unwrap_or(0);
    Network::Four(u32::from(ip) & !host, u32::from(ip) | host)
}

fn six(ip: Ipv6Addr, prefix: u32) -> Network {
    let host = u128::MAX.checked_shr(prefix).unwrap_or(0);
    Network::Six(u128::from(ip) & !host, u128::from(ip) | host)
}

/// Ranges that do not overlap, in order. Firsts and lasts apart: a search touches the firsts only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Ranges<T> {
    firsts: Vec<T>,
    lasts: Vec<T>,
}

impl<T: Ord + Copy> Ranges<T> {
    fn of(mut ranges: Vec<(T, T)>) -> Self {
        ranges.sort_unstable();
        let (mut firsts, mut lasts) = (Vec::new(), Vec::new());
        for (first, last) in ranges {
            match lasts.last_mut() {
                Some(open) if first <= *open => *open = last.max(*open),
                _ => {
                    firsts.push(first);
                    lasts.push(last);
                }
            }
        }
        Self { firsts, lasts }
    }

    fn contains(&self, address: T) -> bool {
        self.contains_below(self.firsts.len(), address)
    }

    /// Whether one of the first `count` ranges has the address.
    fn contains_below(&self, count: usize, address: T) -> bool {
        let after = self.firsts[..count].partition_point(|first| *first <= address);
        after > 0 && address <= self.lasts[after - 1]
    }
}

/// IPv6: the network halves of the firsts are searched first. Comparing 128 bits takes three times as long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Six {
    halves: Vec<u64>,
    ranges: Ranges<u128>,
}

impl Six {
    fn of(ranges: Vec<(u128, u128)>) -> Self {
        let ranges = Ranges::of(ranges);
        Self { halves: ranges.firsts.iter().map(|first| (first >> 64) as u64).collect(), ranges }
    }

    fn contains(&self, address: u128) -> bool {
        let half = (address >> 64) as u64;
        let after = self.halves.partition_point(|first| *first <= half);
        let Some(last) = after.checked_sub(1) else { return false };
        match self.ranges.firsts[last] <= address {
            true => address <= self.ranges.lasts[last],
            false => self.ranges.contains_below(last, address), // of several in this network, an earlier one
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(list: &[&str], sender: &str) -> bool {
        Origins::parse(list).unwrap().permits(sender.parse().unwrap())
    }

    #[test]
    fn networks_and_addresses_of_both_families() {
        let list = ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::1", "198.51.100.77/24"];
        for inside in ["10.0.0.0", "10.255.255.255", "192.0.2.7", "2001:db8:ffff::1", "::1", "198.51.100.1"] {
            assert!(permits(&list, inside), "{inside}");
        }
        for outside in ["9.255.255.255", "11.0.0.0", "192.0.2.6", "192.0.2.8", "2001:db9::", "::2", "::"] {
            assert!(!permits(&list, outside), "{outside}");
        }
        let hosts: Vec<_> = (1..9).map(|host| format!("2001:db8::{:x}", host * 2)).collect();
        let hosts: Vec<_> = hosts.iter().map(String::as_str).collect();
        for host in 0..20 {
            let listed = host % 2 == 0 && (2..18).contains(&host);
            assert_eq!(permits(&hosts, &format!("2001:db8::{host:x}")), listed, "{host}");
        }
        assert!(permits(&[], "203.0.113.1") && permits(&[], "2001:db8::1"));
        assert!(permits(&["0.0.0.0/0"], "203.0.113.1") && !permits(&["0.0.0.0/0"], "2001:db8::1"));
        assert!(permits(&["::/0"], "2001:db8::1") && !permits(&["::/0"], "203.0.113.1"), "as in Vector");
    }

    #[test]
    fn mapped_addresses_and_networks_are_ipv4() {
        assert!(permits(&["10.0.0.0/8"], "::ffff:10.1.2.3"));
        assert!(permits(&["::ffff:10.0.0.0/104"], "10.1.2.3"));
        assert!(!permits(&["::ffff:10.0.0.0/104"], "11.1.2.3"));
        assert!(permits(&["::ffff:192.0.2.1"], "::ffff:192.0.2.1"));
    }

    #[test]
    fn ranges_are_what_a_search_of_the_whole_list_says() {
        let mut random = fastrand::Rng::with_seed(5);
        let list: Vec<_> = (0..2_000)
            .map(|_| format!("{}/{}", Ipv4Addr::from(random.u32(..) >> 8), random.u32(18..=32)))
            .collect();
        let origins = Origins::parse(&list).unwrap();
        let networks: Vec<_> = list.iter().map(|text| network(text).unwrap_or_else(|_| panic!())).collect();
        let mut inside = 0;
        for _ in 0..20_000 {
            let address = random.u32(..) >> 8;
            let listed = |network: &Network| matches!(network, Network::Four(first, last) if (*first..=*last).contains(&address));
            let expected = networks.iter().any(listed);
            assert_eq!(origins.permits(Ipv4Addr::from(address).into()), expected);
            inside += u32::from(expected);
        }
        assert!((1_000..19_000).contains(&inside), "both answers are looked at: {inside}");
    }

    #[test]
    fn all_that_is_wrong_is_told_with_its_place() {
        let wrong = ["10.0.0.0/33", "10.0.0.0/8", "nonsense", "::1/129", "1.2.3.4/", "", "1.2.3.4/-1"];
        let problem = Origins::parse(&wrong).unwrap_err();
        for told in [
            "number 1, `10.0.0.0/33`, has a prefix",
            "0 to 32",
            "number 3, `nonsense`",
            "0 to 128",
            "number 7",
        ] {
            assert!(problem.contains(told), "{told}: {problem}");
        }
        assert!(!problem.contains("number 2,"), "{problem}");
        let many = Origins::parse(&vec!["x"; 25]).unwrap_err();
        assert!(many.contains("number 10,") && many.ends_with("and 15 more"), "{many}");
    }
}
