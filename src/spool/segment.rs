//! A file of records, written at its end and read from its front.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::{HEADER, Header, MAGIC};
use crate::batch::Batch;

/// How many bytes are looked through at once for the next record behind a damaged one.
const WINDOW: usize = 64 << 10;

/// A file of records.
#[derive(Debug)]
pub(super) struct Segment {
    /// Its place among the others.
    pub number: u64,
    path: PathBuf,
    pub file: Arc<File>,
    /// Where the records end.
    pub end: u64,
    /// Where the next one to read begins.
    next: u64,
    /// Events that were not read yet.
    pub unread: u64,
    /// Events that were read and are not settled.
    pub unsettled: u64,
    /// Nothing more is written to it.
    pub sealed: bool,
}

/// A record that was read.
pub(super) struct Record {
    pub header: Header,
    pub body: Vec<u8>,
}

impl Segment {
    /// A new, empty one.
    pub(super) fn create(directory: &Path, number: u64) -> io::Result<Self> {
        let path = directory.join(format!("{number:020}.spool"));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Ok(Self {
            number,
            path,
            file: Arc::new(file),
            end: 0,
            next: 0,
            unread: 0,
            unsettled: 0,
            sealed: false,
        })
    }

    /// One that an earlier process left; returns the bytes too that are no whole record.
    pub(super) fn open(path: PathBuf, number: u64) -> io::Result<(Self, u64)> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let end = file.metadata()?.len();
        let mut segment =
            Self { number, path, file: Arc::new(file), end, next: 0, unread: 0, unsettled: 0, sealed: true };
        let (mut at, mut damaged) = (0, 0);
        while let Some((found, header)) = segment.find(at)? {
            damaged += found - at;
            segment.unread += header.events;
            at = found + HEADER as u64 + header.length as u64;
        }
        damaged += end - at;
        Ok((segment, damaged))
    }

    /// Adds a batch. What could not be written whole is taken back.
    pub(super) fn append(&mut self, header: &[u8; HEADER], batch: &Batch) -> io::Result<()> {
        let write = || {
            self.file.write_all_at(header, self.end)?;
            self.file.write_all_at(&batch.body, self.end + HEADER as u64)
        };
        if let Err(error) = write() {
            // Should this fail too, a reader passes over what is left.
            self.file.set_len(self.end).ok();
            return Err(error);
        }
        self.end += (HEADER + batch.body.len()) as u64;
        self.unread += batch.events;
        Ok(())
    }

    /// The next whole record; none at the end, where `unread` is what was lost on the way.
    pub(super) fn read(&mut self) -> io::Result<Option<Record>> {
        while let Some((at, header)) = self.find(self.next)? {
            let mut body = vec![0; header.length];
            self.file.read_exact_at(&mut body, at + HEADER as u64)?;
            self.next = at + (HEADER + header.length) as u64;
            if header.vouches_for(&body) {
                self.unread = self.unread.saturating_sub(header.events);
                self.unsettled += header.events;
                return Ok(Some(Record { header, body }));
            }
        }
        self.next = self.end;
        Ok(None)
    }

    /// The first place at or behind `at` where a header is, with its whole body behind it.
    fn find(&self, mut at: u64) -> io::Result<Option<(u64, Header)>> {
        let mut window = Vec::new(); // needed only where something is damaged
        while at + HEADER as u64 <= self.end {
            if let Some(header) = self.header_at(at)? {
                return Ok(Some((at, header)));
            }
            // Damaged here: the next place where the magic is.
            let length = (self.end - at - 1).min(WINDOW as u64) as usize;
            window.resize(length, 0);
            self.file.read_exact_at(&mut window, at + 1)?;
            at += 1 + match memchr::memmem::find(&window, &MAGIC) {
                Some(found) => found as u64,
                None if length < WINDOW => return Ok(None),
                None => (length - MAGIC.len()) as u64,
            };
        }
        Ok(None)
    }

    fn header_at(&self, at: u64) -> io::Result<Option<Header>> {
        let mut bytes = [0; HEADER];
        self.file.read_exact_at(&mut bytes, at)?;
        let whole = |header: &Header| at + (HEADER + header.length) as u64 <= self.end;
        Ok(Header::read(&bytes).filter(whole))
    }

    /// True once nothing in it is needed any more.
    pub(super) fn is_done(&self) -> bool {
        self.sealed && self.unread == 0 && self.unsettled == 0
    }

    /// Reads what was read and not settled once more, should it be opened again.
    pub(super) fn unload(&mut self) {
        self.unread += std::mem::take(&mut self.unsettled);
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        std::fs::remove_file(&self.path).ok(); // what stays is sent again by the next start
    }
}
