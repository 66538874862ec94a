//! The successor's side.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use socket2::{Domain, Socket, Type};
use tracing::{info, warn};

use super::message::{self, GroupOffer, Message};
use super::place::address;
use super::{VERSION, peer};
use crate::config::{Config, Listener};
use crate::receive::{Claim, Inherited};

/// How long the running process may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why nothing was taken over; the running process goes on as if nothing had been asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The running process says no.
    #[error("the running sluicegate refuses: {0}")]
    Refused(String),
    /// The conversation failed.
    #[error("cannot take over from the sluicegate at {path}: {error}")]
    Failed {
        /// Where it was asked.
        path: String,
        /// What went wrong.
        error: io::Error,
    },
}

/// What was taken over.
#[derive(Debug)]
pub struct Taken {
    connection: Socket,
    pid: u32,
    groups: Vec<GroupOffer>,
    wanted: Vec<usize>,
    inherited: Vec<Inherited>,
    admin: Option<(SocketAddr, TcpListener)>,
}

/// Asks the process that listens at `path` for the sockets of these listeners. None when nobody listens there, or nobody does any
/// more: then there is nothing to take over, and this is a start like any other.
///
/// # Errors
/// When it refuses, or is no sluicegate that speaks this version, or another user's.
pub fn ask(path: &Path, config: &Config) -> Result<Option<Taken>, AskError> {
    let failed = |error| AskError::Failed { path: path.display().to_string(), error };
    let Some(connection) = connect(path).map_err(failed)? else {
        warn!(path = %path.display(), "nobody to take over from; starting anew");
        wait_until_free(config);
        return Ok(None);
    };
    let pid = peer(&connection).map_err(failed)?;
    match talk(connection, pid, config) {
        Err(AskError::Failed { error, .. }) if is_gone(&error) => {
            warn!(pid, "the process to take over from ended in the middle; starting anew");
            wait_for_exit(pid);
            wait_until_free(config);
            Ok(None)
        }
        Err(AskError::Failed { error, .. }) => Err(failed(error)),
        done => done.map(Some),
    }
}

fn talk(connection: Socket, pid: u32, config: &Config) -> Result<Taken, AskError> {
    let failed = |error| AskError::Failed { path: String::new(), error };
    let listeners: Vec<_> = config.listeners.iter().map(|listener| listener.address).collect();
    let hello = Message::Hello {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        listeners: listeners.clone(),
    };
    message::send(&connection, &hello, &[]).map_err(failed)?;
    let (groups, admin) = match message::receive(&connection).map_err(failed)?.0 {
        Message::Offer { version: VERSION, program, groups, admin } => {
            info!(pid, program, "taking over");
            (groups, admin)
        }
        Message::Refused { why } => return Err(AskError::Refused(why)),
        other => return Err(failed(unexpected(&other))),
    };
    let expected = groups.iter().map(|group| group.sockets + 1).sum::<usize>() + usize::from(admin.is_some());
    let mut fds = Vec::new();
    while fds.len() < expected {
        match message::receive(&connection).map_err(failed)? {
            (Message::Part { fds: count }, part) if part.len() == count && count > 0 => fds.extend(part),
            (other, _) => return Err(failed(unexpected(&other))),
        }
    }
    unpack((connection, pid), groups, admin, fds, &listeners).map_err(failed)
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Its connection may be closed before its other sockets are.
fn wait_for_exit(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // One that cannot be seen from here is given the time.
    wait_a_second_until(|| pid.is_some_and(|pid| test_kill_process(pid).is_err()));
}

/// The sockets of a process that is dying are closed one after the other: the one that is asked, and only then the others.
fn wait_until_free(config: &Config) {
    let is_taken = |listener: &Listener| {
        let claim = Claim::take(listener.address, listener.is_dual_stack(&config.listeners));
        claim.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    wait_a_second_until(|| !config.listeners.iter().any(is_taken));
}

fn wait_a_second_until(done: impl Fn() -> bool) {
    const LOOK: Duration = Duration::from_millis(10);
    for _ in 0..100 {
        if done() {
            return;
        }
        thread::sleep(LOOK);
    }
}

fn connect(path: &Path) -> io::Result<Option<Socket>> {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    message::be_patient(&socket, PATIENCE)?;
    match socket.connect(&address(path)?) {
        Ok(()) => Ok(Some(socket)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn unexpected(message: &Message) -> io::Error {
    let said = serde_json::to_string(message).unwrap_or_default();
    io::Error::new(io::ErrorKind::InvalidData, format!("it said {said:.200}, which was not expected"))
}

fn unpack(
    (connection, pid): (Socket, u32),
    groups: Vec<GroupOffer>,
    admin: Option<SocketAddr>,
    fds: Vec<OwnedFd>,
    listeners: &[SocketAddr],
) -> io::Result<Taken> {
    let mut fds = fds.into_iter();
    let (mut inherited, mut wanted) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        let sockets = fds.by_ref().take(group.sockets).map(Socket::from).collect();
        let claim = fds.next().map(UnixListener::from);
        if !listeners.contains(&group.address) {
            warn!(address = %group.address, "not in this configuration: its sockets end with the process before");
            continue;
        }
        wanted.push(number);
        inherited.push(Inherited { address: group.address, sockets, claim, kept: false });
    }
    for taken in &inherited {
        taken.check()?;
    }
    let admin = admin.zip(fds.next().map(TcpListener::from));
    Ok(Taken { connection, pid, groups, wanted, inherited, admin })
}

impl Taken {
    /// The groups.
    pub fn take_groups(&mut self) -> Vec<Inherited> {
        std::mem::take(&mut self.inherited)
    }

    /// The admin port, if it is the one at this address.
    pub fn take_admin(&mut self, address: SocketAddr) -> Option<TcpListener> {
        self.admin.take().filter(|(theirs, _)| *theirs == address).map(|(_, listener)| listener)
    }

    /// Says that this process is ready to read, and waits until the other one does not any more.
    ///
    /// # Errors
    /// When the other one has given this process up and goes on.
    pub fn reading(self) -> Result<Released, AskError> {
        let Self { connection, pid, groups, wanted, .. } = self;
        // It fails where the other one has closed the connection, and perhaps said why.
        message::send(&connection, &Message::Reading { groups: wanted }, &[]).ok();
        let answer = match message::receive(&connection) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => message::receive(&connection),
            answer => answer,
        };
        let drops = match answer {
            Ok((Message::Refused { why }, _)) => return Err(AskError::Refused(why)),
            Ok((Message::Released { drops }, _)) => {
                info!("taken over: the process before finishes what it has");
                groups.iter().map(|group| group.address).zip(drops).collect()
            }
            // It is gone, or stuck: either way the sockets are here.
            Ok((other, _)) => {
                warn!(error = %unexpected(&other), "taken over");
                Vec::new()
            }
            Err(error) => {
                warn!(%error, "taken over from a process that did not say that it has let go");
                wait_for_exit(pid);
                Vec::new()
            }
        };
        Ok(Released { connection, drops })
    }
}

/// The process before, which reads no more. It sees by this when its successor ends: keep it for as long as datagrams are read.
#[derive(Debug)]
pub struct Released {
    connection: Socket,
    /// The kernel's drop counters as it saw them last, by address, where it lived to tell.
    pub drops: Vec<(SocketAddr, Vec<u32>)>,
}

impl Released {
    /// Waits until it has nothing left. A thread's work.
    pub fn wait_for_end(&self) {
        message::wait_for_end(&self.connection);
    }
}
