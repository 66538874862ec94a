//! One sluicegate to an address: a second one would join the group silently and take a share of the datagrams.

use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};

use socket2::{Domain, Protocol, Socket, Type};

/// Held for as long as the listener lives. Its name is an abstract Unix socket's: it belongs to the network
/// namespace as the UDP port does, needs no writable directory, and is gone with the process.
#[derive(Debug)]
pub struct Claim {
    lock: UnixListener,
}

impl Claim {
    /// The lock's name, as /proc/net/unix shows it behind an `@`.
    pub fn name(address: SocketAddr) -> String {
        format!("sluicegate/udp/{address}")
    }

    /// A claim that the process before has made, and still holds.
    pub(super) fn continued(lock: UnixListener) -> Self {
        Self { lock }
    }

    /// The lock, for a successor: the address stays claimed for as long as one of both has it.
    pub(super) fn shared(&self) -> io::Result<UnixListener> {
        self.lock.try_clone()
    }

    /// Claims `address` for sockets that are there already: only another sluicegate is looked for.
    ///
    /// # Errors
    /// `AddrInUse` when another sluicegate has claimed it.
    pub(super) fn lock(address: SocketAddr) -> io::Result<Self> {
        let name = UnixAddr::from_abstract_name(Self::name(address))?;
        Ok(Self { lock: UnixListener::bind_addr(&name)? })
    }

    /// Claims `address`, and makes sure that nobody else listens there, with or without `SO_REUSEPORT`.
    ///
    /// # Errors
    /// `AddrInUse` when another socket has the address; else what binding it would say.
    pub fn take(address: SocketAddr, dual_stack: bool) -> io::Result<Self> {
        let claim = Self::lock(address)?;
        // Two starting at once are kept apart by the lock. Everybody else is found by asking for the address
        // without SO_REUSEPORT, which no group lets anyone have.
        let probe = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            probe.set_only_v6(!dual_stack)?;
        }
        probe.bind(&address.into())?;
        Ok(claim)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::receive::group::open_socket;

    #[test]
    fn an_address_is_claimed_once() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let claim = Claim::take(free, false).unwrap();
        assert_eq!(Claim::take(free, false).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(claim);
        Claim::take(free, false).unwrap();
    }

    #[test]
    fn a_foreign_group_on_the_address_is_seen() {
        let foreign = open_socket("127.0.0.1:0".parse().unwrap(), false).unwrap();
        foreign.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        let address = foreign.local_addr().unwrap().as_socket().unwrap();
        assert_eq!(Claim::take(address, false).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let wildcard = SocketAddr::new("::".parse().unwrap(), address.port());
        assert_eq!(Claim::take(wildcard, true).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
