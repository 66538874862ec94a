//! How a pipeline comes to be: sockets, then pushers, then workers.

use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::StartError;
use crate::batch::{Limits, OpenBatch, Pool};
use crate::books::{Books, Desk, WorkerBooks};
use crate::config::{Batch, Config, Listener, WhenFull, word};
use crate::datagram::Timestamp;
use crate::dead_letter::{DeadLetters, Writing};
use crate::encode::Sequence;
use crate::live::Live;
use crate::parse;
use crate::push;
use crate::queue::Queue;
use crate::receive::{BindError, Crew, Gate, Group, Inherited, Limiter, Roster, Rules, Stop, Worker};
use crate::spool::{self, Spool};

/// A worker's stack, bytes: VRL walks through nested values by recursion. Untouched pages cost nothing.
const STACK: usize = 16 << 20;

/// What all workers share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    /// What becomes of a datagram.
    pub(super) parse: Arc<Live<parse::Options>>,
    /// Holds the workers back until it is time to read.
    pub(super) begin: Arc<Door>,
    /// Opens when the process before has nothing left, if there is one.
    pub(super) alone: Arc<Door>,
    /// What the senders of each listener are held to.
    pub(super) rules: Vec<Arc<Live<Rules>>>,
    /// What each sender has left of its `rate_limit`, where there is one.
    pub(super) limiter: Option<Arc<Limiter>>,
    pub(super) queue: Arc<Queue>,
    pub(super) stop: Arc<Stop>,
    /// Told when a worker ended by a panic.
    pub(super) broken: Arc<Notify>,
}

/// A door that opens once.
#[derive(Debug, Default)]
pub(super) struct Door {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Door {
    pub(super) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    fn wait(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(open, |open| !*open));
    }
}

/// Opens each listener's group, around the sockets that were handed over for it.
pub(super) fn open_groups(
    listeners: &[Listener],
    mut inherited: Vec<Inherited>,
    may_grow: bool,
) -> Result<Vec<Group>, BindError> {
    let open = |listener: &Listener| {
        let dual_stack = listener.is_dual_stack(listeners);
        match inherited.iter().position(|found| found.address == listener.address) {
            Some(at) => Group::go_on(listener, dual_stack, inherited.swap_remove(at), may_grow),
            None => Group::open(listener, dual_stack),
        }
    };
    let groups = listeners.iter().map(open).collect();
    for Inherited { address, sockets, .. } in inherited {
        let count = sockets.len();
        warn!(%address, count, "sockets for an address that is not in the configuration: nobody reads them");
    }
    groups
}

/// What each listener's senders are held to.
pub(super) fn rules(config: &Config, limiter: Option<&Arc<Limiter>>) -> impl Iterator<Item = Rules> {
    config.listeners.iter().map(move |listener| Rules {
        permit_origin: listener.permit_origin.clone(),
        limiter: limiter.cloned(),
    })
}

pub(super) fn limiter(config: &Config) -> Option<Arc<Limiter>> {
    Limiter::new(config.rate_limit, Timestamp::now()).map(Arc::new)
}

pub(super) fn desks(groups: &[Group], top_senders: usize) -> Vec<Desk> {
    let of_group = |group: &Group| {
        let (listener, steering, buffer_bytes) =
            (group.listener.address, group.steering, group.buffer.granted);
        (0..group.sockets.len()).map(move |worker| Desk {
            listener,
            steering,
            worker,
            buffer_bytes,
            books: Arc::new(WorkerBooks::new(top_senders)),
        })
    };
    groups.iter().flat_map(of_group).collect()
}

/// What was made of the configuration, beside the listeners, which say so themselves.
pub(super) fn announce(config: &Config, groups: &[Group]) {
    let vector = &config.vector;
    // There may be more workers than were asked for, with sockets that were handed over.
    let listeners = groups.iter().map(|group| group.listener.clone()).collect();
    let ceiling = Config { listeners, ..config.clone() }.memory_ceiling();
    for endpoint in &vector.endpoints {
        info!(%endpoint, connections = vector.connections, streams = vector.streams, "pushing to");
    }
    info!(
        mode = word(&config.parse.mode),
        program = config.parse.program.as_ref().map(parse::Program::name),
        memory_ceiling_bytes = ceiling,
        version = env!("CARGO_PKG_VERSION"),
        "sluicegate runs; the memory ceiling is beside the sockets' own buffers"
    );
}

/// Opens the dead-letter file, where one is configured.
pub(super) fn open_dead_letters(
    config: &Config,
    books: &Books,
) -> Result<(DeadLetters, Writing), StartError> {
    let counts = Arc::clone(&books.push.dead_letters);
    DeadLetters::start(&config.dead_letter, counts).map_err(|error| StartError::DeadLetter {
        path: config.dead_letter.path.clone().unwrap_or_default(),
        error,
    })
}

/// Starts the pushers of a configuration among `tasks`; they end once what this returns says true.
pub(super) fn start_pushers(
    config: &Config,
    queue: &Arc<Queue>,
    books: &Arc<Books>,
    dead_letters: &DeadLetters,
    tasks: &mut JoinSet<()>,
) -> watch::Sender<bool> {
    let retire = watch::Sender::new(false);
    let context = push::Context {
        vector: Arc::new(config.vector.clone()),
        queue: Arc::clone(queue),
        books: Arc::clone(books),
        dead_letters: dead_letters.clone(),
        retired: retire.subscribe(),
    };
    push::start(&context, tasks);
    retire
}

