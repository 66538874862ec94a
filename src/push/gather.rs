//! What is to be written, in pieces: headers of frames are copied, bodies of requests stay where they are.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes, BytesMut};

/// As much as is written at once, bytes: one of Vector's windows, with the headers of its frames.
///
/// HTTP/2 writes a frame a call, and the receiver wakes for each. Gathering 64 KiB took 15–20 % off Vector's CPU; a window, without a
/// copy, takes a sixth off ours and 7 % off a receiver's (bench/HISTORY.md).
pub(super) const GATHER: usize = (1 << 20) + (4 << 10);

/// The most slices that one write takes: more than a window of full frames, which are two each, and some small ones.
pub(super) const SLICES: usize = 192;

/// Slices of one more frame: what was copied before it, its header, its payload.
const FRAME: usize = 3;

/// A shorter piece is copied: that is cheaper than a slice of its own.
const WORTH_A_SLICE: usize = 1_024;

/// What is made room for at a time, bytes: HTTP/2 puts 256 of a frame together by itself, so it is headers of 64.
const COPIES: usize = 64 * 265;

/// The bodies of a connection's requests that are under way.
///
/// HTTP/2 lends its transport a frame's bytes for as long as one call takes. Where they are a part of one of these, the transport
/// keeps the part itself and need not copy.
#[derive(Debug, Clone, Default)]
pub(super) struct Bodies {
    under_way: Arc<Mutex<Vec<Bytes>>>,
    /// Bytes that were not copied.
    #[cfg(test)]
    pub(super) kept: Arc<std::sync::atomic::AtomicUsize>,
}

/// A request that is under way, until it is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    bodies: Bodies,
    body: Bytes,
}

impl Bodies {
    pub(super) fn add(&self, body: Bytes) -> UnderWay {
        self.lock().push(body.clone());
        UnderWay { bodies: self.clone(), body }
    }

    fn find(&self, lent: &[u8]) -> Option<Bytes> {
        let wanted = lent.as_ptr_range();
        let bodies = self.lock();
        let body = bodies.iter().find(|body| {
            let whole = body.as_ptr_range();
            whole.start <= wanted.start && wanted.end <= whole.end
        })?;
        #[cfg(test)]
        self.kept.fetch_add(lent.len(), std::sync::atomic::Ordering::Relaxed);
        Some(body.slice_ref(lent))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut bodies = self.bodies.lock();
        if let Some(at) = bodies.iter().position(|body| body.as_ptr() == self.body.as_ptr()) {
            bodies.swap_remove(at);
        }
    }
}

/// What waits to be written, in order.
#[derive(Debug)]
pub(super) struct Gathered {
    pieces: VecDeque<Bytes>,
    /// What was copied behind the last piece.
    tail: BytesMut,
    /// Of all, bytes.
    length: usize,
}

impl Gathered {
    pub(super) fn new() -> Self {
        Self { pieces: VecDeque::with_capacity(SLICES), tail: BytesMut::with_capacity(COPIES), length: 0 }
    }

