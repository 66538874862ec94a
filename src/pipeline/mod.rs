//! The only place that knows every room: what starts first, and what stops first.

mod reload;
mod start;
mod succession;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use crate::books::{Books, Report};
use crate::config::Config;
use crate::dead_letter::{DeadLetters, Writing};
use crate::live::Live;
use crate::queue::Queue;
use crate::receive::{BindError, Group, Inherited, Stop};
use crate::spool;
use crate::view::View;
pub use reload::is_live;
use start::Shared;

/// How often the kernel's drop counters and queue depths are read.
const WATCH: Duration = Duration::from_secs(1);

/// How often a line with the books is logged, and our own metrics are sent.
const LOG: Duration = Duration::from_secs(10);

/// How long a worker may take to notice that all is abandoned.
const STUCK: Duration = Duration::from_secs(5);

/// Why a pipeline could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener's address cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The directory for what overflows cannot be used.
    #[error(transparent)]
    Spool(#[from] spool::OpenError),
    /// The dead-letter file cannot be opened.
    #[error("cannot open {} (dead_letter.path): {error}; name a file that may be written, in a directory that is there", path.display())]
    DeadLetter {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        error: io::Error,
    },
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
    /// Those that a reload has retired, until the next one.
    retired: JoinSet<()>,
    /// Tells the pushers in force that others take their place.
    retire: watch::Sender<bool>,
    dead_letters: DeadLetters,
    writing: Writing,
    watcher: tokio::task::JoinHandle<()>,
    shared: Shared,
    books: Arc<Books>,
    view: Arc<View>,
}

