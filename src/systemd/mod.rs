//! What the service manager is told, and the sockets that it keeps (systemd: sd_notify(3), sd_listen_fds(3)).
//!
//! In: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `LISTEN_FDS` and their like. Out: one line messages to a Unix datagram socket, sockets
//! with them. Without a service manager nothing is sent, and nothing here can fail a start.

mod listen;
mod notify;

pub use listen::{inherited, keep};
pub use notify::Notifier;

use std::env;
use std::process;
use std::str::FromStr;
use std::time::Duration;

/// How often the manager wants a sign of life; none where it wants none.
pub fn watchdog() -> Option<Duration> {
    let for_us = variable::<u32>("WATCHDOG_PID").is_none_or(|pid| pid == process::id());
    variable("WATCHDOG_USEC").filter(|usec| for_us && *usec > 0).map(Duration::from_micros)
}

fn variable<T: FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.parse().ok()
}
