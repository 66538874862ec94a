//! The running pipeline as others may see it: the books, the queue, the sockets.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use socket2::Socket;

use crate::admin::WorkerState;
use crate::books::{Books, Report, process_cpu_us};
use crate::config::Config;
use crate::metrics::{self, HostCounters, Snapshot};
use crate::queue::Queue;
use crate::receive::Group;
use crate::socket::options::{self, GrantedBuffer};

/// A queue fuller than this is no place for more datagrams, if there is a choice of places.
const HIGH_MARK: f64 = 0.9;

/// What is seen of a running pipeline. Nothing here slows a datagram down.
#[derive(Debug)]
pub struct View {
    config: Config,
    books: Arc<Books>,
    queue: Arc<Queue>,
    buffers: Vec<GrantedBuffer>,
    /// The workers' sockets, in the order of the desks.
    sockets: Vec<Arc<Socket>>,
    /// The kernel's drop counters as last seen: they are 32 bits wide and wrap.
    drops: Mutex<Vec<u32>>,
    stopping: AtomicBool,
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
            config: config.clone(),
            books: Arc::clone(books),
            queue: Arc::clone(queue),
            buffers: groups.iter().map(|group| group.buffer).collect(),
            drops: Mutex::new(vec![0; sockets.len()]),
            sockets,
            stopping: AtomicBool::new(false),
        })
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Says that the pipeline takes no more datagrams.
    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Brings what the kernel says of the sockets into the books.
    pub(crate) fn read_sockets(&self) {
        let mut drops = self.drops.lock().unwrap_or_else(PoisonError::into_inner);
        for ((socket, seen), desk) in self.sockets.iter().zip(drops.iter_mut()).zip(&self.books.desks) {
            let Ok(memory) = options::memory(socket.as_fd()) else { continue };
            desk.books.kernel_drops.fetch_add(memory.drops.wrapping_sub(*seen).into(), Relaxed);
            desk.books.socket_queue_bytes.store(memory.queued.into(), Relaxed);
            *seen = memory.drops;
        }
    }

    /// The books, now.
    pub fn report(&self) -> Report {
        self.read_sockets();
        self.books.report(self.queue.levels())
    }

    /// Every metric, now, as Prometheus reads it.
    pub fn metrics(&self) -> String {
        self.read_sockets();
        metrics::render(&Snapshot {
            books: &self.books,
            counts: self.books.desks.iter().map(|desk| desk.books.read()).collect(),
            levels: self.queue.levels(),
            config: &self.config,
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
            reads: desk.books.read().reads,
            has_work: desk.books.socket_queue_bytes.load(Relaxed) > 0,
            waits_for_room: desk.books.waits_for_room.load(Relaxed),
            gone: desk.books.gone.load(Relaxed),
        };
        self.books.desks.iter().map(state).collect()
    }

    /// Whether it should get datagrams, or why not.
    pub fn readiness(&self) -> Result<(), String> {
        let waiting = self.queue.levels().waiting.bytes as f64 / self.config.buffer.max_bytes as f64;
        match waiting {
            _ if self.stopping.load(Relaxed) => Err("stopping".to_owned()),
            fill if fill > HIGH_MARK => Err(format!("the queue is {:.0} % full", fill.min(1.0) * 100.0)),
            _ => Ok(()),
        }
    }
}