/// Where batches wait that do not fit the queue, if they may. After a take-over the process before has the directory
/// until it ends, so then the place is empty at first.
pub(super) fn open_spool(config: &Config, may_wait: bool) -> Result<Arc<spool::Place>, spool::OpenError> {
    let place = Arc::new(spool::Place::default());
    if config.buffer.when_full == WhenFull::Overflow {
        match try_spool(config) {
            Ok(spool) => place.fill(spool),
            Err(spool::OpenError::Taken(_)) if may_wait => {}
            Err(error) => return Err(error),
        }
    }
    Ok(place)
}

fn try_spool(config: &Config) -> Result<Arc<Spool>, spool::OpenError> {
    Spool::open(&config.data_dir.join("spool"), config.buffer.max_disk_bytes as u64).map(Arc::new)
}

/// Waits until the process before has ended, which has the directory. Until then the queue is as with `block`.
fn wait_for_spool(config: &Config, queue: &Queue, alone: &Door) {
    const LOOK: Duration = Duration::from_millis(50);
    info!("the process before has the directory for what overflows: waiting for it");
    alone.wait(); // not only for the lock: were there a third process, the second would have to be first
    while !queue.is_abandoned() {
        match try_spool(config) {
            Ok(spool) => return queue.fill_spool(spool),
            Err(spool::OpenError::Taken(_)) => thread::sleep(LOOK),
            Err(error) => {
                error!(%error, "nothing overflows to disk: workers wait for room instead");
                return queue.go_without_spool();
            }
        }
    }
}

/// Has what waits on disk brought back; the thread ends with the queue.
pub(super) fn start_refilling(config: &Config, shared: &Shared) -> io::Result<()> {
    if config.buffer.when_full != WhenFull::Overflow {
        return Ok(());
    }
    let (config, queue, alone) = (config.clone(), Arc::clone(&shared.queue), Arc::clone(&shared.alone));
    let refill = move || {
        if queue.spool().is_none() {
            wait_for_spool(&config, &queue, &alone);
        }
        queue.refill();
    };
    thread::Builder::new().name("refill".into()).spawn(refill).map(drop)
}

pub(super) fn start_workers(
    config: &Config,
    groups: &[Group],
    shared: &Shared,
    books: &Books,
) -> io::Result<Vec<JoinHandle<()>>> {
    let Batch { max_bytes, max_events, timeout } = config.batch;
    let limits = Limits { max_bytes, max_events: max_events as u64, timeout };
    let equipment = Equipment {
        limits,
        pool: Pool::new(config.batch_buffer(), config.idle_buffers()),
        run: Sequence::new_run(),
    };
    let (mut threads, mut desks) = (Vec::new(), books.desks.iter().enumerate());
    let mut start = |(group, rules): (&Group, &Arc<Live<Rules>>)| {
        let desks = desks.by_ref().take(group.sockets.len());
        let crew = Arc::new(crew(group, rules, desks, &equipment, shared)?);
        (0..group.sockets.len()).try_for_each(|thread| {
            threads.push(start_thread(Arc::clone(&crew), thread, shared)?);
            Ok(())
        })
    };
    if let Err(error) = groups.iter().zip(&shared.rules).try_for_each(&mut start) {
        shared.stop.give()?; // those that did start must not run on without the rest
        return Err(error);
    }
    Ok(threads)
}

/// What every worker gets its own of.
struct Equipment {
    limits: Limits,
    pool: Arc<Pool>,
    run: u64,
}

/// The workers of a listener, which have these desks, numbered through all listeners.
fn crew<'a>(
    group: &Group,
    rules: &Arc<Live<Rules>>,
    desks: impl Iterator<Item = (usize, &'a Desk)>,
    equipment: &Equipment,
    shared: &Shared,
) -> io::Result<Crew> {
    let roster = Roster::new(group.sockets.len(), group.may_share_threads())?;
    let (roster, stop) = (Arc::new(roster), Arc::clone(&shared.stop));
    let sizes = (group.listener.max_length, group.buffer.granted);
    let mut crew = Crew::new(Arc::clone(&roster), Arc::clone(&stop), Arc::clone(&shared.parse), sizes);
    for (socket, (number, desk)) in group.sockets.iter().zip(desks) {
        let worker = Worker::new(
            Arc::clone(socket),
            (Arc::clone(&shared.parse), Sequence::new(equipment.run, number), Gate::new(Arc::clone(rules))),
            OpenBatch::new(equipment.limits, Arc::clone(&equipment.pool)).in_lane(number),
            Arc::clone(&shared.queue),
            (Arc::clone(&stop), Arc::clone(&roster)),
            Arc::clone(&desk.books),
        );
        crew.add(worker, Arc::clone(socket), Arc::clone(&desk.books));
    }
    Ok(crew)
}

fn start_thread(crew: Arc<Crew>, thread: usize, shared: &Shared) -> io::Result<JoinHandle<()>> {
    let (broken, begin) = (Arc::clone(&shared.broken), Arc::clone(&shared.begin));
    thread::Builder::new().name(format!("receive-{thread}")).stack_size(STACK).spawn(move || {
        begin.wait();
        let ran = panic::catch_unwind(AssertUnwindSafe(|| crew.run(thread, || broken.notify_one())));
        if ran.is_err() {
            broken.notify_one(); // not a worker's panic, but its thread's
        }
    })
}
