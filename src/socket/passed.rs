//! Descriptors that this process was started with (sd_listen_fds(3)).

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fd::BorrowedFd;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// The first descriptor that a service manager passes (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// Takes descriptors 3 to 2 + `count`, once in a process's life; those that are not open are left out, and so are all
/// the second time. None of them goes on to children.
pub fn take_passed(count: usize) -> Vec<OwnedFd> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Relaxed) {
        return Vec::new();
    }
    let take = |number: RawFd| {
        // SAFETY: borrowed for these two calls only, which say EBADF where it is not open.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_getfd(fd).ok()?;
        fcntl_setfd(fd, FdFlags::CLOEXEC).ok()?;
        // SAFETY: it is open, the manager has passed it to this process alone, which opened none by this number itself (they were
        // taken before it began), and `TAKEN` sees to it that it is owned once.
        Some(unsafe { OwnedFd::from_raw_fd(number) })
    };
    (FIRST..).take(count).filter_map(take).collect()
}
