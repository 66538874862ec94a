//! Batches on disk: what does not fit the memory queue, and what a stop leaves.
//!
//! In: closed batches. Out: the same, oldest first, and a file is removed once all in it is settled. What can be lost: what
//! is more than `max_bytes` (the caller counts it), and what a damaged file no longer holds (counted here). A process that is
//! killed loses nothing that was appended; a machine that loses power loses what was appended since the last [`Spool::sync`].
//!
//! Files of our own, since a queue needs no index: in the same measurement (1,000 records of 1 MB, in and out) they took
//! 0.7 s of CPU, the key-value store fjall 2.0 s, keeping 1.1 GB on disk afterwards, and redb 7.9 s. See bench/HISTORY.md.

mod place;
mod record;
mod segment;

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::{error, warn};

use crate::batch::{Batch, Closed};
pub use place::Place;
use record::{HEADER, Header};
use segment::Segment;

/// A file is closed at this size, bytes: what is settled frees its space file by file.
const SEGMENT: u64 = 16 << 20;

/// The first file's number: there is room for older ones before it.
const FIRST: u64 = 1 << 32;

/// Why a spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be made, read or written.
    #[error("cannot use {} for events that wait on disk: {error}. Make it writable, or name another data_dir", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// Another process uses it.
    #[error("another process uses {}: give each sluicegate a data_dir of its own", .0.display())]
    Taken(PathBuf),
}

/// Why a batch was not taken.
#[derive(Debug)]
pub enum Refused {
    /// There are `max_bytes` already.
    Full,
    /// The disk does not take it.
    Failed(io::Error),
}

/// What is on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Level {
    /// Events that are on disk only.
    pub events: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Names the file that a batch was read from, which stays until the batch is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// A directory of batches.
#[derive(Debug)]
pub struct Spool {
    directory: PathBuf,
    max_bytes: u64,
    state: Mutex<State>,
    /// Events that an earlier process left.
    recovered: u64,
    /// Events that damaged files no longer held.
    damaged: AtomicU64,
    /// Something was appended since the last sync.
    dirty: AtomicBool,
    claim: File,
}

#[derive(Debug, Default)]
struct State {
    segments: VecDeque<Segment>,
    next_number: u64,
}

