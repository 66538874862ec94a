//! The sockets of one listener: bound together, steered by one program.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};
use tracing::{error, info, warn};

use super::{Claim, Inherited, Member, pace, steering, try_steering};
use crate::config::{Listener, Steering, word};
use crate::socket::options::{self, GrantedBuffer, SocketMemory};

/// A group of sockets on one address, index = bind order, which is what the steering program counts by.
#[derive(Debug)]
pub struct Group {
    /// What it was made from.
    pub listener: Listener,
    /// The sockets, one for each worker.
    pub sockets: Vec<Arc<Member>>,
    /// The steering in force: `flow` where the kernel refused the program.
    pub steering: Steering,
    /// The buffer of each socket.
    pub buffer: GrantedBuffer,
    /// False where datagrams carry no kernel receive time and the clock is read once a call instead.
    pub kernel_timestamps: bool,
    claim: Claim,
    /// The first of the sockets that joins only when the process before lets go; none where all are bound.
    joining: Option<usize>,
}

/// Why a listener could not be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", advice(address, source))]
pub struct BindError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

impl BindError {
    pub(super) fn new(address: SocketAddr, source: io::Error) -> Self {
        Self { address, source }
    }
}

fn advice(address: &SocketAddr, error: &io::Error) -> String {
    let port = address.port();
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another socket has UDP port {port} (`ss -lunp 'sport = :{port}'` names it). Stop it or choose another \
             port: a second listener would silently take a share of the datagrams"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "no permission for port {port}. Ports below 1024 need CAP_NET_BIND_SERVICE or `sysctl \
             net.ipv4.ip_unprivileged_port_start={port}`; or listen on 5514 and let a Service or NAT rule map {port} to it"
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("{} is no address of this machine; `ip addr` lists them, [::] means all", address.ip())
        }
        _ => error.to_string(),
    }
}

impl Group {
    /// Binds every socket, then attaches the program, once. `dual_stack` lets an IPv6 wildcard take IPv4 too.
    ///
    /// # Errors
    /// When the address cannot be had. What is merely nice to have degrades, says so, and shows in `self`.
    pub fn open(listener: &Listener, dual_stack: bool) -> Result<Self, BindError> {
        let claim = Claim::take(listener.address, dual_stack)
            .map_err(|source| BindError::new(listener.address, source))?;
        Self::around(listener.clone(), dual_stack, claim, Vec::new(), None)
    }

    /// Goes on with sockets that are open already, and makes those that are missing. There are never fewer than were there before:
    /// a socket that is closed loses what it holds. Nor are there more unless the group `may_grow`. While another process
    /// reads them, the new ones and the steering wait for [`Self::join`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn go_on(
        listener: &Listener,
        dual_stack: bool,
        inherited: Inherited,
        may_grow: bool,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::new(listener.address, source);
        let claim = match inherited.claim {
            Some(lock) => Claim::continued(lock),
            None => Claim::lock(listener.address).map_err(failed)?,
        };
        let kept = inherited.kept;
        let sockets: Vec<_> =
            inherited.sockets.into_iter().map(|socket| Member::inherited(socket, kept)).collect();
        let listener = Listener { workers: workers(listener, &sockets, may_grow), ..listener.clone() };
        let joining = (!kept).then_some(sockets.len());
        Self::around(listener, dual_stack, claim, sockets, joining)
    }

    /// Binds what is not bound yet, and steers: from now on all sockets get datagrams, should the process before have turned them
    /// away at its end, too. There is no way back by now, so a socket that cannot join is done without.
    pub fn join(&self) {
        let Some(first) = self.joining else { return };
        self.sockets[..first].iter().for_each(|member| options::accept_new_datagrams(member.as_fd()));
        let bind = |member: &Arc<Member>| member.socket().bind(&self.listener.address.into());
        let joined = self.sockets[first..].iter().try_fold(first, |count, member| {
            bind(member).map(|()| count + 1).map_err(|error| (count, error))
        });
        let workers = joined.unwrap_or_else(|(workers, error)| {
            let wanted = self.listener.workers;
            error!(address = %self.listener.address, %error, wanted, workers, "a socket could not join: its worker has nothing to read");
            workers
        });
        steer(&Listener { workers, ..self.listener.clone() }, &self.sockets[0], false);
    }

    fn around(
        listener: Listener,
        dual_stack: bool,
        claim: Claim,
        mut members: Vec<Member>,
        joining: Option<usize>,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::new(listener.address, source);
        let is_new = members.is_empty();
        let share = listener.receive_buffer_bytes / listener.workers;
        let mut buffer = GrantedBuffer { asked: share, granted: usize::MAX };
        let mut stamped = Ok(());
        let mut prepare = |socket: &Socket| -> io::Result<()> {
            let granted = options::request_receive_buffer(socket.as_fd(), share)?;
            buffer.granted = buffer.granted.min(granted.granted);
            stamped = std::mem::replace(&mut stamped, Ok(())).and(options::enable_timestamps(socket.as_fd()));
            Ok(())
        };
        for member in &members {
            prepare(member.socket()).map_err(failed)?;
            if joining.is_none() {
                options::accept_new_datagrams(member.as_fd());
            }
        }
        while members.len() < listener.workers {
            let socket = open_socket(listener.address, dual_stack).map_err(failed)?;
            // Before bind, or the first burst meets the small default buffer.
            prepare(&socket).map_err(failed)?;
            if joining.is_none() {
                socket.bind(&listener.address.into()).map_err(failed)?;
            }
            members.push(Member::new(socket));
        }
        let steering = match joining {
            None => steer(&listener, &members[0], is_new),
            Some(_) => try_steering(listener.steering).map_or(Steering::Flow, |()| listener.steering),
        };
        if let Err(error) = &stamped {
            warn!(%error, "no kernel receive times: events carry the time at which they were read");
        }
        report(&listener, steering, buffer);
        let sockets = members.into_iter().map(Arc::new).collect();
        let kernel_timestamps = stamped.is_ok();
        Ok(Self { listener, sockets, steering, buffer, kernel_timestamps, claim, joining })
    }

    /// Copies of the sockets' descriptors and of the lock for a successor, which may come to read them or not.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn offer(&self) -> io::Result<(Vec<OwnedFd>, OwnedFd)> {
        let copies = self.sockets.iter().map(|member| member.as_fd().try_clone_to_owned());
        let copies = copies.collect::<io::Result<_>>()?;
        let lock = self.claim.shared()?.into();
        self.sockets.iter().for_each(|member| member.offer());
        Ok((copies, lock))
    }

    /// No successor has them any more: buffers and steering as before.
    pub fn take_back(&self) {
        for member in &self.sockets {
            member.take_back();
            options::request_receive_buffer(member.as_fd(), self.buffer.asked).ok(); // it was granted once
        }
        steer(&self.listener, &self.sockets[0], false);
    }

    /// A successor reads them: this process does not, and counts no drop of the kernel's any more.
    pub fn give(&self) {
        self.sockets.iter().for_each(|member| member.give());
    }

    /// True when nothing of what its sockets hold is lost with this process.
    pub fn lives_on(&self) -> bool {
        self.sockets.iter().all(|member| member.lives_on())
    }

    /// Whether one thread may read all its sockets: they hold what comes until others notice that it is held up.
    pub fn may_share_threads(&self) -> bool {
        /// Datagrams of 1.1 KB: as many as keep a thread just not too busy, for a tenth of a second.
        const ENOUGH: usize = 33_000;
        pace::held(self.buffer.granted) * self.sockets.len() >= ENOUGH
    }

    /// Each socket's queue and drops, now. A socket that does not tell counts as empty.
    pub fn memory(&self) -> impl Iterator<Item = SocketMemory> {
        self.sockets.iter().map(|socket| options::memory(socket.as_fd()).unwrap_or_default())
    }

    /// Has the kernel refuse, and count, what arrives from now on, so that draining ends.
    pub fn refuse_new_datagrams(&self) {
        for socket in self.sockets.iter().filter(|member| !member.lives_on()) {
            if let Err(error) = options::refuse_new_datagrams(socket.as_fd()) {
                warn!(%error, "cannot turn new datagrams away while draining: what arrives after is lost uncounted");
                return;
            }
        }
    }
}

