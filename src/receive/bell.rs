//! What wakes those who sleep in `poll`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Readable from when it is rung until it is stilled (eventfd(2)).
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    /// A bell that was not rung yet.
    ///
    /// # Errors
    /// The kernel's, as when no file descriptor is left.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Rings it.
    ///
    /// # Errors
    /// The kernel's. It cannot be rung more than 2^64 - 2 times without being stilled, and is readable by then.
    pub(super) fn ring(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &1u64.to_ne_bytes())?;
        Ok(())
    }

    /// Stills it, if it was rung.
    pub(super) fn still(&self) {
        rustix::io::read(&self.0, &mut [0; 8]).ok(); // fails where it was not
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
