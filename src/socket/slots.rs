//! `recvmmsg` into memory that is allocated once: a row of slots, one datagram each.

use std::cell::UnsafeCell;
use std::io;
use std::mem::{offset_of, size_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::slice;

use libc::{c_void, iovec, mmsghdr, sockaddr_in, sockaddr_in6, socklen_t, timespec};

use crate::datagram::{Datagram, Timestamp, canonical};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("control messages are read by their 64-bit layout; 32-bit kernels need their own");

/// Room for the one control message that is asked for, `SCM_TIMESTAMPNS`, in 8-byte words.
// SAFETY: CMSG_SPACE is arithmetic on its argument; libc marks it unsafe only as a foreign macro.
const CONTROL_WORDS: usize = unsafe { libc::CMSG_SPACE(size_of::<timespec>() as u32) } as usize / 8;

/// Slots are this much further apart than they are long, in bytes. At a distance of a power of two, all
/// slots would share the same few cache sets, and the first lines of 64 datagrams would evict each other.
const SKEW: usize = 1_216;

/// What the kernel fills in beside a payload.
#[repr(C)]
#[derive(Clone, Copy)]
struct Envelope {
    control: [u64; CONTROL_WORDS],
    name: sockaddr_in6,
    target: iovec,
}

/// A fixed row of receive slots. Untouched pages cost address space, not memory.
pub struct Slots {
    payloads: Box<[UnsafeCell<u8>]>,
    envelopes: Box<[UnsafeCell<Envelope>]>,
    headers: Box<[mmsghdr]>,
    slot_length: usize,
    /// From one slot to the next, bytes.
    stride: usize,
    filled: usize,
}

// SAFETY: the raw pointers in `headers` and `envelopes` point into heap blocks that this value owns alone;
// they do not move with it, and nothing else holds them.
unsafe impl Send for Slots {}

/// Bytes of address space that `depth` slots of `slot_length` take.
pub fn slots_bytes(depth: usize, slot_length: usize) -> usize {
    depth * stride(slot_length)
}

fn stride(slot_length: usize) -> usize {
    (slot_length + SKEW).next_multiple_of(64)
}

impl Slots {
    /// `depth` slots for datagrams of up to `slot_length` bytes.
    pub fn new(depth: usize, slot_length: usize) -> Self {
        let stride = stride(slot_length);
        let payloads = Box::<[UnsafeCell<u8>]>::new_zeroed_slice(depth * stride);
        // SAFETY: zero is a valid u8, and UnsafeCell has the layout of what it holds.
        let payloads = unsafe { payloads.assume_init() };
        let envelopes = (0..depth)
            .map(|i| {
                let base = payloads[i * stride].get().cast::<c_void>();
                UnsafeCell::new(Envelope {
                    control: [0; CONTROL_WORDS],
                    // SAFETY: sockaddr_in6 is plain integers; all zeroes is a value of it.
                    name: unsafe { std::mem::zeroed() },
                    target: iovec { iov_base: base, iov_len: slot_length },
                })
            })
            .collect::<Box<[_]>>();
        let headers = envelopes.iter().map(header).collect();
        Self { payloads, envelopes, headers, slot_length, stride, filled: 0 }
    }

    /// How many datagrams one call can take.
    pub fn depth(&self) -> usize {
        self.headers.len()
    }

    /// Takes what is queued on the socket, up to the depth, without waiting; earlier datagrams are gone.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is queued; else the kernel's. None of them ends the socket.
    pub fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        for header in &mut self.headers[..self.filled] {
            // The kernel wrote its results over these three; without the reset the next call has no room.
            header.msg_hdr.msg_namelen = NAME_LENGTH;
            header.msg_hdr.msg_controllen = CONTROL_WORDS * 8;
            header.msg_hdr.msg_flags = 0;
        }
        self.filled = 0;
        let depth = self.headers.len() as u32;
        // SAFETY: every header points to an envelope and a payload slot of this value, with their true
        // lengths; `&mut self` means that no Datagram still borrows them; no timeout is given.
        let result = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                depth,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        self.filled = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        Ok(self.filled)
    }

    /// The datagrams of the last [`Self::receive`], in order of arrival.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        (0..self.filled).map(|i| self.datagram(i))
    }

    /// How many datagrams from number `first` on have the same sender, ports aside.
    pub fn run_from(&self, first: usize) -> usize {
        let sender = self.sender(first);
        (first..self.filled).take_while(|at| self.sender(*at) == sender).count()
    }

    fn sender(&self, i: usize) -> IpAddr {
        peer(&self.envelope(i).name).ip()
    }

    /// What the kernel wrote beside the payload.
    fn envelope(&self, i: usize) -> &Envelope {
        // SAFETY: written by the kernel in `receive`, and only read until the next one, which takes `&mut self`.
        unsafe { &*self.envelopes[i].get() }
    }

    #[inline]
    fn datagram(&self, i: usize) -> Datagram<'_> {
        let header = &self.headers[i];
        let length = (header.msg_len as usize).min(self.slot_length);
        let start = self.payloads.as_ptr().wrapping_add(i * self.stride);
        // SAFETY: `receive` has had the kernel fill `length` bytes of slot `i`, which is that long at least;
        // nothing writes there again before the next `receive`, which takes `&mut self`.
        let payload = unsafe { slice::from_raw_parts(start.cast::<u8>(), length) };
        let envelope = self.envelope(i);
        Datagram {
            payload,
            peer: peer(&envelope.name),
            received: timestamp(header.msg_hdr.msg_controllen, &envelope.control),
            truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        }
    }
}

