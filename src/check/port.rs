//! Ports: each listener's, and the admin port.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};

use super::finding::Finding;
use super::holder::{self, Holder, Protocol};
use super::kernel::{setting_number, text};
use crate::config::{Admin, Listener};
use crate::receive::{Claim, Trial};

/// What came of asking for an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bound {
    Free,
    Taken {
        holders: Vec<Holder>,
        /// True where a sluicegate listens on exactly this address.
        claimed: bool,
    },
    /// The lowest port that needs no privilege.
    Denied {
        from: u64,
    },
    NotHere,
    Failed(String),
}

impl Bound {
    fn of<T>(result: &io::Result<T>, protocol: Protocol, address: SocketAddr) -> Self {
        let Err(error) = result else { return Self::Free };
        match error.kind() {
            ErrorKind::AddrInUse => {
                let claim = format!("@{}", Claim::name(address));
                let claims = text("/proc/net/unix").unwrap_or_default();
                let claimed = protocol == Protocol::Udp
                    && claims.lines().any(|line| line.split_whitespace().next_back() == Some(&claim));
                Self::Taken { holders: holder::find(protocol, address), claimed }
            }
            ErrorKind::PermissionDenied => {
                Self::Denied { from: setting_number("net.ipv4.ip_unprivileged_port_start").unwrap_or(1_024) }
            }
            ErrorKind::AddrNotAvailable => Self::NotHere,
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Asks for each listener's address, all of them held until the last was asked for, as two may want the same one.
pub(super) fn read(listeners: &[Listener]) -> Vec<(SocketAddr, Bound)> {
    let mut held = Vec::new();
    let mut ask = |listener: &Listener| {
        let trial = Trial::bind(listener.address, listener.is_dual_stack(listeners));
        let bound = Bound::of(&trial, Protocol::Udp, listener.address);
        held.extend(trial.ok());
        (listener.address, bound)
    };
    listeners.iter().map(&mut ask).collect()
}

/// Asks for the admin port; none where there is to be none.
pub(super) fn read_admin(admin: Admin) -> Option<(SocketAddr, Bound)> {
    let address = admin.address?;
    Some((address, Bound::of(&TcpListener::bind(address), Protocol::Tcp, address)))
}

pub(super) fn judge(address: SocketAddr, bound: &Bound) -> Finding {
    let port = address.port();
    let found = |found: String, means: &str| Finding::ok("port", address, found, means);
    let other = format!("or another port, with --listen {}", SocketAddr::new(address.ip(), 5_514));
    match bound {
        Bound::Free => found("free".to_owned(), "`run` can bind it"),
        Bound::Taken { holders, claimed } if *claimed || holders.iter().any(Holder::is_sluicegate) => found(
            format!("a running sluicegate has it{}", named(holders)),
            "well if that is the one you mean; a second one would be refused",
        )
        .warn([format!("nothing, or {}", stop(holders, port)), "or another port, with --listen".to_owned()]),
        Bound::Taken { holders, .. } if holders.iter().any(Holder::is_systemd) => found(
            format!("a socket unit has it{}", named(holders)),
            "well if it is that of sluicegate's service, which then gets it",
        )
        .warn(["nothing, or `systemctl list-sockets` names the unit".to_owned()]),
        Bound::Taken { holders, .. } => found(
            format!("taken{}", named(holders)),
            "`run` refuses to share it: the other would take datagrams away",
        )
        .fail([stop(holders, port), "or another port, with --listen".to_owned()]),
        Bound::Denied { from } => {
            found(format!("no permission; ports below {from} need it"), "`run` cannot bind it").fail([
                format!("sysctl -w net.ipv4.ip_unprivileged_port_start={port}"),
                "or give it CAP_NET_BIND_SERVICE (Kubernetes: securityContext.capabilities.add)".to_owned(),
                format!("{other}, and a Service or NAT rule that maps {port} to it"),
            ])
        }
        Bound::NotHere => {
            found(format!("{} is no address of this machine", address.ip()), "`run` cannot bind it")
                .fail([format!("--listen '[::]:{port}' means all; `ip addr` lists the addresses")])
        }
        Bound::Failed(error) => found(error.clone(), "`run` cannot bind it")
            .fail(["an address that can be had, with --listen".to_owned()]),
    }
}

pub(super) fn judge_admin(admin: Admin, asked: Option<&(SocketAddr, Bound)>) -> Finding {
    let Some((address, bound)) = asked else {
        return Finding::ok("admin", "", "no admin port", "no metrics, no health");
    };
    let found = |found: String, means: &str| Finding::ok("admin", address, found, means);
    let elsewhere = "--admin with a free address, or --admin '' for none".to_owned();
    let bad = |what: String, holders: &[Holder]| {
        let running = holders.iter().any(Holder::is_sluicegate);
        match admin.required {
            true if !running => found(what, "`run` refuses to start without it").fail([elsewhere.clone()]),
            true => found(what, "well if that is the one you mean").warn([elsewhere.clone()]),
            false => found(what, "`run` goes on without metrics and health").warn([elsewhere.clone()]),
        }
    };
    match bound {
        Bound::Free => found("free".to_owned(), "metrics and health can be served"),
        Bound::Taken { holders, .. } => bad(format!("taken{}", named(holders)), holders),
        Bound::Denied { from } => bad(format!("no permission; ports below {from} need it"), &[]),
        Bound::NotHere => bad(format!("{} is no address of this machine", address.ip()), &[]),
        Bound::Failed(error) => bad(error.clone(), &[]),
    }
}

/// The holders behind what they do; nothing where nobody is seen.
fn named(holders: &[Holder]) -> String {
    let names: Vec<_> = holders.iter().map(Holder::to_string).collect();
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}

fn stop(holders: &[Holder], port: u16) -> String {
    let pids: Vec<_> = holders.iter().filter_map(Holder::pid).map(|pid| pid.to_string()).collect();
    if holders.contains(&Holder::Ours) {
        return "give one of the two listeners another address".to_owned();
    }
    match pids.is_empty() {
        true => format!("stop who has it; as root, `ss -lunp 'sport = :{port}'` says who"),
        false => format!("kill {}", pids.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn process(name: &str) -> Holder {
        Holder::Process { pid: 77, name: name.to_owned() }
    }

    fn judge_port(bound: &Bound) -> Finding {
        judge("127.0.0.1:514".parse().unwrap(), bound)
    }

    #[test]
    fn a_foreign_holder_is_named_and_fails_and_a_sluicegate_warns() {
        assert_eq!(judge_port(&Bound::Free).level, Level::Ok);
        let foreign = judge_port(&Bound::Taken { holders: vec![process("rsyslogd")], claimed: false });
        assert_eq!((foreign.level, foreign.mend[0].as_str()), (Level::Fail, "kill 77"));
        assert_eq!(foreign.found, "taken: rsyslogd (pid 77)");
        let ours = judge_port(&Bound::Taken { holders: vec![process("sluicegate")], claimed: false });
        assert_eq!(ours.level, Level::Warn);
        let systemd = vec![Holder::Process { pid: 1, name: "systemd".to_owned() }];
        assert_eq!(judge_port(&Bound::Taken { holders: systemd, claimed: false }).level, Level::Warn);
        let unseen = vec![Holder::User { uid: 5 }];
        let claimed = judge_port(&Bound::Taken { holders: unseen.clone(), claimed: true });
        assert_eq!(claimed.level, Level::Warn);
        let unseen = judge_port(&Bound::Taken { holders: unseen, claimed: false });
        assert!(unseen.level == Level::Fail && unseen.mend[0].contains("ss -lunp"), "{unseen:?}");
        let twice = judge_port(&Bound::Taken { holders: vec![Holder::Ours], claimed: false });
        assert!(twice.level == Level::Fail && twice.mend[0].contains("two listeners"), "{twice:?}");
    }

    #[test]
    fn what_cannot_be_bound_says_what_to_do() {
        let denied = judge_port(&Bound::Denied { from: 1_024 });
        assert_eq!(denied.mend[0], "sysctl -w net.ipv4.ip_unprivileged_port_start=514");
        assert!(denied.mend[1].contains("CAP_NET_BIND_SERVICE") && denied.level == Level::Fail);
        let elsewhere = judge_port(&Bound::NotHere);
        assert!(elsewhere.level == Level::Fail && elsewhere.mend[0].contains("[::]:514"));
        assert_eq!(judge_port(&Bound::Failed("odd".into())).level, Level::Fail);
    }

    #[test]
    fn the_admin_port_matters_where_it_was_asked_for() {
        let address: SocketAddr = "127.0.0.1:9615".parse().unwrap();
        let judge = |required, bound: Bound| {
            judge_admin(
                Admin { address: Some(address), required, ..Admin::default() },
                Some(&(address, bound)),
            )
            .level
        };
        let taken = |name| Bound::Taken { holders: vec![process(name)], claimed: false };
        assert_eq!(judge(true, Bound::Free), Level::Ok);
        assert_eq!(judge(true, taken("nginx")), Level::Fail);
        assert_eq!(judge(true, taken("sluicegate")), Level::Warn);
        assert_eq!(judge(false, taken("nginx")), Level::Warn);
        assert_eq!(
            judge_admin(Admin { address: None, required: true, ..Admin::default() }, None).level,
            Level::Ok
        );
    }

    #[test]
    fn two_listeners_that_want_the_same_are_found() {
        let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let listeners =
            ["127.0.0.1", "0.0.0.0"].map(|ip| Listener::new(SocketAddr::new(ip.parse().unwrap(), port)));
        let asked = read(&listeners);
        assert_eq!(asked[0].1, Bound::Free);
        assert!(judge(asked[1].0, &asked[1].1).found.contains("another listener"), "{asked:?}");
    }
}
