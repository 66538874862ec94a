//! The running pipeline as others may see it: the books, the queue, the sockets.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use serde::Serialize;

use crate::admin::WorkerState;
use crate::batch::made_of;
use crate::books::{Books, EndpointState, Report, Senders, Top, process_cpu_us};
use crate::config::Config;
use crate::datagram::Timestamp;
use crate::metrics::{self, HostCounters, Snapshot};
use crate::queue::Queue;
use crate::receive::{Group, Member};
use crate::socket::options::{self, GrantedBuffer};
use crate::spool::Spool;

/// A queue fuller than this is no place for more datagrams, if there is a choice of places.
const HIGH_MARK: f64 = 0.9;

/// What is seen of a running pipeline. Nothing here slows a datagram down.
#[derive(Debug)]
pub struct View {
    config: RwLock<Arc<Config>>,
    started: Instant,
    books: Arc<Books>,
    queue: Arc<Queue>,
    buffers: Vec<GrantedBuffer>,
    /// The workers' sockets, in the order of the desks.
    sockets: Vec<Arc<Member>>,
    /// The kernel's drop counters as last seen: they are 32 bits wide and wrap. None while another process counts.
    drops: Mutex<Vec<Option<u32>>>,
    stopping: AtomicBool,
}

/// What `/status` answers.
#[derive(Debug, Serialize)]
pub struct Status {
    /// The program's.
    pub version: &'static str,
    /// Seconds since the start.
    pub uptime_secs: u64,
    /// The queue between workers and pushers.
    pub queue: QueueStatus,
    /// What the host lost before any of our sockets.
    pub host: HostCounters,
    /// The books.
    #[serde(flatten)]
    pub report: Report,
}

/// What the queue holds.
#[derive(Debug, Serialize)]
pub struct QueueStatus {
    /// Events that wait to be pushed.
    pub waiting_events: u64,
    /// Memory that they take, bytes.
    pub waiting_bytes: usize,
    /// Memory that they may take, bytes.
    pub limit_bytes: usize,
    /// Events pushed and not answered yet.
    pub in_flight_events: u64,
    /// Memory that those take, bytes.
    pub in_flight_bytes: usize,
}