const NAME_LENGTH: socklen_t = size_of::<sockaddr_in6>() as socklen_t;

fn header(envelope: &UnsafeCell<Envelope>) -> mmsghdr {
    let base = envelope.get().cast::<u8>();
    // SAFETY: mmsghdr is plain integers and pointers; all zeroes (and null) is a value of it. The C library
    // has padding fields there on some targets, so it cannot be written as a literal.
    let mut header: mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_name = base.wrapping_add(offset_of!(Envelope, name)).cast();
    header.msg_hdr.msg_namelen = NAME_LENGTH;
    header.msg_hdr.msg_iov = base.wrapping_add(offset_of!(Envelope, target)).cast();
    header.msg_hdr.msg_iovlen = 1;
    header.msg_hdr.msg_control = base.wrapping_add(offset_of!(Envelope, control)).cast();
    header.msg_hdr.msg_controllen = CONTROL_WORDS * 8;
    header
}

fn peer(name: &sockaddr_in6) -> SocketAddr {
    if i32::from(name.sin6_family) == libc::AF_INET6 {
        let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
        let port = u16::from_be(name.sin6_port);
        return canonical(SocketAddrV6::new(ip, port, 0, 0).into());
    }
    // SAFETY: an IPv4 socket's names are sockaddr_in, which is shorter and no more aligned than sockaddr_in6.
    let name = unsafe { &*std::ptr::from_ref(name).cast::<sockaddr_in>() };
    let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
    SocketAddrV4::new(ip, u16::from_be(name.sin_port)).into()
}

/// The one control message, read by its layout (cmsg(3)): length, level, type, then a timespec.
fn timestamp(length: usize, control: &[u64; CONTROL_WORDS]) -> Option<Timestamp> {
    const LEVEL_AND_TYPE: [u8; 8] = {
        let level = libc::SOL_SOCKET.to_ne_bytes();
        let kind = libc::SCM_TIMESTAMPNS.to_ne_bytes();
        [level[0], level[1], level[2], level[3], kind[0], kind[1], kind[2], kind[3]]
    };
    if length < CONTROL_WORDS * 8 || control[1].to_ne_bytes() != LEVEL_AND_TYPE {
        return None; // not enabled, or no room for it (MSG_CTRUNC): the caller reads the clock
    }
    let nanos = u32::try_from(control[3]).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Timestamp { seconds: control[2] as i64, nanos })
}

#[cfg(test)]
mod tests;
