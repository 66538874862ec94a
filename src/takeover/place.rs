//! Where successors ask: a socket in the file system or, behind an `@`, a name in the network namespace.
//!
//! A path can be taken from under a running process, by a rename. A name (unix(7), "abstract") needs no directory that both can write,
//! as between two pods, but it is free only when its owner lets go of it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};
use tracing::warn;

/// How often a name is tried that another process has.
const TRY: Duration = Duration::from_millis(50);

/// After this, somebody hears of it.
const LONG: Duration = Duration::from_secs(10);

/// Callers that may wait.
const BACKLOG: i32 = 8;

/// The address that a path, or an `@NAME`, means.
pub(super) fn address(path: &Path) -> io::Result<SockAddr> {
    match name(path) {
        Some(name) => SockAddr::unix(Path::new(std::ffi::OsStr::from_bytes(&[b"\0", name].concat()))),
        None => SockAddr::unix(path),
    }
}

fn name(path: &Path) -> Option<&[u8]> {
    path.as_os_str().as_bytes().strip_prefix(b"@")
}

/// A place that may still be another process's.
#[derive(Debug)]
pub(super) enum Place {
    /// A socket that is bound beside the path.
    File { socket: Socket, path: PathBuf, hidden: Hidden },
    /// A name, to be bound when it is free.
    Name { address: SockAddr, shown: PathBuf },
}

/// A name that is of no use to anybody else, and gone when it is not used.
#[derive(Debug)]
pub(super) struct Hidden(PathBuf);

impl Drop for Hidden {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok(); // it is not there any more once it was published
    }
}

/// The place, for as long as it is this process's.
#[derive(Debug)]
pub enum Published {
    /// The path; it goes with this, unless a successor has it by then.
    File {
        /// Where it is.
        path: PathBuf,
        /// Which file this process has put there.
        inode: u64,
    },
    /// The name.
    Name(Arc<Slot>),
}

/// Where the thread that listens and the one that ends it meet.
#[derive(Debug, Default)]
pub struct Slot(Mutex<Turn>);

/// How far a name has come.
#[derive(Debug, Default)]
enum Turn {
    /// It is not this process's yet.
    #[default]
    Waiting,
    Listening(Arc<Socket>),
    Over,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(*self.lock(), Turn::Over)
    }
}

impl Place {
    /// Binds beside a path, where another process may still be found.
    ///
    /// # Errors
    /// When the directory cannot be written, or the path is too long for a socket (108 bytes).
    pub(super) fn prepare(path: &Path) -> io::Result<Self> {
        let address = address(path)?;
        if name(path).is_some() {
            return Ok(Self::Name { address, shown: path.to_owned() });
        }
        let mut hidden = path.as_os_str().to_owned();
        hidden.push(format!(".{}", process::id()));
        let hidden = Hidden(PathBuf::from(hidden));
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
        fs::remove_file(&hidden.0).ok(); // of an earlier process with this number
        socket.bind(&SockAddr::unix(&hidden.0)?)?;
        // Before it listens, so that nobody else gets in between.
        fs::set_permissions(&hidden.0, Permissions::from_mode(0o600))?;
        socket.listen(BACKLOG)?;
        Ok(Self::File { socket, path: path.to_owned(), hidden })
    }

    /// Takes the place; of a name, [`Listening::wait`] does.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn publish(self) -> io::Result<(Published, Listening)> {
        match self {
            Self::File { socket, path, hidden } => {
                let inode = fs::metadata(&hidden.0)?.ino();
                fs::rename(&hidden.0, &path)?;
                Ok((Published::File { path, inode }, Listening::Now(Arc::new(socket))))
            }
            Self::Name { address, shown } => {
                let slot = Arc::<Slot>::default();
                Ok((Published::Name(Arc::clone(&slot)), Listening::Once { address, shown, slot }))
            }
        }
    }
}

/// The socket that listens, or will.
#[derive(Debug)]
pub(super) enum Listening {
    Now(Arc<Socket>),
    Once { address: SockAddr, shown: PathBuf, slot: Arc<Slot> },
}

impl Listening {
    /// The socket, once the process before has let go of its name, and what ends it. None when this process is to end first.
    pub(super) fn wait(self) -> Option<(Arc<Socket>, Arc<Slot>)> {
        let (address, shown, slot) = match self {
            Self::Now(socket) => return Some((socket, Arc::default())),
            Self::Once { address, shown, slot } => (address, shown, slot),
        };
        let (begun, mut told) = (Instant::now(), false);
        loop {
            let mut turn = slot.lock();
            if matches!(*turn, Turn::Over) {
                return None;
            }
            match listen(&address) {
                Ok(socket) => {
                    let socket = Arc::new(socket);
                    *turn = Turn::Listening(Arc::clone(&socket));
                    drop(turn);
                    return Some((socket, slot));
                }
                Err(error) if begun.elapsed() > LONG && !std::mem::replace(&mut told, true) => {
                    warn!(name = %shown.display(), %error, "nobody can take over from this process yet: another one has this name");
                }
                Err(_) => {}
            }
            drop(turn);
            thread::sleep(TRY);
        }
    }
}

fn listen(address: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

impl Published {
    /// Lets go of a name, so that the successor can have it. A path is the successor's when it takes it.
    pub fn let_go(&self) {
        if let Self::Name(slot) = self
            && let Turn::Listening(socket) = std::mem::replace(&mut *slot.lock(), Turn::Over)
        {
            socket.shutdown(std::net::Shutdown::Both).ok(); // wakes the thread in accept(2)
        }
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.let_go();
        if let Self::File { path, inode } = self
            && fs::metadata(&*path).is_ok_and(|found| found.ino() == *inode)
        {
            fs::remove_file(&*path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Taken = (Published, Option<(Arc<Socket>, Arc<Slot>)>);

    fn take(path: &str) -> Taken {
        let (published, listening) = Place::prepare(Path::new(path)).unwrap().publish().unwrap();
        (published, listening.wait())
    }

    #[test]
    fn a_name_is_one_process_s_until_it_lets_go() {
        let name = format!("@sluicegate/test/{}", process::id());
        let (first, listening) = take(&name);
        let (socket, slot) = listening.unwrap();
        let accepting = thread::spawn(move || (socket.accept().is_err(), slot.is_over()));
        assert!(listen(&address(Path::new(&name)).unwrap()).is_err(), "it is taken");
        let second = thread::spawn({
            let name = name.clone();
            move || take(&name).1.is_some()
        });
        first.let_go();
        assert_eq!(accepting.join().unwrap(), (true, true), "woken, and told why");
        assert!(second.join().unwrap());
        drop(first);
        assert!(take(&name).1.is_some(), "gone with its owner");
    }

    #[test]
    fn a_process_that_ends_waits_for_no_name() {
        let name = format!("@sluicegate/test/ends/{}", process::id());
        let _first = take(&name);
        let (second, listening) = Place::prepare(Path::new(&name)).unwrap().publish().unwrap();
        let waiting = thread::spawn(move || listening.wait().is_none());
        drop(second);
        assert!(waiting.join().unwrap());
    }
}
