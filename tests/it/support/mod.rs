//! What the tests need: processes that clean up after themselves, ports, and a Vector that can misbehave.

pub mod admin;
pub mod chaos;
pub mod documents;
pub mod grpc;
pub mod manager;
pub mod manifests;
pub mod namespaces;
pub mod process;
pub mod prometheus;
pub mod promql;
pub mod scenario;
pub mod seccomp;
pub mod shell;
pub mod tls;
pub mod vector;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use sluicegate::load::parse_marker;

pub fn free_udp() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

pub fn free_tcp() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Waits until `condition` holds; the limit is generous, since no test asserts speed.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The number that `load` gave to a message, which may be part of something longer.
pub fn number_in(message: &[u8]) -> Option<u64> {
    let at = message.windows(4).position(|window| window == b"seq=")?;
    parse_marker(&message[at..]).map(|marker| marker.number)
}

/// The numbers in what `receive --json` printed.
pub fn numbers_in(lines: &str) -> impl Iterator<Item = u64> {
    lines.lines().filter_map(|line| number_in(line.as_bytes()))
}

/// True when the test can go on. In CI a missing capability is a failure; elsewhere it is said and passed over.
pub fn require(available: bool, what: &str) -> bool {
    if !available {
        assert!(std::env::var_os("CI").is_none(), "CI has to provide {what}");
        eprintln!("passed over: this machine lacks {what}");
    }
    available
}

/// Finds a program where `.ci/tools` puts it, in PATH, or in Debian's places for daemons.
pub fn program(name: &str) -> Option<PathBuf> {
    let unpacked = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tools").join(name);
    if unpacked.exists() {
        return Some(unpacked);
    }
    let found =
        Command::new("sh").args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin command -v {name}")]).output();
    let path = String::from_utf8(found.ok()?.stdout).ok()?.trim().to_owned();
    (!path.is_empty()).then(|| path.into())
}

/// A path in this repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}