impl Spool {
    /// Opens the directory, which is made where it is missing, and finds what an earlier process left.
    ///
    /// # Errors
    /// When it cannot be written, or another process has it.
    pub fn open(directory: &Path, max_bytes: u64) -> Result<Self, OpenError> {
        let failed = |error| OpenError::Directory { path: directory.to_owned(), error };
        fs::create_dir_all(directory).map_err(failed)?;
        let lock = File::create(directory.join("lock")).map_err(failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => OpenError::Taken(directory.to_owned()),
            TryLockError::Error(error) => failed(error),
        })?;
        let state = State::found_in(directory).map_err(failed)?;
        let recovered = state.segments.iter().map(|segment| segment.unread).sum();
        if recovered > 0 {
            warn!(events = recovered, "an earlier process left events on disk: they are sent now");
        }
        Ok(Self {
            directory: directory.to_owned(),
            max_bytes,
            state: Mutex::new(state),
            recovered,
            damaged: AtomicU64::new(0),
            dirty: AtomicBool::new(false),
            claim: lock,
        })
    }

    /// Adds a batch at the end.
    ///
    /// # Errors
    /// Why it was not taken; nothing of it is on disk then.
    pub fn append(&self, batch: &Batch) -> Result<(), Refused> {
        let too_long = || Refused::Failed(io::Error::from(io::ErrorKind::InvalidInput));
        let header = Header::of(batch).ok_or_else(too_long)?;
        let mut state = self.lock();
        if state.level().bytes + (HEADER + batch.body.len()) as u64 > self.max_bytes {
            return Err(Refused::Full);
        }
        let appended = state.writable(&self.directory).and_then(|segment| segment.append(&header, batch));
        appended.map_err(Refused::Failed)?;
        self.dirty.store(true, Relaxed);
        Ok(())
    }

    /// Adds batches before all that are here: they are older. Those that are not taken are returned.
    pub fn put_before<'a>(&self, batches: &'a [Batch]) -> Vec<&'a Batch> {
        let mut state = self.lock();
        let first = state.segments.front().map_or(state.next_number, |segment| segment.number);
        let room = self.max_bytes.saturating_sub(state.level().bytes);
        let segment = first.checked_sub(1).map(|number| Segment::create(&self.directory, number));
        let Some(Ok(mut segment)) = segment else { return batches.iter().collect() };
        let mut refused = Vec::new();
        for batch in batches {
            let header =
                Header::of(batch).filter(|_| segment.end + (HEADER + batch.body.len()) as u64 <= room);
            match header {
                Some(header) if refused.is_empty() && segment.append(&header, batch).is_ok() => {}
                _ => refused.push(batch),
            }
        }
        segment.sealed = true;
        state.segments.push_front(segment);
        state.clean();
        self.dirty.store(true, Relaxed);
        refused
    }

    /// The oldest batch that was not taken yet; none when there is none.
    pub fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            let segment = state.segments.iter_mut().find(|segment| segment.unread > 0)?;
            let number = segment.number;
            let lost = match segment.read() {
                Ok(Some(record)) => {
                    let ticket = Some(Ticket(segment.number));
                    let (events, received) = (record.header.events, record.header.received);
                    let weight = record.body.len();
                    let body = record.body.into();
                    let (closed, lane, trouble) = (Closed::Age, None, None);
                    return Some(Batch { body, events, weight, received, closed, ticket, lane, trouble });
                }
                Ok(None) => std::mem::take(&mut segment.unread),
                Err(error) => {
                    error!(%error, number, "a file of events on disk cannot be read: it is left for the next start");
                    let lost = segment.unread;
                    state.segments.retain(|segment| segment.number != number);
                    self.damaged.fetch_add(lost, Relaxed);
                    continue;
                }
            };
            self.damaged.fetch_add(lost, Relaxed);
            error!(events = lost, "events on disk were damaged and are lost");
            segment.sealed = true;
            state.clean();
        }
    }

    /// Says that events of a batch with this ticket are delivered, or refused for good.
    pub fn settle(&self, Ticket(number): Ticket, events: u64) {
        let mut state = self.lock();
        if let Some(segment) = state.segments.iter_mut().find(|segment| segment.number == number) {
            segment.unsettled = segment.unsettled.saturating_sub(events);
            // All of it is settled, and it is the one that is written to: the next batch begins another.
            segment.sealed |= segment.unread == 0 && segment.unsettled == 0;
        }
        state.clean();
    }

    /// Says that nothing that was taken is in memory any more; what was not settled is on disk only.
    pub fn unload(&self) {
        self.lock().segments.iter_mut().for_each(Segment::unload);
    }

    /// Brings what was appended to the disk itself (fdatasync(2)). Takes its time, and holds nobody up.
    pub fn sync(&self) {
        if !self.dirty.swap(false, Relaxed) {
            return;
        }
        let files: Vec<_> = self.lock().segments.iter().rev().take(2).map(|s| Arc::clone(&s.file)).collect();
        for file in files {
            if let Err(error) = file.sync_data() {
                warn!(%error, "events on disk could not be synced: they outlive this process, not a power cut");
            }
        }
    }

    /// What is on disk.
    pub fn level(&self) -> Level {
        self.lock().level()
    }

    /// Lets another process have the directory. Nothing is appended or taken any more.
    pub fn let_go(&self) {
        self.claim.unlock().ok(); // it ends with the process at the latest
    }

    /// Bytes that may be on disk.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Events that an earlier process left.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Events that damaged files no longer held.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn found_in(directory: &Path) -> io::Result<Self> {
        let mut state = Self { next_number: FIRST, ..Self::default() };
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let number =
                path.file_name().and_then(|name| name.to_str()?.strip_suffix(".spool")?.parse().ok());
            found.extend(number.map(|number: u64| (number, path)));
        }
        found.sort_unstable();
        for (number, path) in found {
            state.next_number = number + 1;
            let (segment, damaged) = Segment::open(path, number)?;
            if damaged > 0 {
                warn!(
                    number,
                    bytes = damaged,
                    "a file of events on disk is damaged, or its end was not written: passed over"
                );
            }
            state.segments.push_back(segment);
        }
        state.clean();
        Ok(state)
    }

    fn level(&self) -> Level {
        self.segments.iter().fold(Level::default(), |level, segment| Level {
            events: level.events + segment.unread,
            bytes: level.bytes + segment.end,
        })
    }

    fn writable(&mut self, directory: &Path) -> io::Result<&mut Segment> {
        let open = self.segments.back_mut().filter(|last| !last.sealed);
        if open.is_none_or(|last| {
            last.sealed = last.end >= SEGMENT;
            last.sealed
        }) {
            fs::create_dir_all(directory)?; // somebody may have removed it
            self.segments.push_back(Segment::create(directory, self.next_number)?);
            self.next_number += 1;
        }
        self.segments.back_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn clean(&mut self) {
        self.segments.retain(|segment| {
            let done = segment.is_done();
            if done {
                segment.remove();
            }
            !done
        });
    }
}

#[cfg(test)]
mod tests;
