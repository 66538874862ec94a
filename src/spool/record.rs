//! A record: a header, then a batch's body as it goes to the wire.

use crate::batch::Batch;
use crate::config::{MAX_DATAGRAM, MAX_REQUEST};
use crate::datagram::Timestamp;
use crate::encode::MAX_EVENT_OVERHEAD;

/// Bytes before a body.
pub(super) const HEADER: usize = 32;

/// What a record begins with, and what is looked for behind a damaged one.
pub(super) const MAGIC: [u8; 4] = *b"SGR1";

/// No body is longer: a request's limit, and one event beyond it.
const LONGEST: usize = MAX_REQUEST + MAX_DATAGRAM * 2 + MAX_EVENT_OVERHEAD;

/// What is known of a record before its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of the body.
    pub length: usize,
    /// Events in it.
    pub events: u64,
    /// When its first datagram was received.
    pub received: Timestamp,
    /// Of the body.
    checksum: u32,
}

impl Header {
    /// The header of a batch, as bytes; none when it could not be read back.
    pub(super) fn of(batch: &Batch) -> Option<[u8; HEADER]> {
        let length = u32::try_from(batch.body.len()).ok().filter(|length| *length as usize <= LONGEST)?;
        let mut out = [0; HEADER];
        out[..4].copy_from_slice(&MAGIC);
        out[4..8].copy_from_slice(&length.to_le_bytes());
        out[8..12].copy_from_slice(&u32::try_from(batch.events).ok()?.to_le_bytes());
        out[12..20].copy_from_slice(&batch.received.seconds.to_le_bytes());
        out[20..24].copy_from_slice(&batch.received.nanos.to_le_bytes());
        out[24..28].copy_from_slice(&crc32fast::hash(&batch.body).to_le_bytes());
        // The header has a checksum of its own: a length that can be relied on leads to the next record.
        let own = crc32fast::hash(&out[..28]);
        out[28..].copy_from_slice(&own.to_le_bytes());
        Some(out)
    }

    /// Reads one; none when these bytes are no header.
    pub(super) fn read(bytes: &[u8; HEADER]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (length, events, nanos) = (word(4) as usize, word(8), word(20));
        let seconds = i64::from(word(12)) | i64::from(word(16)) << 32;
        let whole = bytes[..4] == MAGIC && crc32fast::hash(&bytes[..28]) == word(28);
        let fits = whole && length <= LONGEST && events > 0 && nanos < 1_000_000_000;
        fits.then(|| Self {
            length,
            events: events.into(),
            received: Timestamp { seconds, nanos },
            checksum: word(24),
        })
    }

    /// Whether the body is what was written.
    pub(super) fn vouches_for(&self, body: &[u8]) -> bool {
        crc32fast::hash(body) == self.checksum
    }
}
