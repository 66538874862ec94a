//! Messages to the service manager (sd_notify(3)).

use std::env;
use std::ffi::OsStr;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::time::{ClockId, clock_gettime};
use tracing::{debug, warn};

/// A way to the service manager, or to nobody.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<UnixDatagram>,
}

impl Notifier {
    /// The manager that started this process, if one did and wants to hear.
    pub fn from_environment() -> Self {
        let Some(path) = env::var_os("NOTIFY_SOCKET") else { return Self::default() };
        match connect(&path) {
            Ok(socket) => Self { socket: Some(socket) },
            Err(error) => {
                warn!(%error, path = %path.display(), "cannot reach the service manager; going on without it");
                Self::default()
            }
        }
    }

    /// True when somebody listens.
    pub fn is_heard(&self) -> bool {
        self.socket.is_some()
    }

    /// Everything is open and read.
    pub fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={}", line(status)));
    }

    /// The configuration is being read again; [`Self::ready`] ends it.
    pub fn reloading(&self) {
        // The manager tells by the time whether this answers the signal that it sent.
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000;
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// The process ends, and may take so long for it.
    pub fn stopping(&self, within: Duration) {
        let micros = within.as_micros();
        self.say(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={micros}\nSTATUS=draining"));
    }

    /// A sign of life.
    pub fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    /// What `systemctl status` shows.
    pub fn status(&self, text: &str) {
        self.say(&format!("STATUS={}", line(text)));
    }

    fn say(&self, message: &str) {
        if let Err(error) = self.send(message, &[]) {
            debug!(%error, message, "the service manager was not told");
        }
    }

    /// Sends a message, and file descriptors with it.
    ///
    /// # Errors
    /// The kernel's. None where nobody listens.
    pub(super) fn send(&self, message: &str, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(socket, &[IoSlice::new(message.as_bytes())], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

fn connect(path: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    match path.as_bytes().strip_prefix(b"@") {
        Some(name) => socket.connect_addr(&SocketAddr::from_abstract_name(name)?)?,
        None => socket.connect(path)?,
    }
    Ok(socket)
}

/// A line break would begin another field.
fn line(text: &str) -> String {
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_each_and_none_to_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier { socket: Some(connect(path.as_os_str()).unwrap()) };
        notifier.ready("two\nlines");
        notifier.stopping(Duration::from_secs(2));
        let heard = || {
            let mut buffer = [0; 200];
            let length = manager.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        assert_eq!(heard(), "READY=1\nSTATUS=two lines");
        assert_eq!(heard(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=2000000\nSTATUS=draining");
        Notifier::default().ready("nobody");
        drop(manager);
        notifier.alive(); // a manager that is gone is no fault
    }
}