impl View {
    pub(crate) fn new(
        config: &Config,
        groups: &[Group],
        books: &Arc<Books>,
        queue: &Arc<Queue>,
    ) -> Arc<Self> {
        let sockets: Vec<_> = groups.iter().flat_map(|group| group.sockets.iter().cloned()).collect();
        Arc::new(Self {
            config: RwLock::new(Arc::new(config.clone())),
            started: Instant::now(),
            books: Arc::clone(books),
            queue: Arc::clone(queue),
            buffers: groups.iter().map(|group| group.buffer).collect(),
            drops: Mutex::new(sockets.iter().map(|member| member.counted_from).collect()),
            sockets,
            stopping: AtomicBool::new(false),
        })
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_config(&self, config: Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// Says that the pipeline takes no more datagrams.
    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// True once it does not.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Brings what the kernel says of the sockets into the books.
    pub(crate) fn read_sockets(&self) {
        let mut drops = self.drops.lock().unwrap_or_else(PoisonError::into_inner);
        for ((socket, seen), desk) in self.sockets.iter().zip(drops.iter_mut()).zip(&self.books.desks) {
            if socket.is_gone() {
                desk.books.socket_queue_bytes.store(0, Relaxed);
                continue;
            }
            let Ok(memory) = options::memory(socket.as_fd()) else { continue };
            if let Some(seen) = seen {
                desk.books.kernel_drops.fetch_add(memory.drops.wrapping_sub(*seen).into(), Relaxed);
                *seen = memory.drops;
            }
            desk.books.socket_queue_bytes.store(memory.queued.into(), Relaxed);
        }
    }

    /// The kernel's drop counter of each socket, as far as it is in the books.
    pub(crate) fn counted_drops(&self) -> Vec<u32> {
        let drops = self.drops.lock().unwrap_or_else(PoisonError::into_inner);
        drops.iter().map(|seen| seen.unwrap_or_default()).collect()
    }

    /// Counts a listener's kernel drops from these on, as the process before saw them last; from now where it did not tell.
    pub(crate) fn count_drops_from(&self, told: &[(SocketAddr, Vec<u32>)]) {
        let mut drops = self.drops.lock().unwrap_or_else(PoisonError::into_inner);
        let desks = self.sockets.iter().zip(drops.iter_mut()).zip(&self.books.desks);
        for ((socket, seen), desk) in desks.filter(|((_, seen), _)| seen.is_none()) {
            let theirs = told.iter().find(|(address, _)| *address == desk.listener);
            let last = theirs.and_then(|(_, drops)| drops.get(desk.worker).copied());
            let now = || options::memory(socket.as_fd()).unwrap_or_default().drops;
            *seen = Some(last.unwrap_or_else(now));
        }
    }

    /// The books, now.
    pub fn report(&self) -> Report {
        self.read_sockets();
        self.books.report(self.queue.levels())
    }

    /// The books and what is around them, now.
    pub fn status(&self) -> Status {
        let levels = self.queue.levels();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            uptime_secs: self.started.elapsed().as_secs(),
            queue: QueueStatus {
                waiting_events: levels.waiting.events,
                waiting_bytes: levels.waiting.bytes,
                limit_bytes: self.config().buffer.max_bytes,
                in_flight_events: levels.in_flight.events,
                in_flight_bytes: levels.in_flight.bytes,
            },
            host: HostCounters::read(),
            report: self.report(),
        }
    }

    /// What is on disk, where something may be.
    pub(crate) fn spool(&self) -> Option<Arc<Spool>> {
        self.books.spool.get().cloned()
    }

    /// The heaviest senders.
    pub fn top(&self) -> Top {
        Senders::top(self.books.desks.iter().map(|desk| &desk.books.senders))
    }

    /// Every metric, now.
    pub fn snapshot<T>(&self, read: impl FnOnce(&Snapshot<'_>) -> T) -> T {
        self.read_sockets();
        read(&Snapshot {
            books: &self.books,
            counts: self.books.desks.iter().map(|desk| desk.books.read()).collect(),
            endpoints: self.books.push.endpoints(),
            levels: self.queue.levels(),
            config: &self.config(),
            buffers: &self.buffers,
            host: HostCounters::read(),
            cpu_seconds: process_cpu_us() / 1e6,
            resident_bytes: metrics::resident_bytes(),
        })
    }

    /// What each worker is doing, now.
    pub fn worker_states(&self) -> Vec<WorkerState> {
        self.read_sockets();
        let state = |desk: &crate::books::Desk| WorkerState {
            reads: desk.books.reads(),
            has_work: desk.books.socket_queue_bytes.load(Relaxed) > 0,
            waits_for_room: desk.books.waits_for_room(),
            gone: desk.books.gone.load(Relaxed),
        };
        self.books.desks.iter().map(state).collect()
    }

    /// Puts every metric into the queue, as events: when somebody takes them, and there is room.
    pub(crate) fn send_metrics(&self) {
        let reachable = self.books.push.endpoints().iter().any(|e| e.state == EndpointState::Connected);
        if self.stopping.load(Relaxed) || !reachable {
            return;
        }
        let now = Timestamp::now();
        let (request, events) = self.snapshot(|snapshot| metrics::encode(snapshot, now));
        // Counted once they are taken: a counter must not fall.
        if self.queue.offer(made_of(&request, events, now)).is_ok() {
            self.books.self_metrics.fetch_add(events, Relaxed);
        }
    }

    /// Whether it should get datagrams, or why not.
    pub fn readiness(&self) -> Result<(), String> {
        // Where the queue overflows to disk, it is the disk that may have no room.
        let (place, fill) = match self.spool() {
            Some(spool) => ("disk", spool.level().bytes as f64 / spool.max_bytes() as f64),
            None => {
                let waiting = self.queue.levels().waiting.bytes as f64;
                ("queue", waiting / self.config().buffer.max_bytes as f64)
            }
        };
        match fill {
            _ if self.stopping.load(Relaxed) => Err("stopping".to_owned()),
            fill if fill > HIGH_MARK => Err(format!("the {place} is {:.0} % full", fill.min(1.0) * 100.0)),
            _ => Ok(()),
        }
    }
}
