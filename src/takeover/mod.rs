//! The sockets of a running sluicegate go to its successor, with what they hold: no datagram is lost in between.
//!
//! In: `takeover.path`, where the running process listens, and `run --takeover PATH`, which asks there. Out: the group's sockets
//! (`SCM_RIGHTS`, unix(7)), the lock on the address, and the admin port. Until the successor says that it reads, nothing changes for
//! the running process, and whatever goes wrong leaves it as it was. For a moment both read: a datagram is read by one of them.
//! Where order is kept, the successor says `reading` when it could, and begins with `released`.
//!
//! One message a packet (`SOCK_SEQPACKET`), JSON, the first with a version:
//!
//! ```text
//! successor              running
//!   hello ─────────────▶         version, addresses wanted
//!         ◀───────────── offer   the groups, and how many descriptors follow
//!         ◀───────────── part …  up to 200 descriptors each
//!   reading ───────────▶         which groups; from here on there is no way back
//!         ◀───────────── released  it reads no more; the drop counters as it saw them last
//! ```

mod ask;
mod message;
mod serve;

pub use ask::{AskError, Released, Taken, ask};
pub use serve::{Event, Offer, OfferedGroup, Published, Server, Successor};

use std::io;
use std::os::fd::AsFd;

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

/// The version of the messages. Another one is refused: nothing here is guessed.
pub const VERSION: u32 = 1;

/// Who is at the other end, if it is somebody to give sockets to or take them from: the same user, or root.
fn peer(socket: impl AsFd) -> io::Result<u32> {
    let peer = socket_peercred(socket)?;
    if peer.uid != geteuid() && !peer.uid.is_root() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("process {} belongs to user {}, not to this one or root", peer.pid, peer.uid.as_raw()),
        ));
    }
    Ok(peer.pid.as_raw_nonzero().get().unsigned_abs())
}
