//! Where datagrams are taken, and whose.

use std::net::SocketAddr;
use std::time::Duration;

use super::{MAX_DATAGRAM, Origins, usable_cores};

/// One address and its group of sockets.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The address and UDP port.
    pub address: SocketAddr,
    /// Sockets and threads.
    pub workers: usize,
    /// Which worker gets a datagram.
    pub steering: Steering,
    /// Receive buffer of the whole group, bytes.
    pub receive_buffer_bytes: usize,
    /// The longest datagram taken, bytes; a longer one is counted and discarded, as in Vector.
    pub max_length: usize,
    /// Who may send; what others send is counted and discarded.
    pub permit_origin: Origins,
}

impl Listener {
    /// A listener with the defaults: a worker for each usable core, spread, 64 MiB.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            workers: usable_cores(),
            steering: Steering::Spread,
            receive_buffer_bytes: 64 << 20,
            max_length: MAX_DATAGRAM,
            permit_origin: Origins::default(),
        }
    }

    /// Whether an IPv6 wildcard takes IPv4 as well: not where another of `all` has that port for IPv4.
    pub fn is_dual_stack(&self, all: &[Self]) -> bool {
        let takes_ipv4 =
            |other: &Self| other.address.is_ipv4() && other.address.port() == self.address.port();
        !all.iter().any(takes_ipv4)
    }
}

/// Which socket of a group the kernel gives a datagram to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Steering {
    /// A random one: one flow uses every core, at the price of its order.
    Spread,
    /// By the flow's addresses and ports: keeps each sender's order.
    Flow,
    /// By the core that received it: cache-local where the network card spreads by itself.
    Cpu,
}

/// How much each sender may send; the names are those of Vector's `throttle` transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Datagrams in a window; 0 for no limit.
    pub threshold: usize,
    /// The window.
    pub window: Duration,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self { threshold: 0, window: Duration::from_secs(1) }
    }
}
