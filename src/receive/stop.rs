//! The signal that wakes every worker to drain and end.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::bell::Bell;

/// Told once, seen by all: a flag for those who run, a bell for those who sleep in `poll`.
#[derive(Debug)]
pub struct Stop {
    flag: AtomicBool,
    bell: Bell,
}

impl Stop {
    /// A signal that was not given yet.
    ///
    /// # Errors
    /// The kernel's, as when no file descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { flag: AtomicBool::new(false), bell: Bell::new()? })
    }

    /// Gives the signal.
    ///
    /// # Errors
    /// The kernel's; the flag is set all the same.
    pub fn give(&self) -> io::Result<()> {
        self.flag.store(true, Ordering::Release);
        self.bell.ring()
    }

    /// True once the signal was given.
    pub fn is_given(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Sleeps in the kernel until one of these is readable, the signal is given, or `timeout` is over.
    pub fn wait(&self, awaited: &[BorrowedFd<'_>], timeout: Option<Duration>) {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds: Vec<_> = awaited.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        fds.push(PollFd::new(&self.bell, PollFlags::IN));
        // Whatever ends the wait, the next read tells why: an error here (EINTR) is no news.
        poll(&mut fds, timeout.as_ref()).ok();
    }
}
