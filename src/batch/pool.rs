//! Batch buffers that come back: a fresh megabyte a batch is page faults, a recycled one is not.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Buffers of one size, at most `keep` of them idle.
#[derive(Debug)]
pub struct Pool {
    idle: Mutex<Vec<Vec<u8>>>,
    capacity: usize,
    keep: usize,
}

impl Pool {
    /// A pool of buffers of `capacity` bytes that keeps up to `keep` idle ones.
    pub fn new(capacity: usize, keep: usize) -> Arc<Self> {
        Arc::new(Self { idle: Mutex::new(Vec::with_capacity(keep)), capacity, keep })
    }

    /// An empty buffer.
    pub fn take(&self) -> Vec<u8> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Vec::with_capacity(self.capacity))
    }

    /// Makes a filled buffer shareable; it comes back when its last reader lets go of it.
    pub fn lend(self: &Arc<Self>, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Lent { buffer, pool: Arc::clone(self) })
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // A buffer that one huge event made grow is not kept: the pool's memory stays what it says.
        if idle.len() < self.keep && buffer.capacity() <= self.capacity {
            idle.push(buffer);
        }
    }
}

struct Lent {
    buffer: Vec<u8>,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.give_back(mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_last_reader_is_gone() {
        let pool = Pool::new(64, 1);
        let mut buffer = pool.take();
        buffer.extend_from_slice(b"events");
        let address = buffer.as_ptr();
        let bytes = pool.lend(buffer);
        let slice = bytes.slice(2..4);
        drop(bytes);
        let other = pool.take();
        assert_ne!(other.as_ptr(), address, "still read");
        assert_eq!(&slice[..], b"en");
        drop(slice);
        let again = pool.take();
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
    }

    #[test]
    fn idle_buffers_are_bounded_in_number_and_size() {
        let pool = Pool::new(64, 1);
        drop([pool.lend(Vec::with_capacity(64)), pool.lend(Vec::with_capacity(64))]);
        assert_eq!(pool.idle.lock().unwrap().len(), 1);
        pool.take();
        drop(pool.lend(Vec::with_capacity(65)));
        assert_eq!(pool.idle.lock().unwrap().len(), 0);
    }
}