    /// Bytes.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// True when one write takes another frame, of this many bytes, as well.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.pieces.len() + FRAME <= SLICES && self.length + bytes <= GATHER
    }

    /// Adds what is lent at the end.
    pub(super) fn add(&mut self, lent: &[u8], bodies: &Bodies) {
        self.length += lent.len();
        if lent.len() >= WORTH_A_SLICE
            && let Some(part) = bodies.find(lent)
        {
            self.end_tail();
            self.pieces.push_back(part);
            return;
        }
        if self.tail.capacity() - self.tail.len() < lent.len() {
            self.end_tail();
            self.tail.reserve(lent.len().max(COPIES));
        }
        self.tail.extend_from_slice(lent);
    }

    fn end_tail(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
    }

    /// The front, as far as one write takes it: how many slices that is.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let all = self.pieces.iter().map(|piece| &piece[..]).chain([&self.tail[..]]);
        let mut count = 0;
        for (slice, piece) in slices.iter_mut().zip(all) {
            *slice = IoSlice::new(piece);
            count += 1;
        }
        count
    }

    /// Removes what was written, bytes, from the front.
    pub(super) fn advance(&mut self, mut written: usize) {
        self.length -= written;
        while let Some(piece) = self.pieces.front_mut() {
            if written < piece.len() {
                piece.advance(written);
                return;
            }
            written -= piece.len();
            self.pieces.pop_front();
        }
        self.tail.advance(written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(gathered: &Gathered) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let count = gathered.slices(&mut slices);
        slices[..count].iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn parts_of_a_body_that_is_under_way_are_kept_where_they_are_and_all_else_is_copied() {
        let bodies = Bodies::default();
        let body = Bytes::from((0..10_000).map(|i| (i / 7) as u8).collect::<Vec<u8>>());
        let stranger = body.to_vec();
        let under_way = bodies.add(body.clone());
        let mut gathered = Gathered::new();
        gathered.add(b"head", &bodies);
        gathered.add(&body[100..4_100], &bodies);
        gathered.add(b"head", &bodies);
        gathered.add(&stranger[..2_000], &bodies);
        gathered.add(&body[4_100..4_200], &bodies);
        assert_eq!((gathered.pieces.len(), gathered.tail.len()), (2, 4 + 2_000 + 100));
        assert_eq!(gathered.pieces[1].as_ptr(), body[100..].as_ptr());
        drop(under_way);
        gathered.add(&body[..2_000], &bodies);
        assert_eq!((gathered.pieces.len(), gathered.len()), (2, 4 + 4_000 + 4 + 2_000 + 100 + 2_000));
        let expected =
            [b"head", &body[100..4_100], b"head", &body[..2_000], &body[4_100..4_200], &body[..2_000]];
        assert_eq!(written(&gathered), expected.concat());
    }

    #[test]
    fn a_body_that_is_under_way_twice_stays_until_both_requests_end() {
        let bodies = Bodies::default();
        let body = Bytes::from(vec![7; 2_000]);
        let first = bodies.add(body.clone());
        let second = bodies.add(body.clone());
        drop(first);
        assert!(bodies.find(&body).is_some());
        drop(second);
        assert!(bodies.find(&body).is_none() && bodies.lock().is_empty());
    }

    #[test]
    fn whatever_the_kernel_takes_the_rest_stays_in_order() {
        let bodies = Bodies::default();
        let body = Bytes::from((0..8_000).map(|i| (i / 3) as u8).collect::<Vec<u8>>());
        let _under_way = bodies.add(body.clone());
        for step in [1, 7, 1_999, 2_000, 2_001, 2_009, 5_000, 8_036] {
            let mut gathered = Gathered::new();
            let mut expected = Vec::new();
            for part in body.chunks(2_000) {
                gathered.add(b"some head", &bodies);
                gathered.add(part, &bodies);
                expected.extend_from_slice(b"some head");
                expected.extend_from_slice(part);
            }
            while !gathered.is_empty() {
                assert_eq!(written(&gathered), expected);
                let taken = step.min(gathered.len());
                gathered.advance(taken);
                expected.drain(..taken);
            }
            assert!(expected.is_empty() && gathered.pieces.is_empty() && gathered.tail.is_empty());
        }
    }

    #[test]
    fn what_is_gathered_fits_one_write() {
        let bodies = Bodies::default();
        let body = Bytes::from(vec![7; WORTH_A_SLICE]);
        let _under_way = bodies.add(body.clone());
        let mut gathered = Gathered::new();
        while gathered.has_room_for(body.len()) {
            gathered.add(b"head", &bodies);
            gathered.add(&body, &bodies);
            gathered.add(b"settings", &bodies);
            assert_eq!(written(&gathered).len(), gathered.len());
        }
        assert!(gathered.pieces.len() > SLICES - FRAME);
    }

    /// A peer that is always a frame behind must not make it grow.
    #[test]
    fn what_is_written_is_let_go_of_also_when_there_is_always_a_rest() {
        let bodies = Bodies::default();
        let body = Bytes::from(vec![7; WORTH_A_SLICE]);
        let _under_way = bodies.add(body.clone());
        let head = [1; 256];
        let mut gathered = Gathered::new();
        gathered.add(&body, &bodies);
        let mut blocks = std::collections::HashSet::new();
        for _ in 0..100_000 {
            gathered.add(&head, &bodies);
            gathered.add(&body, &bodies);
            gathered.advance(head.len() + body.len());
            assert!(gathered.pieces.len() <= 3 && gathered.tail.capacity() <= 2 * COPIES);
            blocks.insert(gathered.tail.as_ptr() as usize / COPIES);
        }
        assert_eq!(gathered.len(), body.len());
        assert!(blocks.len() < 1_000, "the same memory again and again, not {} pieces of it", blocks.len());
    }
}
