//! Messages and descriptors over a packet socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use socket2::Socket;

use crate::config::Steering;

/// Descriptors in a message; the kernel takes 253 (`SCM_MAX_FD`, include/net/scm.h).
pub(super) const MOST_FDS: usize = 200;

/// Bytes of a message.
const LONGEST: usize = 128 << 10;

/// What is said.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// The successor's first.
    Hello { version: u32, program: String, listeners: Vec<SocketAddr> },
    /// Why there will be no take-over.
    Refused { why: String },
    /// What the running process has.
    Offer { version: u32, program: String, groups: Vec<GroupOffer>, admin: Option<SocketAddr> },
    /// Descriptors, in the order of the offer: each group's sockets and its lock, then the admin port.
    Part { fds: usize },
    /// The successor reads these groups, by their numbers in the offer.
    Reading { groups: Vec<usize> },
    /// The running process reads no more. The kernel's drop counters as it saw them last, of each group's sockets.
    Released { drops: Vec<Vec<u32>> },
}

/// A group of sockets: the first of them was bound first, which is what the steering program counts by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GroupOffer {
    pub(super) address: SocketAddr,
    pub(super) steering: Steering,
    pub(super) sockets: usize,
}

/// Sends a message, with descriptors.
pub(super) fn send(socket: &Socket, message: &Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&text)], &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// A message as it came, with its descriptors. None when the other end is gone.
pub(super) fn receive_raw(socket: &Socket) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    let mut text = vec![0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        // Without room for more descriptors the kernel gives fewer (RLIMIT_NOFILE).
        let why = "a message did not arrive whole: raise the limit of open files (ulimit -n)";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    text.truncate(received.bytes);
    Ok((received.bytes > 0).then_some((text, fds)))
}

/// A message, with its descriptors.
pub(super) fn receive(socket: &Socket) -> io::Result<(Message, Vec<OwnedFd>)> {
    let (text, fds) = receive_raw(socket)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((serde_json::from_slice(&text)?, fds))
}

/// Waits until the other end is gone, or says that it has nothing left.
pub(super) fn wait_for_end(socket: &Socket) {
    socket.set_read_timeout(None).ok();
    // It says nothing more: whatever ends this, there is nobody to wait for.
    while matches!(receive_raw(socket), Ok(Some(_))) {}
}

/// Has reads and writes end after this time.
pub(super) fn be_patient(socket: &Socket, time: Duration) -> io::Result<()> {
    socket.set_read_timeout(Some(time))?;
    socket.set_write_timeout(Some(time))
}

/// All descriptors of a group, to be sent.
pub(super) fn parts<'a>(fds: &'a [OwnedFd]) -> impl Iterator<Item = Vec<BorrowedFd<'a>>> {
    fds.chunks(MOST_FDS).map(|part| part.iter().map(AsFd::as_fd).collect())
}
