//! Sockets that were open before this process began: from the one before, or from the service manager.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;

use socket2::{Socket, Type};

/// The sockets of one address, in the order in which they were bound.
#[derive(Debug)]
pub struct Inherited {
    /// The address.
    pub address: SocketAddr,
    /// The sockets.
    pub sockets: Vec<Socket>,
    /// The lock on the address, where the one before still lives.
    pub claim: Option<UnixListener>,
    /// Whether the service manager keeps them for the next start.
    pub kept: bool,
}

impl Inherited {
    /// Makes sure that they are what they are said to be.
    ///
    /// # Errors
    /// When one of them is no UDP socket on the address.
    pub fn check(&self) -> io::Result<()> {
        for socket in &self.sockets {
            if socket.r#type()? != Type::DGRAM || address_of(socket)? != self.address {
                let why = format!("a socket is none on UDP {}", self.address);
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
        Ok(())
    }
}

/// The address that a socket is bound to.
///
/// # Errors
/// When it is bound to none, or no IP socket.
pub fn address_of(socket: &Socket) -> io::Result<SocketAddr> {
    socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::InvalidData.into())
}
