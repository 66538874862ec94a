//! `sendmmsg`: many datagrams to a connected socket in one call.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::mmsghdr;

/// The most datagrams one call takes (`UIO_MAXIOV`, include/uapi/linux/uio.h).
pub const MAX_MESSAGES: usize = 1_024;

/// Sends each slice as one datagram over a connected socket; returns how many the kernel took.
/// `headers` is scratch space, kept by the caller so that no call allocates.
///
/// # Errors
/// The kernel's, for the first datagram: after that, a short count is returned and the next call has it.
pub fn send_many(fd: BorrowedFd<'_>, messages: &[IoSlice<'_>], headers: &mut Headers) -> io::Result<usize> {
    let messages = &messages[..messages.len().min(MAX_MESSAGES)];
    headers.0.clear();
    headers.0.extend(messages.iter().map(header));
    // SAFETY: each header points to one IoSlice, which is an iovec by its documented ABI, over bytes that
    // `messages` keeps alive; the kernel reads them and writes only `msg_len` of the headers.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.0.as_mut_ptr(), messages.len() as u32, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Scratch headers of [`send_many`].
#[derive(Default)]
pub struct Headers(Vec<mmsghdr>);

fn header(message: &IoSlice<'_>) -> mmsghdr {
    // SAFETY: mmsghdr is plain integers and pointers; all zeroes (and null) is a value of it.
    let mut header: mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_iov = ptr::from_ref(message).cast_mut().cast();
    header.msg_hdr.msg_iovlen = 1;
    header
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn sends_each_slice_as_one_datagram() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let messages = [IoSlice::new(b"one"), IoSlice::new(b""), IoSlice::new(b"three")];
        assert_eq!(send_many(sender.as_fd(), &messages, &mut Headers::default()).unwrap(), 3);
        let mut buffer = [0; 16];
        for message in [&b"one"[..], b"", b"three"] {
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], message);
        }
    }
}
