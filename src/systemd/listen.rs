//! Sockets of a socket unit, and those of the process before that the manager has kept (systemd's fd store).

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process;

use socket2::Socket;
use tracing::{info, warn};

use super::{Notifier, variable};
use crate::receive::{Group, Inherited, address_of};
use crate::socket::passed::take_passed;

/// What the names of kept sockets begin with; the number behind it is the place in the group.
const NAME: &str = "sluicegate-";

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
        let place = name.strip_prefix(NAME).and_then(|place| place.parse().ok());
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
    let wanted: usize = groups.iter().map(|group| group.sockets.len()).sum();
    if wanted > room {
        warn!(
            wanted,
            room,
            "the service manager has no room for all sockets: raise FileDescriptorStoreMax=, or a restart loses what they hold"
        );
        return;
    }
    for (place, member) in groups.iter().flat_map(|group| group.sockets.iter().enumerate()) {
        if member.lives_on() {
            continue;
        }
        match store(notifier, place, member) {
            Ok(()) => member.keep(),
            Err(error) => {
                warn!(%error, "the service manager does not keep a socket: a restart loses what it holds");
            }
        }
    }
}

fn store(notifier: &Notifier, place: usize, member: &impl AsFd) -> io::Result<()> {
    // FDPOLL=0: a UDP socket with an error is as good as before.
    let message = format!("FDSTORE=1\nFDNAME={NAME}{place}\nFDPOLL=0");
    notifier.send(&message, &[member.as_fd()])
}
