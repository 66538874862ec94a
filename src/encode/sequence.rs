//! When and where a datagram was received, as one text that sorts in the order of arrival.

use crate::datagram::Timestamp;

/// Bytes of the text.
const LENGTH: usize = 59;

/// Where its parts begin; a point or a hyphen is before each but the first.
const NANOS: usize = 11;
const RUN: usize = 21;
const WORKER: usize = 38;
const NUMBER: usize = 43;

/// `1796000000.123456789-19f2d0c4a8e1b7f3-0001-0000000000000042`: the time of receipt in seconds since 1970, the run of the process,
/// the worker, and the datagram's number among those that this worker has read.
#[derive(Debug, Clone, Copy)]
pub struct Sequence([u8; LENGTH]);

impl Sequence {
    /// Of a worker in a run of the process.
    pub fn new(run: u64, worker: usize) -> Self {
        let mut text = *b"0000000000.000000000-0000000000000000-0000-0000000000000000";
        text[RUN..WORKER - 1].copy_from_slice(format!("{run:016x}").as_bytes());
        put_decimal(&mut text[WORKER..NUMBER - 1], worker as u64);
        Self(text)
    }

    /// A number for a run of the process that no other one has: its time, and a bit of chance.
    pub fn new_run() -> u64 {
        let now = Timestamp::now();
        let millis = now.seconds as u64 * 1_000 + u64::from(now.nanos) / 1_000_000;
        millis << 16 | u64::from(fastrand::u16(..))
    }

    /// Makes it that of another datagram.
    #[inline]
    pub fn set(&mut self, received: Timestamp, number: u64) {
        put_decimal(&mut self.0[..NANOS - 1], received.seconds as u64);
        put_decimal(&mut self.0[NANOS..RUN - 1], received.nanos.into());
        put_decimal(&mut self.0[NUMBER..], number);
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.0
    }
}

/// Fills the place with the last digits of a number.
#[inline]
fn put_decimal(place: &mut [u8], mut value: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sequence: &Sequence) -> String {
        String::from_utf8(sequence.text().to_vec()).unwrap()
    }

    #[test]
    fn it_has_all_parts_and_sorts_by_arrival() {
        let mut first = Sequence::new(0x19f2_d0c4_a8e1_b7f3, 1);
        first.set(Timestamp { seconds: 1_796_000_000, nanos: 123_456_789 }, 42);
        assert_eq!(text(&first), "1796000000.123456789-19f2d0c4a8e1b7f3-0001-0000000000000042");
        let mut others = [(1_796_000_000, 123_456_790, 2), (1_796_000_001, 5, 1), (9_999_999_999, 0, 0)].map(
            |(seconds, nanos, number)| {
                let mut sequence = Sequence::new(0, 0);
                sequence.set(Timestamp { seconds, nanos }, number);
                text(&sequence)
            },
        );
        others.reverse();
        let mut all = [&others[..], &[text(&first)]].concat();
        all.sort();
        others.reverse();
        assert_eq!(all, [&[text(&first)][..], &others].concat());
        assert_ne!(Sequence::new_run(), Sequence::new_run());
    }
}
