//! The sockets of a running sluicegate go to its successor, with what they hold: no datagram is lost in between.
//!
//! In: `takeover.path`, where the running process listens, and `run --takeover PATH`, which asks there. Out: the group's sockets
//! (`SCM_RIGHTS`, unix(7)), the lock on the address, and the admin port. Until the successor says `reading`, when it is ready to, nothing
//! changes for the running process, and whatever goes wrong leaves it as it was. It begins with `released`: the sockets hold what comes
//! in between.
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
mod place;
mod serve;

pub use ask::{AskError, Released, Taken, ask};
pub use place::Published;
pub use serve::{Event, Offer, OfferedGroup, Server, Successor};

use std::io;
use std::os::fd::AsFd;

use rustix::process::geteuid;

use crate::socket::options::peer_credentials;

/// The version of the messages. Another one is refused: nothing here is guessed.
pub const VERSION: u32 = 1;

/// Who is at the other end, if it is somebody to give sockets to or take them from: the same user, or root. 0 is a process that
/// cannot be seen from here, as in another container.
fn peer(socket: impl AsFd) -> io::Result<u32> {
    let (pid, user) = peer_credentials(socket.as_fd())?;
    if user != geteuid().as_raw() && user != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("process {pid} belongs to user {user}, not to this one or root"),
        ));
    }
    Ok(pid)
}
