//! What the socket layer hands to the encoder: one borrowed datagram.

use std::net::{IpAddr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};

/// One datagram, borrowed from the slot it was received into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The payload, byte for byte.
    pub payload: &'a [u8],
    /// The sender; an IPv4 sender of a dual-stack socket is written as IPv4 (RFC 4291, 2.5.5.2).
    pub peer: SocketAddr,
    /// The kernel's receive time, where it gave one.
    pub received: Option<Timestamp>,
    /// True when the datagram was longer than its slot and the rest is gone (`MSG_TRUNC`).
    pub truncated: bool,
}

/// A point in time as protobuf's `google.protobuf.Timestamp` wants it: UTC, nanoseconds below 10^9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second, 0 to 999,999,999: Vector's decoder panics above that.
    pub nanos: u32,
}

impl Timestamp {
    /// The wall clock's now.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { seconds: since.as_secs() as i64, nanos: since.subsec_nanos() }
    }

    /// Seconds from `earlier` to this; 0 where the clock was set back in between.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        let seconds = (self.seconds - earlier.seconds) as f64;
        (seconds + (f64::from(self.nanos) - f64::from(earlier.nanos)) / 1e9).max(0.0)
    }
}

/// The address with an IPv4-mapped IPv6 one written as the IPv4 that it stands for.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(_) => address,
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(ip.into(), address.port()),
            None => address,
        },
    }
}
