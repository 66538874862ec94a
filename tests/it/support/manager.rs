//! A service manager, as far as sockets go: it passes them to a process and keeps those that it is given.
#![allow(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::process::{Process, binary};
use super::wait_until;

pub struct Manager {
    directory: TempDir,
    notify: UnixDatagram,
    /// Of the socket unit.
    unit: Vec<OwnedFd>,
    /// Of the fd store, by name.
    pub store: Vec<(String, OwnedFd)>,
    room: usize,
}

impl Manager {
    /// One with a unit of so many sockets on the address, and room for so many more.
    pub fn new(address: SocketAddr, sockets: usize, room: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let notify = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        notify.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let open = |_| {
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
            socket.set_reuse_port(true).unwrap();
            socket.bind(&address.into()).unwrap();
            socket.into()
        };
        Self { directory, notify, unit: (0..sockets).map(open).collect(), store: Vec::new(), room }
    }

    /// Starts a process with everything, and waits until it is ready.
    pub fn start(&mut self, arguments: &[&str]) -> Process {
        // The store's in an order of its own, as systemd has it.
        let stored = self.store.iter().rev();
        let names: Vec<_> = self
            .unit
            .iter()
            .map(|_| "sluicegate.socket")
            .chain(stored.clone().map(|(name, _)| name.as_str()))
            .collect();
        let fds = self.unit.iter().chain(stored.map(|(_, fd)| fd));
        // Out of the way of the numbers that they are to have.
        let fds: Vec<_> = fds.map(|fd| fcntl_dupfd_cloexec(fd, 200).unwrap()).collect();
        let mut command = Command::new("sh");
        command.args(["-c", "LISTEN_PID=$$ exec \"$@\"", "sh"]).arg(binary()).args(arguments);
        command.env("LISTEN_FDS", fds.len().to_string()).env("LISTEN_FDNAMES", names.join(":"));
        command.env("NOTIFY_SOCKET", self.directory.path().join("notify"));
        if self.room > 0 {
            command.env("FDSTORE", self.room.to_string());
        }
        let numbers: Vec<_> = fds.iter().map(AsRawFd::as_raw_fd).collect();
        let place = move || {
            for (number, to) in numbers.iter().zip(3..) {
                // SAFETY: dup2 touches nothing but the table of descriptors, which is the child's own by now.
                if unsafe { libc::dup2(*number, to) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: `place` only calls dup2, which is safe between fork and exec.
        unsafe { command.pre_exec(place) };
        let process = Process::spawn(command);
        wait_until("it is ready", || self.listen().is_some_and(|said| said.contains("READY=1")));
        process
    }

    /// One message, if there is one; what comes with it is kept.
    fn listen(&mut self) -> Option<String> {
        let mut text = [0; 4_096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            self.notify.as_fd(),
            &mut [IoSliceMut::new(&mut text)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
        .ok()?;
        let said = String::from_utf8(text[..received.bytes].to_vec()).unwrap();
        let name = said.lines().find_map(|line| line.strip_prefix("FDNAME="));
        if said.lines().any(|line| line == "FDSTOREREMOVE=1") {
            self.store.retain(|(kept, _)| kept != name.unwrap());
        }
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                assert!(said.lines().any(|line| line == "FDSTORE=1"), "{said}");
                self.store.extend(fds.map(|fd| (name.unwrap().to_owned(), fd)));
            }
        }
        Some(said)
    }
}
