//! The only place that knows every room: what starts first, and what stops first.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{info, warn};

use crate::batch::{Limits, OpenBatch, Pool};
use crate::books::{Books, Desk, Report, WorkerBooks};
use crate::config::{Batch, Config, Listener};
use crate::parse::EventMaker;
use crate::push;
use crate::queue::Queue;
use crate::receive::{BindError, Group, Stop, Worker};
use crate::view::View;

/// How often the kernel's drop counters and queue depths are read.
const WATCH: Duration = Duration::from_secs(1);

/// How often a line with the books is logged.
const LOG: Duration = Duration::from_secs(10);

/// A worker's stack, bytes: VRL walks through nested values by recursion. Untouched pages cost nothing.
const STACK: usize = 16 << 20;

/// Why a pipeline could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener's address cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The machine refused a thread or a file descriptor.
    #[error("cannot start: {0}")]
    Machine(#[from] io::Error),
}

/// A running pipeline.
#[derive(Debug)]
pub struct Pipeline {
    groups: Vec<Group>,
    workers: Vec<JoinHandle<()>>,
    pushers: JoinSet<()>,
    watcher: tokio::task::JoinHandle<()>,
    queue: Arc<Queue>,
    stop: Arc<Stop>,
    books: Arc<Books>,
    view: Arc<View>,
    /// Told when a worker ended by a panic.
    broken: Arc<Notify>,
}

impl Pipeline {
    /// Binds every socket, then starts pushers and workers. Does not wait for Vector. Call it on a runtime.
    ///
    /// # Errors
    /// When an address cannot be had or the machine is out of threads or descriptors; nothing runs then.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        let groups = open_groups(&config.listeners)?;
        let queue = Queue::new(config.buffer);
        let stop = Arc::new(Stop::new()?);
        let books = Arc::new(Books { desks: desks(&groups), ..Books::default() });
        info!(bytes = config.memory_ceiling(), "memory ceiling, beside the sockets' own buffers");

        let context = push::Context {
            vector: Arc::new(config.vector.clone()),
            queue: Arc::clone(&queue),
            books: Arc::clone(&books),
        };
        let pushers = push::start(&context);
        let broken = Arc::new(Notify::new());
        let workers = start_workers(config, &groups, (&queue, &stop, &broken), &books)?;
        let view = View::new(config, &groups, &books, &queue);
        let watcher = tokio::spawn(keep_watch(Arc::clone(&view)));
        Ok(Self { groups, workers, pushers, watcher, queue, stop, books, view, broken })
    }

    /// The addresses that are listened on.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.groups.iter().map(|group| group.listener.address)
    }

    /// The books, now.
    pub fn report(&self) -> Report {
        self.view.report()
    }

    /// What may be seen of it while it runs.
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view)
    }

    /// Completes when a worker has panicked: its socket is read by nobody, so the process should end.
    pub async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Turns new datagrams away, drains the sockets, flushes, and waits for acknowledgements until `timeout` is over
    /// or `hurry` completes; what is left then is counted as shed.
    pub async fn stop(mut self, timeout: Duration, hurry: impl Future<Output = ()>) -> Report {
        info!("stopping: draining the sockets");
        self.view.set_stopping();
        for group in &self.groups {
            group.refuse_new_datagrams();
        }
        if let Err(error) = self.stop.give() {
            warn!(%error, "cannot wake idle workers; they see the stop with their next datagram");
        }
        let workers = std::mem::take(&mut self.workers);
        let queue = Arc::clone(&self.queue);
        let joining = tokio::task::spawn_blocking(move || {
            for worker in workers {
                worker.join().ok(); // a panic was reported by the panic hook
            }
            queue.close();
        });
        let all_settled = async { while self.pushers.join_next().await.is_some() {} };
        tokio::select! {
            () = all_settled => {}
            () = tokio::time::sleep(timeout) => warn!("the shutdown deadline passed"),
            () = hurry => warn!("told to hurry"),
        }
        self.queue.abandon();
        self.pushers.shutdown().await;
        joining.await.ok();
        self.watcher.abort();
        self.count_leftovers();
        self.report()
    }

    fn count_leftovers(&self) {
        let events: u64 = self.queue.leftovers().iter().map(|batch| batch.events).sum();
        if events > 0 {
            warn!(events, "not acknowledged in time: counted as shed, though some may have arrived");
            self.books.left_at_shutdown.fetch_add(events, Relaxed);
        }
    }
}

fn open_groups(listeners: &[Listener]) -> Result<Vec<Group>, BindError> {
    listeners.iter().map(|listener| Group::open(listener, listener.is_dual_stack(listeners))).collect()
}

fn desks(groups: &[Group]) -> Vec<Desk> {
    let of_group = |group: &Group| {
        let (listener, steering) = (group.listener.address, group.steering);
        (0..group.sockets.len()).map(move |worker| Desk {
            listener,
            steering,
            worker,
            books: Arc::new(WorkerBooks::default()),
        })
    };
    groups.iter().flat_map(of_group).collect()
}

fn start_workers(
    config: &Config,
    groups: &[Group],
    (queue, stop, broken): (&Arc<Queue>, &Arc<Stop>, &Arc<Notify>),
    books: &Books,
) -> io::Result<Vec<JoinHandle<()>>> {
    let Batch { max_bytes, max_events, timeout } = config.batch;
    let limits = Limits { max_bytes, max_events: max_events as u64, timeout };
    let sockets = groups.iter().flat_map(|group| group.sockets.iter().map(move |socket| (group, socket)));
    let pool = Pool::new(config.batch_buffer(), config.idle_buffers());
    let start = |((group, socket), desk): ((&Group, &Arc<socket2::Socket>), &Desk)| {
        let worker = Worker::new(
            Arc::clone(socket),
            (group.listener.max_length, group.buffer.granted),
            EventMaker::new(&config.parse),
            OpenBatch::new(limits, Arc::clone(&pool)),
            Arc::clone(queue),
            Arc::clone(stop),
            Arc::clone(&desk.books),
        );
        thread::Builder::new().name(format!("receive-{}", desk.worker)).stack_size(STACK).spawn({
            let broken = Arc::clone(broken);
            move || {
                if !worker.run() {
                    broken.notify_one();
                }
            }
        })
    };
    let workers: io::Result<Vec<_>> = sockets.zip(&books.desks).map(start).collect();
    if workers.is_err() {
        stop.give()?; // those that did start must not run on without the rest
    }
    workers
}

async fn keep_watch(view: Arc<View>) {
    let mut tick = tokio::time::interval(WATCH);
    let mut logged = Instant::now();
    let mut before = 0;
    loop {
        tick.tick().await;
        view.read_sockets();
        if logged.elapsed() < LOG {
            continue;
        }
        logged = Instant::now();
        let r = view.report();
        // Nothing new and nothing waiting is no news.
        if r.received + r.kernel_drops != before || r.in_memory > 0 {
            before = r.received + r.kernel_drops;
            info!(
                received = r.received,
                extra = r.extra,
                delivered = r.delivered,
                rejected = r.rejected,
                shed = r.shed,
                in_memory = r.in_memory,
                kernel_drops = r.kernel_drops,
                retries = r.retries,
                "books"
            );
        }
    }
}
