//! A file that grows by whole lines, up to a limit.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are collected before they are written.
const PIECE: usize = 256 << 10;

/// The file. It is opened for each letter, so that a person may move it away at any time.
#[derive(Debug)]
pub(super) struct Bounded {
    path: PathBuf,
    max_bytes: u64,
}

/// What became of lines.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Those that are in the file.
    pub(super) written: u64,
    /// Those that did not fit.
    pub(super) unfit: u64,
    /// Those that could not be written, and why.
    pub(super) failed: Option<(u64, io::Error)>,
}

impl Bounded {
    pub(super) fn new(path: PathBuf, max_bytes: u64) -> Self {
        Self { path, max_bytes }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Tries whether it can be opened.
    pub(super) fn probe(&self) -> io::Result<()> {
        self.open().map(drop)
    }

    /// Appends those lines that fit; once one does not, none after it is tried.
    pub(super) fn append(&self, mut lines: impl Iterator<Item = Vec<u8>>) -> Outcome {
        let mut outcome = Outcome::default();
        let (file, mut end) = match self.open() {
            Ok(opened) => opened,
            Err(error) => return Outcome { failed: Some((lines.count() as u64, error)), ..outcome },
        };
        let (mut piece, mut count) = (Vec::new(), 0);
        for line in lines.by_ref() {
            if end + (piece.len() + line.len()) as u64 > self.max_bytes {
                outcome.unfit = 1;
                break;
            }
            piece.extend(line);
            count += 1;
            if piece.len() < PIECE {
                continue;
            }
            if let Err(error) = put(&file, end, &piece) {
                outcome.failed = Some((count + lines.count() as u64, error));
                return outcome;
            }
            end += piece.len() as u64;
            outcome.written += std::mem::take(&mut count);
            piece.clear();
        }
        outcome.unfit += lines.count() as u64;
        match put(&file, end, &piece) {
            Ok(()) => outcome.written += count,
            Err(error) => outcome.failed = Some((count, error)),
        }
        outcome
    }

    /// The file and its length, the end of a line whatever happened before.
    fn open(&self) -> io::Result<(File, u64)> {
        // Messages may hold what is not for everybody.
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)?;
        file.lock().ok(); // against the process that takes over from this one; some file systems know no locks
        let end = file.metadata()?.len();
        let mut last = [b'\n'];
        if end > 0 {
            file.read_exact_at(&mut last, end - 1)?;
        }
        if last == *b"\n" {
            return Ok((file, end));
        }
        put(&file, end, b"\n")?;
        Ok((file, end + 1))
    }
}

/// Writes all of it or, as on a full disk, nothing.
fn put(mut file: &File, end: u64, bytes: &[u8]) -> io::Result<()> {
    let written = file.write_all(bytes);
    if written.is_err() {
        file.set_len(end).ok(); // the first error tells more
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> impl Iterator<Item = Vec<u8>> {
        lines.iter().map(|line| format!("{line}\n").into_bytes()).collect::<Vec<_>>().into_iter()
    }

    #[test]
    fn it_takes_whole_lines_up_to_its_limit_and_again_once_it_is_moved_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("letters");
        let file = Bounded::new(path.clone(), 10);
        let outcome = file.append(lines(&["one", "two", "three", "x"]));
        assert_eq!((outcome.written, outcome.unfit), (2, 2));
        assert!(outcome.failed.is_none());
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert_eq!(file.append(lines(&["x"])).written, 1);
        assert_eq!(file.append(lines(&["x"])).unfit, 1);
        std::fs::rename(&path, directory.path().join("old")).unwrap();
        assert_eq!(file.append(lines(&["three"])).written, 1);
        assert_eq!(std::fs::read(&path).unwrap(), b"three\n");
    }

    #[test]
    fn a_torn_line_is_ended_before_the_next_begins() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"one\nto").unwrap();
        assert_eq!(Bounded::new(file.path().into(), 100).append(lines(&["three"])).written, 1);
        assert_eq!(std::fs::read(file.path()).unwrap(), b"one\nto\nthree\n");
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let (failed, _) =
            Bounded::new(directory.path().into(), 100).append(lines(&["a", "b"])).failed.unwrap();
        assert_eq!(failed, 2);
        assert!(Bounded::new(directory.path().into(), 100).probe().is_err());
        let full = Bounded::new("/dev/full".into(), 100).append(lines(&["a", "b", "c"]));
        assert_eq!((full.written, full.failed.unwrap().0), (0, 3));
    }
}