/// A UDP socket ready to join a group. Never with `SO_REUSEADDR` beside `SO_REUSEPORT`: with both, another
/// user's process could take the port.
pub(super) fn open_socket(address: SocketAddr, dual_stack: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!dual_stack)?;
    }
    socket.set_reuse_port(true)?;
    Ok(socket)
}

/// As many as are wanted, or as there are: more cannot join where the first was opened without `SO_REUSEPORT`, and shall not unless
/// the group `may_grow`.
fn workers(listener: &Listener, members: &[Member], may_grow: bool) -> usize {
    let (wanted, there) = (listener.workers, members.len());
    let alone = members.iter().any(|member| !member.socket().reuse_port().unwrap_or_default());
    if there > wanted {
        warn!(
            address = %listener.address, wanted, workers = there,
            "as many workers as sockets were handed over: one that is closed would lose what it holds. Fewer need a stop and a start"
        );
    } else if !may_grow && there < wanted {
        warn!(
            address = %listener.address, wanted, workers = there,
            "another number of workers would change the order: a stop and a start can"
        );
        return there;
    } else if alone && there < wanted {
        warn!(
            address = %listener.address, wanted, workers = there,
            "no socket can join those that were handed over: give the socket unit ReusePort=yes"
        );
        return there;
    }
    wanted.max(there)
}

/// Attaches the program; where there is to be none, a group that is not new may have one.
fn steer(listener: &Listener, first: &Member, is_new: bool) -> Steering {
    let Some(program) = steering::program(listener.steering, listener.workers) else {
        let left = if is_new { Ok(()) } else { options::detach_steering(first.as_fd()) };
        if let Err(error) = left {
            warn!(%error, "the steering of the process before stays in force");
        }
        return listener.steering;
    };
    match options::attach_steering(first.as_fd(), &program) {
        Ok(()) => listener.steering,
        Err(error) => {
            warn!(
                %error, address = %listener.address,
                "the kernel refused the steering program (a seccomp profile may forbid SO_ATTACH_REUSEPORT_CBPF): \
                 falling back to `flow`, so one sender is read by one worker"
            );
            Steering::Flow
        }
    }
}

fn report(listener: &Listener, steering: Steering, buffer: GrantedBuffer) {
    info!(
        address = %listener.address, workers = listener.workers, steering = word(&steering),
        receive_buffer_bytes = buffer.granted * listener.workers, "listening"
    );
    if buffer.clamped() {
        warn!(
            asked = buffer.asked,
            granted = buffer.granted,
            "the kernel granted each socket less receive buffer than asked; bursts beyond it are dropped. To lift \
             the limit: sysctl -w net.core.rmem_max={}",
            buffer.asked
        );
    }
}

#[cfg(test)]
mod tests;
