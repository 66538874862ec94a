//! One socket of a group, which may outlive this process.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU8, fence};

use socket2::Socket;

use crate::socket::options;

/// Nobody else has it.
const OURS: u8 = 0;
/// A successor has it as well, and may or may not come to read it.
const OFFERED: u8 = 1;
/// A successor reads it.
const GONE: u8 = 2;

/// A socket of a group.
#[derive(Debug)]
pub struct Member {
    socket: Socket,
    /// The service manager keeps it for the next start.
    kept: AtomicBool,
    state: AtomicU8,
    /// The worker is about to read, or reads.
    is_read: AtomicBool,
    /// The kernel's drop counter when this process got it; none while a process before still counts.
    pub counted_from: Option<u32>,
}

impl Member {
    /// A socket that this process has opened.
    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket,
            kept: AtomicBool::new(false),
            state: AtomicU8::new(OURS),
            is_read: AtomicBool::new(false),
            counted_from: Some(0),
        }
    }

    /// One that somebody has handed over; `kept` where the service manager keeps it.
    pub(super) fn inherited(socket: Socket, kept: bool) -> Self {
        // Of a process that still runs, the counter is not ours yet.
        let counted_from = kept.then(|| options::memory(socket.as_fd()).unwrap_or_default().drops);
        Self {
            socket,
            kept: AtomicBool::new(kept),
            state: AtomicU8::new(OURS),
            is_read: AtomicBool::new(false),
            counted_from,
        }
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// True when what is queued in it is not lost with this process.
    pub fn lives_on(&self) -> bool {
        self.kept.load(Relaxed) || self.state.load(Relaxed) != OURS
    }

    /// True when it is somebody else's business by now.
    pub fn is_gone(&self) -> bool {
        self.state.load(Relaxed) == GONE
    }

    /// The worker is about to read, unless it sees that it was told to stop.
    pub(super) fn begin_read(&self) {
        self.is_read.store(true, Relaxed);
        // Before the look at the signal, as the other side gives the signal before it looks here.
        fence(SeqCst);
    }

    /// It has read, or will not.
    pub(super) fn end_read(&self) {
        self.is_read.store(false, Release);
    }

    /// Whether a read may be under way. Once false after the stop was given, there is none any more.
    pub fn is_being_read(&self) -> bool {
        fence(SeqCst);
        self.is_read.load(Acquire)
    }

    /// The service manager keeps it from now on.
    pub fn keep(&self) {
        self.kept.store(true, Relaxed);
    }

    /// A successor gets it, too.
    pub(super) fn offer(&self) {
        self.state.store(OFFERED, Relaxed);
    }

    /// No successor has it any more.
    pub(super) fn take_back(&self) {
        self.state.store(OURS, Relaxed);
    }

    /// A successor reads it.
    pub(super) fn give(&self) {
        self.state.store(GONE, Relaxed);
    }
}

impl AsFd for Member {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