impl Pipeline {
    /// Binds every socket, then starts pushers and workers. Does not wait for Vector. Call it on a runtime.
    ///
    /// # Errors
    /// When an address cannot be had or the machine is out of threads or descriptors; nothing runs then.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        Self::go_on(config, Vec::new(), false)
    }

    /// The same around sockets that are open already; `succeeds` where the process that had them still runs. Nothing is read then
    /// before [`Self::succeed`].
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn go_on(config: &Config, inherited: Vec<Inherited>, succeeds: bool) -> Result<Self, StartError> {
        let groups = start::open_groups(&config.listeners, inherited, !config.vector.ordered)?;
        let desks = start::desks(&groups, config.admin.top_senders);
        let spool = start::open_spool(config, succeeds)?;
        let books = Arc::new(Books { desks, spool: Arc::clone(&spool), ..Books::default() });
        let (dead_letters, writing) = start::open_dead_letters(config, &books)?;
        start::announce(config, &groups);

        let limiter = start::limiter(config);
        let rules = start::rules(config, limiter.as_ref());
        let shared = Shared {
            parse: Arc::new(Live::new(config.parse.clone())),
            begin: Arc::default(),
            alone: Arc::default(),
            rules: rules.map(|rules| Arc::new(Live::new(rules))).collect(),
            limiter,
            queue: Queue::over(config.buffer, spool),
            stop: Arc::new(Stop::new()?),
            broken: Arc::new(Notify::new()),
        };
        if config.vector.ordered {
            shared.queue.keep_order();
            // The process before may still have older batches.
            if succeeds {
                shared.queue.hold();
            }
        }
        if !succeeds {
            shared.begin.open();
            shared.alone.open();
        }
        let mut pushers = JoinSet::new();
        let retire = start::start_pushers(config, &shared.queue, &books, &dead_letters, &mut pushers);
        start::start_refilling(config, &shared)?;
        let workers = start::start_workers(config, &groups, &shared, &books)?;
        let view = View::new(config, &groups, &books, &shared.queue);
        let watcher = tokio::spawn(keep_watch(Arc::clone(&view)));
        let retired = JoinSet::new();
        Ok(Self {
            groups,
            workers,
            pushers,
            retired,
            retire,
            dead_letters,
            writing,
            watcher,
            shared,
            books,
            view,
        })
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
        self.shared.broken.notified().await;
    }

    /// Turns new datagrams away, drains the sockets, flushes, and waits for acknowledgements until `timeout` is over
    /// or `hurry` completes; what is left then is counted as shed.
    pub async fn stop(mut self, timeout: Duration, hurry: impl Future<Output = ()>) -> Report {
        match self.groups.iter().all(Group::lives_on) {
            true => info!("stopping: somebody else reads the sockets, or will"),
            false => info!("stopping: draining the sockets"),
        }
        self.view.set_stopping();
        self.end_reading();
        let workers = std::mem::take(&mut self.workers);
        let queue = Arc::clone(&self.shared.queue);
        let joining = tokio::task::spawn_blocking(move || {
            for worker in workers {
                worker.join().ok(); // a panic was reported by the panic hook
            }
            queue.close();
        });
        let all_settled = async {
            while self.pushers.join_next().await.is_some() {}
            while self.retired.join_next().await.is_some() {}
        };
        tokio::select! {
            () = all_settled => {}
            () = tokio::time::sleep(timeout) => warn!("the shutdown deadline passed"),
            () = hurry => warn!("told to hurry"),
        }
        self.shared.queue.abandon();
        self.pushers.shutdown().await;
        self.retired.shutdown().await;
        // Only a VRL program can hold a worker up for longer than this; its events stay in the books as in memory.
        if tokio::time::timeout(STUCK, joining).await.is_err() {
            error!("a worker does not come back from its VRL program; ending without it");
        }
        self.watcher.abort();
        self.count_leftovers();
        if let Some(spool) = self.books.spool.get() {
            spool.let_go();
        }
        drop(self.dead_letters);
        if !self.writing.end(STUCK).await {
            error!("the dead-letter file's disk hangs; ending without its last lines");
        }
        self.view.report()
    }

    /// Turns new datagrams away where nobody else reads, and tells the workers to stop.
    fn end_reading(&self) {
        for group in &self.groups {
            group.refuse_new_datagrams();
        }
        if let Err(error) = self.shared.stop.give() {
            warn!(%error, "cannot wake idle workers; they see the stop with their next datagram");
        }
        // For those who have not begun, and who wait for nothing any more.
        self.shared.begin.open();
        self.shared.alone.open();
    }

    fn count_leftovers(&self) {
        let left = self.shared.queue.leftovers();
        let shed: u64 = match self.books.spool.get() {
            None => left.iter().map(|batch| batch.events).sum(),
            Some(spool) if self.view.config().vector.ordered => {
                spool.unload();
                // Those from disk are there; the others are older than what is there now.
                let older: Vec<_> = left.into_iter().filter(|batch| batch.ticket.is_none()).collect();
                // Out of order is better than not at all.
                let refused = spool.put_before(&older).into_iter();
                let shed =
                    refused.filter(|batch| spool.append(batch).is_err()).map(|batch| batch.events).sum();
                spool.sync();
                shed
            }
            Some(spool) => {
                spool.unload();
                let not_kept =
                    left.iter().filter(|batch| batch.ticket.is_none() && spool.append(batch).is_err());
                let shed = not_kept.map(|batch| batch.events).sum();
                spool.sync();
                shed
            }
        };
        if shed > 0 {
            warn!(events = shed, "not acknowledged in time: counted as shed, though some may have arrived");
            self.books.left_at_shutdown.fetch_add(shed, Relaxed);
        }
        let spooled = self.report().spooled;
        if spooled > 0 {
            info!(events = spooled, "not acknowledged in time: on disk, for the next start");
        }
    }
}

async fn keep_watch(view: Arc<View>) {
    let mut tick = tokio::time::interval(WATCH);
    let mut logged = Instant::now();
    let mut before = 0;
    loop {
        tick.tick().await;
        view.read_sockets();
        if let Some(spool) = view.spool() {
            tokio::task::spawn_blocking(move || spool.sync());
        }
        if logged.elapsed() < LOG {
            continue;
        }
        logged = Instant::now();
        if view.config().self_metrics {
            view.send_metrics();
        }
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
                spooled = r.spooled,
                in_memory = r.in_memory,
                kernel_drops = r.kernel_drops,
                retries = r.retries,
                "books"
            );
        }
    }
}
