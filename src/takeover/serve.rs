//! The running process's side: a thread that listens, and one for each conversation.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use std::thread;
use std::time::Duration;

use socket2::Socket;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use super::message::{self, GroupOffer, Message, parts};
use super::place::{Place, Published};
use super::{VERSION, peer};
use crate::config::Steering;

/// How long a caller may take to say what it wants.
const HELLO: Duration = Duration::from_secs(5);

/// How long a successor may take from the sockets to its first read.
const START: Duration = Duration::from_secs(60);

/// What is given away.
#[derive(Debug)]
pub struct Offer {
    /// The groups.
    pub groups: Vec<OfferedGroup>,
    /// The admin port.
    pub admin: Option<(SocketAddr, OwnedFd)>,
}

/// A listener's sockets.
#[derive(Debug)]
pub struct OfferedGroup {
    /// Its address.
    pub address: SocketAddr,
    /// Its steering.
    pub steering: Steering,
    /// Its sockets, in the order in which they were bound.
    pub sockets: Vec<OwnedFd>,
    /// The lock on the address.
    pub claim: OwnedFd,
}

/// What a conversation asks of the process.
#[derive(Debug)]
pub enum Event {
    /// A successor wants the sockets: prepare to be succeeded, and say what there is.
    Wanted(oneshot::Sender<io::Result<Offer>>),
    /// It did not become one: go on as before.
    Failed,
    /// It reads.
    Succeeded(Successor),
}

/// The process that reads now.
#[derive(Debug)]
pub struct Successor {
    connection: Socket,
    /// The groups that it reads, by their numbers in the offer.
    pub groups: Vec<usize>,
}

impl Successor {
    /// Says that this process reads no more, with the kernel's drop counters of each group's sockets as last seen.
    pub fn release(&self, drops: Vec<Vec<u32>>) {
        if let Err(error) = message::send(&self.connection, &Message::Released { drops }, &[]) {
            warn!(%error, "the successor could not be told that this process reads no more");
        }
    }

    /// Says that this process has nothing left, though it does not end yet.
    pub fn finish(&self) {
        self.connection.shutdown(Shutdown::Write).ok(); // it fails where nobody is left to tell
    }

    /// Waits until the successor has ended. A thread's work.
    pub fn wait_for_end(&self) {
        message::wait_for_end(&self.connection);
    }
}

/// A place that is prepared, and not yet where successors look for it.
#[derive(Debug)]
pub struct Server(Place);

impl Server {
    /// Prepares to listen at a path, or at an `@NAME` of the network namespace: another process may still be found there.
    ///
    /// # Errors
    /// When the directory cannot be written, or the path is too long for a socket (108 bytes).
    pub fn bind(path: &Path) -> io::Result<Self> {
        Place::prepare(path).map(Self)
    }

    /// Takes the place that successors know, and listens until the process ends.
    ///
    /// # Errors
    /// The kernel's.
    pub fn publish(self) -> io::Result<(Published, mpsc::Receiver<Event>)> {
        let (published, listening) = self.0.publish()?;
        let (events, receiver) = mpsc::channel(4);
        let busy = Arc::new(AtomicBool::new(false));
        let listen = move || {
            let Some((socket, slot)) = listening.wait() else { return };
            while !slot.is_over() {
                match socket.accept() {
                    Ok((connection, _)) => {
                        let (events, busy) = (events.clone(), Arc::clone(&busy));
                        let talk = move || converse(connection, &events, &busy);
                        thread::Builder::new().name("takeover".into()).spawn(talk).ok();
                    }
                    Err(_) if slot.is_over() => {}
                    Err(_) => thread::sleep(Duration::from_millis(100)), // out of descriptors
                }
            }
        };
        thread::Builder::new().name("takeover".into()).spawn(listen)?;
        Ok((published, receiver))
    }
}

/// Talks to one caller. Whatever it says or does not say, datagrams go on.
fn converse(connection: Socket, events: &mpsc::Sender<Event>, busy: &AtomicBool) {
    let refuse = |why: &str| {
        warn!(why, "a take-over is refused");
        message::send(&connection, &Message::Refused { why: why.to_owned() }, &[]).ok();
    };
    let pid = match peer(&connection) {
        Ok(pid) => pid,
        Err(error) => return refuse(&error.to_string()),
    };
    if let Err(why) = message::be_patient(&connection, HELLO)
        .map_err(|error| error.to_string())
        .and_then(|()| hello(&connection))
    {
        return refuse(&why);
    }
    if busy.swap(true, AcqRel) {
        return refuse("another take-over is under way; try again when it is over");
    }
    info!(pid, "a successor asks for the sockets");
    match give(&connection, events) {
        Ok(groups) => {
            // Still busy: there is nothing left to give.
            events.blocking_send(Event::Succeeded(Successor { connection, groups })).ok();
        }
        Err(error) => {
            warn!(pid, %error, "the take-over failed; this process goes on");
            refuse(&error.to_string());
            events.blocking_send(Event::Failed).ok();
            busy.store(false, Release);
        }
    }
}

fn hello(connection: &Socket) -> Result<(), String> {
    let first = message::receive_raw(connection).map_err(|error| error.to_string())?;
    let (text, _) = first.ok_or("it said nothing")?;
    let said: serde_json::Value = serde_json::from_slice(&text).map_err(|_| "it speaks another language")?;
    // Looked at before all else: another version's message may have another shape.
    match said["hello"]["version"].as_u64() {
        Some(version) if version == u64::from(VERSION) => Ok(()),
        Some(version) => Err(format!(
            "it speaks version {version} of the take-over and sluicegate {} speaks {VERSION}: stop this one and start that one",
            env!("CARGO_PKG_VERSION")
        )),
        None => Err("its first message is no hello".to_owned()),
    }
}

/// Gives everything away, and waits until it is read: by which groups.
fn give(connection: &Socket, events: &mpsc::Sender<Event>) -> io::Result<Vec<usize>> {
    let stopping = |_| io::Error::other("this process is stopping");
    let (answer, offer) = oneshot::channel();
    events.blocking_send(Event::Wanted(answer)).map_err(|error| stopping(error.to_string()))?;
    let offer = offer.blocking_recv().map_err(|error| stopping(error.to_string()))??;
    let mut fds = Vec::new();
    let mut groups = Vec::new();
    for OfferedGroup { address, steering, sockets, claim } in offer.groups {
        groups.push(GroupOffer { address, steering, sockets: sockets.len() });
        fds.extend(sockets);
        fds.push(claim);
    }
    let admin = offer.admin.map(|(address, listener)| {
        fds.push(listener);
        address
    });
    let count = groups.len();
    let program = env!("CARGO_PKG_VERSION").to_owned();
    message::send(connection, &Message::Offer { version: VERSION, program, groups, admin }, &[])?;
    for part in parts(&fds) {
        message::send(connection, &Message::Part { fds: part.len() }, &part)?;
    }
    message::be_patient(connection, START)?;
    match message::receive(connection) {
        Ok((Message::Reading { groups }, _)) if groups.iter().all(|group| *group < count) => Ok(groups),
        Ok((other, _)) => Err(io::Error::other(format!("it said {other:?}, which was not expected"))),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(io::Error::other("the successor is gone before it read"))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(io::Error::other(format!("the successor did not read within {} s", START.as_secs())))
        }
        Err(error) => Err(error),
    }
}
