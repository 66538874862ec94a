//! Writes one log event, field by field, each behind its length.

use super::wire::{self, FIELD_1, FIELD_2, field_length, put_field, varint_length};
use crate::datagram::Timestamp;

/// Tag of `Value.map`, a length-delimited field 7.
const VALUE_MAP: u8 = 0x3A;

/// One `events` field of a `PushEventsRequest` in the making.
///
/// Protobuf has each length before what it measures. The fields' lengths are known when they are written; the
/// event's is not, so room is left for it and, in the rare case of a wrong guess of that room, the event is moved.
/// A key that is written twice is legal, and the last one counts.
pub struct LogWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    room: usize,
}

impl<'a> LogWriter<'a> {
    /// Begins an event of about `expected` bytes at the end of `out`.
    pub fn begin(out: &'a mut Vec<u8>, expected: usize) -> Self {
        let room = header_length(expected);
        out.reserve(room + expected);
        let start = out.len();
        out.extend_from_slice(&[0; MAX_HEADER][..room]);
        Self { out, start, room }
    }

    /// Text or bytes.
    #[inline]
    pub fn bytes(&mut self, key: &str, value: &[u8]) {
        self.short_or_long(FIELD_1, key, value);
    }

    /// Adds an entry whose `Value` has one length-delimited field: `tag` and `content`.
    #[inline]
    fn short_or_long(&mut self, tag: u8, key: &str, content: &[u8]) {
        const SHORT: usize = 16;
        // Most entries are short: their head is put together apart and copied at once.
        if key.len() <= SHORT && content.len() < 100 {
            let (length, value_field) = (key.len(), content.len() + 2);
            let mut head = [0; SHORT + 8];
            head[..4].copy_from_slice(&[FIELD_1, (length + value_field + 4) as u8, FIELD_1, length as u8]);
            head[4..4 + length].copy_from_slice(key.as_bytes());
            let tail = [FIELD_2, value_field as u8, tag, content.len() as u8];
            head[4 + length..8 + length].copy_from_slice(&tail);
            self.out.extend_from_slice(&head[..8 + length]);
            self.out.extend_from_slice(content);
            return;
        }
        wire::put_entry_head(self.out, key, field_length(content.len()));
        put_field(self.out, tag, content.len());
        self.out.extend_from_slice(content);
    }

    /// A whole number.
    pub fn integer(&mut self, key: &str, value: i64) {
        wire::put_entry_head(self.out, key, wire::integer_value_length(value));
        wire::put_integer_value(self.out, value);
    }

    /// A point in time.
    pub fn timestamp(&mut self, key: &str, value: Timestamp) {
        let (content, length) = wire::timestamp(value);
        self.short_or_long(FIELD_2, key, &content[..length]);
    }

    /// An object of texts. `pairs` is gone through twice: first for its length.
    pub fn object<'t, V: AsRef<str>, I: Iterator<Item = (&'t str, V)>>(
        &mut self,
        key: &str,
        pairs: impl Fn() -> I,
    ) {
        let value_length = |value: &V| field_length(value.as_ref().len());
        let entry_length = |(name, value): (&str, V)| {
            field_length(field_length(name.len()) + field_length(value_length(&value)))
        };
        let map = pairs().map(entry_length).sum();
        wire::put_entry_head(self.out, key, field_length(map));
        put_field(self.out, VALUE_MAP, map);
        for (name, value) in pairs() {
            self.bytes(name, value.as_ref().as_bytes());
        }
    }

    /// A `Value` of `length` bytes that `write` appends.
    pub(super) fn value(&mut self, key: &str, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        wire::put_entry_head(self.out, key, length);
        write(self.out);
    }

    /// A field of the log itself, of `length` bytes that `write` appends.
    pub(super) fn root(&mut self, tag: u8, length: usize, write: impl FnOnce(&mut Vec<u8>)) {
        put_field(self.out, tag, length);
        write(self.out);
    }

    /// Entries that were encoded before, with [`wire::entry`].
    pub fn entries(&mut self, encoded: &[u8]) {
        self.out.extend_from_slice(encoded);
    }

    /// Completes the event.
    pub fn finish(mut self) {
        let content = self.start + self.room;
        let log = self.out.len() - content;
        let header = header_length(log);
        if header != self.room {
            self.move_content(content, header);
        }
        let mut head = &mut self.out[self.start..self.start + header];
        head = put_head(head, field_length(log));
        put_head(head, log);
    }

    #[cold]
    fn move_content(&mut self, content: usize, header: usize) {
        let (end, to) = (self.out.len(), self.start + header);
        if to > content {
            self.out.resize(end + to - content, 0);
        }
        self.out.copy_within(content..end, to);
        self.out.truncate(to + end - content);
    }
}

/// Tags and lengths of the wrapper and the log, at their longest: two tags, two lengths of 32 bits.
const MAX_HEADER: usize = 12;

/// Bytes before the fields of a log whose fields take `log` bytes.
fn header_length(log: usize) -> usize {
    2 + varint_length(log as u64) + varint_length(field_length(log) as u64)
}

/// Writes a tag and a length, and returns what is behind them.
fn put_head(out: &mut [u8], mut length: usize) -> &mut [u8] {
    out[0] = FIELD_1;
    let mut at = 1;
    while length >= 0x80 {
        out[at] = length as u8 | 0x80;
        length >>= 7;
        at += 1;
    }
    out[at] = length as u8;
    &mut out[at + 1..]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message;

    use super::*;
    use crate::proto::event::{Value, ValueMap, event_wrapper::Event, value::Kind};
    use crate::proto::vector::PushEventsRequest;

    fn value(kind: Kind) -> Value {
        Value { kind: Some(kind) }
    }

    #[test]
    fn prost_reads_every_kind_whatever_was_expected() {
        let time = Timestamp { seconds: 1_796_000_000, nanos: 1 };
        for length in (0..200).chain(16_100..16_500).chain([70_000]) {
            for expected in [0, length, 20_000, 3_000_000] {
                let text = "x".repeat(length);
                let mut out = b"\x0A\x00".to_vec(); // an event before it, to be left alone
                let pairs = [("a", "b"), ("", &text)];
                let mut log = LogWriter::begin(&mut out, expected);
                log.bytes("message", text.as_bytes());
                log.integer("procid", -7);
                log.timestamp("timestamp", time);
                log.object("sd@1", || pairs.into_iter());
                log.entries(&wire::entry("host", &wire::bytes_value(b"h")));
                log.bytes("host", b"again");
                log.finish();

                let request = PushEventsRequest::decode(&out[..]).unwrap();
                let Some(Event::Log(log)) = &request.events[1].event else { panic!() };
                let bytes = |text: &str| value(Kind::RawBytes(text.to_owned().into()));
                let time = prost_types::Timestamp { seconds: time.seconds, nanos: 1 };
                let map = pairs.map(|(name, text)| (name.to_owned(), bytes(text)));
                let fields = BTreeMap::from([
                    ("message".to_owned(), bytes(&text)),
                    ("procid".to_owned(), value(Kind::Integer(-7))),
                    ("timestamp".to_owned(), value(Kind::Timestamp(time))),
                    ("sd@1".to_owned(), value(Kind::Map(ValueMap { fields: map.into() }))),
                    ("host".to_owned(), bytes("again")),
                ]);
                assert_eq!(log.fields, fields, "{length} {expected}");
            }
        }
    }
}
