//! Receive and throw away, with the same sockets, steering and pace as workers, and always a thread for each: the floor that a
//! benchmark compares with.

use std::io;
use std::os::fd::AsFd;

use super::{BindError, DEPTH, Group, Pace, Step, Stop};
use crate::config::Listener;
use crate::socket::slots::Slots;

/// A group whose datagrams are only counted.
#[derive(Debug)]
pub struct Discard {
    group: Group,
    stop: Stop,
}

impl Discard {
    /// Opens the group.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn open(listener: &Listener) -> Result<Self, BindError> {
        let stop = Stop::new().map_err(|source| BindError::new(listener.address, source))?;
        Ok(Self { group: Group::open(listener, true)?, stop })
    }

    /// Reads socket number `worker` until it is told to stop; returns how many datagrams there were.
    pub fn run(&self, worker: usize) -> u64 {
        let socket = self.group.sockets[worker].as_fd();
        let mut slots = Slots::new(DEPTH, self.group.listener.max_length);
        let mut pace = Pace::new(DEPTH, self.group.buffer.granted);
        let mut received = 0;
        loop {
            let stopping = self.stop.is_given();
            let read = slots.receive(socket).unwrap_or(0);
            received += read as u64;
            match pace.after(read, read == DEPTH) {
                _ if stopping && read == 0 => return received,
                Step::Read => {}
                Step::Nap(nap) => std::thread::sleep(nap),
                Step::Wait => self.stop.wait(&[socket], None),
            }
        }
    }

    /// Tells every worker to stop.
    ///
    /// # Errors
    /// The kernel's.
    pub fn stop(&self) -> io::Result<()> {
        self.stop.give()
    }

    /// What the kernel dropped.
    pub fn kernel_drops(&self) -> u64 {
        self.group.memory().map(|memory| u64::from(memory.drops)).sum()
    }
}
