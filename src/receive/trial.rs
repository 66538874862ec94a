//! What `run` would do with a listener, done for a moment and given back: for `check`.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use socket2::Socket;

use super::group::open_socket;
use super::{Claim, steering};
use crate::config::Steering;
use crate::socket::options;

/// An address that can be had, for as long as this lives. A sluicegate or anybody else who has it is not disturbed:
/// the address is asked for without `SO_REUSEPORT` first.
#[derive(Debug)]
pub struct Trial {
    _claim: Claim,
    _socket: Socket,
}

impl Trial {
    /// Takes the address.
    ///
    /// # Errors
    /// What [`Group::open`](super::Group::open) would meet.
    pub fn bind(address: SocketAddr, dual_stack: bool) -> io::Result<Self> {
        let claim = Claim::take(address, dual_stack)?;
        let socket = open_socket(address, dual_stack)?;
        socket.bind(&address.into())?;
        Ok(Self { _claim: claim, _socket: socket })
    }
}

/// Attaches the steering program to a group of two on the loopback.
///
/// # Errors
/// The kernel's: `EPERM` or `ENOPROTOOPT` under some seccomp profiles and sandboxes.
pub fn try_steering(steering: Steering) -> io::Result<()> {
    let first = open_socket((Ipv4Addr::LOCALHOST, 0).into(), false)?;
    first.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    let second = open_socket((Ipv4Addr::LOCALHOST, 0).into(), false)?;
    second.bind(&first.local_addr()?)?;
    steering::program(steering, 2).map_or(Ok(()), |program| options::attach_steering(first.as_fd(), &program))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn what_was_tried_is_given_back() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let trial = Trial::bind(free, false).unwrap();
        assert_eq!(Trial::bind(free, false).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(trial);
        Trial::bind(free, false).unwrap();
        try_steering(Steering::Spread).unwrap();
    }
}
