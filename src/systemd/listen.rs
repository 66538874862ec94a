//! Sockets of a socket unit, and those of the process before that the manager has kept (systemd's fd store).

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process;

use socket2::Socket;
use tracing::{info, warn};

use super::{Notifier, variable};
use crate::receive::{Group, Inherited, Member, address_of};
use crate::socket::passed::take_passed;

/// What the names of kept sockets begin with; behind it come the place in the group, and the address without what a name may
/// not have.
const NAME: &str = "sluicegate-";

fn named(groups: &[Group]) -> impl Iterator<Item = (String, &Member)> {
    groups.iter().flat_map(|group| {
        let address = group.listener.address.to_string().replace(':', "_");
        let name = move |place| format!("{NAME}{place}-{address}");
        group.sockets.iter().enumerate().map(move |(place, member)| (name(place), &**member))
    })
}

/// The sockets that the manager passes, by address, each group in the order in which it was bound: those of the socket
/// unit in the unit's order, then those that were kept, by their numbers. The manager gives these in any order.
pub fn inherited() -> Vec<Inherited> {
    if variable::<u32>("LISTEN_PID") != Some(process::id()) {
        return Vec::new();
    }
    let count = variable("LISTEN_FDS").unwrap_or_default();
    let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut groups = BTreeMap::<SocketAddr, Vec<(Option<u32>, Socket)>>::new();
    for fd in take_passed(count) {
        let socket = Socket::from(fd);
        let name = names.next().unwrap_or_default();
        let place = name.strip_prefix(NAME).and_then(|rest| rest.split('-').next()?.parse().ok());
        match address_of(&socket) {
            Ok(address) => groups.entry(address).or_default().push((place, socket)),
            Err(error) => warn!(name, %error, "the service manager passed what is no UDP socket"),
        }
    }
    let group = |(address, mut sockets): (SocketAddr, Vec<(Option<u32>, Socket)>)| {
        sockets.sort_by_key(|(place, _)| *place); // stable: without a number, as the unit has them
        info!(%address, sockets = sockets.len(), "sockets from the service manager");
        let sockets = sockets.into_iter().map(|(_, socket)| socket).collect();
        Inherited { address, sockets, claim: None, kept: true }
    };
    let mut all: Vec<_> = groups.into_iter().map(group).collect();
    all.retain(|group| {
        let right = group.check();
        if let Err(error) = &right {
            warn!(%error, "the service manager passed what is no UDP socket");
        }
        right.is_ok()
    });
    all
}

/// Gives the manager the sockets that it does not keep yet, for the next start, where it has room for them
/// (`FileDescriptorStoreMax=`; systemd 254 and newer say how much).
pub fn keep(notifier: &Notifier, groups: &[Group]) {
    let Some(room) = variable::<usize>("FDSTORE") else { return };
    forget(notifier, groups);
    let wanted = named(groups).count();
    if wanted > room {
        warn!(
            wanted,
            room,
            "the service manager has no room for all sockets: raise FileDescriptorStoreMax=, or a restart loses what they hold"
        );
        return;
    }
    for (name, member) in named(groups).filter(|(_, member)| !member.lives_on()) {
        match store(notifier, &name, member) {
            Ok(()) => member.keep(),
            Err(error) => {
                warn!(%error, "the service manager does not keep a socket: a restart loses what it holds");
            }
        }
    }
}

/// Has the manager close what it has kept for addresses that are not in the configuration any more: nobody would read it.
fn forget(notifier: &Notifier, groups: &[Group]) {
    let known: BTreeSet<_> = named(groups).map(|(name, _)| name).collect();
    for name in env::var("LISTEN_FDNAMES").unwrap_or_default().split(':') {
        if name.starts_with(NAME) && !known.contains(name) {
            info!(name, "the service manager need not keep this socket any more");
            notifier.send(&format!("FDSTOREREMOVE=1\nFDNAME={name}"), &[]).ok(); // as good as it gets
        }
    }
}

fn store(notifier: &Notifier, name: &str, member: &impl AsFd) -> io::Result<()> {
    // FDPOLL=0: a UDP socket with an error is as good as before.
    let message = format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0");
    notifier.send(&message, &[member.as_fd()])
}
