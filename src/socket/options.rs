//! Socket options that std and `socket2` do not offer: forced buffers, steering programs, memory counters.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, sock_filter, socklen_t};

/// What the kernel granted of a receive buffer (socket(7), `SO_RCVBUF`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedBuffer {
    /// Bytes asked for.
    pub asked: usize,
    /// Bytes granted, in the unit of the request: the kernel's own figure is twice this.
    pub granted: usize,
}

impl GrantedBuffer {
    /// True when the kernel gave less than was asked for (`net.core.rmem_max`).
    pub fn clamped(self) -> bool {
        self.granted < self.asked
    }
}

/// A socket's memory and loss, as `SO_MEMINFO` tells them (include/uapi/linux/sock_diag.h).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// Bytes charged to the receive queue. The charge is per skb, so more than the payloads.
    pub queued: u32,
    /// Datagrams dropped at this socket since it was opened; wraps at 2^32.
    pub drops: u32,
}

/// Asks for `bytes` of receive buffer: beyond `rmem_max` where the process may, else as far as it goes.
///
/// # Errors
/// The kernel's, when even the plain request is refused.
pub fn request_receive_buffer(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<GrantedBuffer> {
    // The kernel doubles the value into an int: more than half an int's range would overflow there.
    let ask = c_int::try_from(bytes).unwrap_or(c_int::MAX).min(c_int::MAX / 2);
    set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &ask)
        .or_else(|_| set(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &ask))?;
    let [doubled] = get::<1>(fd, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    Ok(GrantedBuffer { asked: bytes, granted: doubled as usize / 2 })
}

/// Whether the process may ask for more than `rmem_max` (socket(7), `SO_RCVBUFFORCE`: CAP_NET_ADMIN, and not only in
/// a user namespace of its own). The socket is left with a small buffer: throw it away.
pub fn may_force_receive_buffer(fd: BorrowedFd<'_>) -> bool {
    set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &4_096).is_ok()
}

/// Asks for the kernel's receive time with every datagram (socket(7), `SO_TIMESTAMPNS`).
///
/// # Errors
/// The kernel's.
pub fn enable_timestamps(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)
}

/// Attaches a steering program to the socket's whole `SO_REUSEPORT` group. Needs no privilege.
///
/// # Errors
/// The kernel's: `EPERM` or `ENOPROTOOPT` under some seccomp profiles and sandboxes.
pub fn attach_steering(fd: BorrowedFd<'_>, program: &[sock_filter]) -> io::Result<()> {
    set_program(fd, libc::SO_ATTACH_REUSEPORT_CBPF, program)
}

/// Makes the kernel drop, and count in [`SocketMemory::drops`], whatever arrives from now on.
/// What is queued already stays readable.
///
/// # Errors
/// The kernel's.
pub fn refuse_new_datagrams(fd: BorrowedFd<'_>) -> io::Result<()> {
    let keep_no_byte = sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    set_program(fd, libc::SO_ATTACH_FILTER, &[keep_no_byte])
}

/// Takes every datagram again, after [`refuse_new_datagrams`].
pub fn accept_new_datagrams(fd: BorrowedFd<'_>) {
    // ENOENT where there was no filter: as it should be.
    set(fd, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0).ok();
}

/// Leaves the steering of the socket's whole group to the kernel's hash again.
///
/// # Errors
/// The kernel's: `ENOPROTOOPT` before Linux 5.3. None where there is no program.
pub fn detach_steering(fd: BorrowedFd<'_>) -> io::Result<()> {
    match set(fd, libc::SOL_SOCKET, libc::SO_DETACH_REUSEPORT_BPF, &0) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        done => done,
    }
}

/// Reads the socket's memory and loss counters; right at once, and free for the receive path.
///
/// # Errors
/// The kernel's: `ENOPROTOOPT` before Linux 4.12.
pub fn memory(fd: BorrowedFd<'_>) -> io::Result<SocketMemory> {
    // Indices from enum SK_MEMINFO_*: 0 = RMEM_ALLOC, 8 = DROPS.
    let words = get::<9>(fd, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(SocketMemory { queued: words[0], drops: words[8] })
}

/// Makes one send of many bytes leave as datagrams of `bytes` each (udp(7), `UDP_SEGMENT`).
///
/// # Errors
/// The kernel's: `ENOPROTOOPT` before Linux 4.18.
pub fn set_segment_size(fd: BorrowedFd<'_>, bytes: u16) -> io::Result<()> {
    set(fd, libc::SOL_UDP, libc::UDP_SEGMENT, &c_int::from(bytes))
}

fn set_program(fd: BorrowedFd<'_>, name: c_int, program: &[sock_filter]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel copies the instructions and writes none of them, whatever the C type says.
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    set(fd, libc::SOL_SOCKET, name, &program)
}

fn set<T>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as socklen_t;
    // SAFETY: `value` is alive for the call and `length` is its size; the kernel only reads it.
    let result =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, ptr::from_ref(value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The process and the user at the other end of a Unix socket (unix(7), `SO_PEERCRED`). The process is 0 where this one's pid
/// namespace does not have it.
///
/// # Errors
/// The kernel's.
pub fn peer_credentials(fd: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let [pid, user, _group] = get::<3>(fd, libc::SOL_SOCKET, libc::SO_PEERCRED)?;
    Ok((pid, user))
}

fn get<const N: usize>(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<[u32; N]> {
    let mut words = [0u32; N];
    let mut length = size_of::<[u32; N]>() as socklen_t;
    // SAFETY: `words` is alive and exclusively ours for the call; the kernel writes `length` bytes at most.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, words.as_mut_ptr().cast(), &raw mut length) };
    if result == 0 { Ok(words) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_small_buffer_is_granted_as_asked() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let buffer = request_receive_buffer(socket.as_fd(), 65_536).unwrap();
        assert_eq!(buffer, GrantedBuffer { asked: 65_536, granted: 65_536 });
        assert!(!buffer.clamped());
    }

    #[test]
    fn memory_counts_what_waits_and_what_was_dropped() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = socket.local_addr().unwrap();
        request_receive_buffer(socket.as_fd(), 4_096).unwrap();
        for _ in 0..100 {
            sender.send_to(&[b'x'; 1_000], target).unwrap();
        }
        let memory = memory(socket.as_fd()).unwrap();
        assert!(memory.queued > 1_000, "{memory:?}");
        socket.set_nonblocking(true).unwrap();
        let read = std::iter::from_fn(|| socket.recv(&mut [0; 2_000]).ok()).count();
        assert_eq!(read + memory.drops as usize, 100);
    }

    #[test]
    fn a_refusing_socket_keeps_what_it_has_and_counts_the_rest() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = socket.local_addr().unwrap();
        sender.send_to(b"before", target).unwrap();
        refuse_new_datagrams(socket.as_fd()).unwrap();
        sender.send_to(b"after", target).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 16];
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"before");
        assert!(socket.recv(&mut buffer).is_err());
        assert_eq!(memory(socket.as_fd()).unwrap().drops, 1);
    }
}
