//! The messages of a load: numbered ones of one size, or a corpus.

use std::fmt::Write;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use super::{Load, Marker};
use crate::config::MAX_DATAGRAM;
use crate::dead_letter::replayed;

/// The smallest numbered message, bytes: its mark.
pub const MIN_SIZE: usize = Marker::LENGTH;

/// What comes before the mark where the size has room for it: the header of an RFC 5424 message.
const HEADER: &str = "<134>1 2026-01-01T00:00:00.000Z fw-01 traffic 4711 - - ";

/// Numbered messages that are prepared at once: what one send can carry.
const ROW: usize = 64;

/// Messages from a file, one a line; a line of a dead-letter file stands for its datagram.
#[derive(Debug, Clone)]
pub struct Corpus(Arc<[Box<[u8]>]>);

impl Corpus {
    /// How many there are.
    pub fn messages(&self) -> u64 {
        self.0.len() as u64
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or has no line that fits a datagram.
    pub fn read(path: &Path) -> io::Result<Self> {
        let bytes = std::fs::read(path)?;
        let fits = |line: &Vec<u8>| !line.is_empty() && line.len() <= MAX_DATAGRAM;
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(replayed).filter(fits);
        let lines: Arc<[_]> = lines.map(Vec::into_boxed_slice).collect();
        match lines.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::InvalidData, "it has no line that fits a datagram")),
            false => Ok(Self(lines)),
        }
    }
}

/// Makes the next messages, in memory that is filled once: only the marks change.
pub(super) struct Messages {
    row: Vec<u8>,
    size: usize,
    mark_at: usize,
    next: Marker,
    corpus: Option<Corpus>,
    mark: String,
}

impl Messages {
    pub(super) fn new(load: &Load, of: u64) -> Self {
        let header = if load.size >= HEADER.len() + MIN_SIZE { HEADER } else { "" };
        let mut random = fastrand::Rng::with_seed(load.seed);
        let next = Marker { number: 0, of, run: random.u32(..), flow: 0 };
        let mut row = Vec::with_capacity(ROW * load.size);
        for _ in 0..ROW {
            row.extend_from_slice(header.as_bytes());
            let filler = load.size - header.len();
            row.extend((0..filler).map(|i| if i == MIN_SIZE { b' ' } else { random.alphanumeric() as u8 }));
        }
        let (size, mark_at) = (load.size, header.len());
        Self { row, size, mark_at, next, corpus: load.corpus.clone(), mark: String::new() }
    }

    /// How many messages one call can give.
    pub(super) const fn row_length() -> usize {
        ROW
    }

    /// Bytes of each message; none where they differ.
    pub(super) fn size(&self) -> Option<usize> {
        self.corpus.is_none().then_some(self.size)
    }

    /// The next `count` messages, one behind the other. Only for messages of one size.
    pub(super) fn next_row(&mut self, count: usize, flow: usize) -> &[u8] {
        let count = count.min(ROW);
        self.next.flow = flow as u32;
        for message in self.row.chunks_exact_mut(self.size).take(count) {
            self.mark.clear();
            // Writing to a String cannot fail.
            write!(self.mark, "{}", self.next).ok();
            message[self.mark_at..][..MIN_SIZE].copy_from_slice(self.mark.as_bytes());
            self.next.number += 1;
        }
        &self.row[..count * self.size]
    }

    /// The next `count` messages as slices.
    pub(super) fn next_slices(&mut self, count: usize, flow: usize) -> Vec<IoSlice<'_>> {
        let count = count.min(ROW);
        if self.corpus.is_none() {
            let size = self.size;
            return self.next_row(count, flow).chunks_exact(size).map(IoSlice::new).collect();
        }
        let lines = self.corpus.as_ref().map_or(&[][..], |Corpus(lines)| lines);
        let first = self.next.number;
        self.next.number += count as u64;
        (first..first + count as u64)
            .map(|i| IoSlice::new(&lines[(i % lines.len() as u64) as usize]))
            .collect()
    }
}
