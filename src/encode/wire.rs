//! Protobuf's wire format, as far as an encoder needs it (protobuf.dev, "Encoding").

use crate::datagram::Timestamp;

/// Tag of a length-delimited field 1.
pub const FIELD_1: u8 = 0x0A;
/// Tag of a length-delimited field 2.
pub const FIELD_2: u8 = 0x12;
/// Tag of `Value.integer`, a varint field 4.
const VALUE_INTEGER: u8 = 0x20;
/// Tags of `Timestamp.seconds` and `Timestamp.nanos`, varint fields 1 and 2.
const SECONDS: u8 = 0x08;
const NANOS: u8 = 0x10;

/// Bytes that [`put_varint`] writes.
pub const fn varint_length(value: u64) -> usize {
    // 7 bits a byte; `| 1` because zero takes a byte too.
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends a base-128 varint.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes of a length-delimited field: its one-byte tag, its length and `length` bytes.
pub const fn field_length(length: usize) -> usize {
    1 + varint_length(length as u64) + length
}

/// Appends the tag and length of a field whose `length` bytes the caller appends next.
#[inline]
pub fn put_field(out: &mut Vec<u8>, tag: u8, length: usize) {
    out.push(tag);
    put_varint(out, length as u64);
}

/// Appends an entry's head and key, up to a value of `length` bytes that the caller appends next.
#[inline]
pub fn put_entry_head(out: &mut Vec<u8>, key: &str, length: usize) {
    put_field(out, FIELD_1, field_length(key.len()) + field_length(length));
    put_field(out, FIELD_1, key.len());
    out.extend_from_slice(key.as_bytes());
    put_field(out, FIELD_2, length);
}

/// A whole entry of `Log.fields`, for values that are written once and copied often.
pub fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_entry_head(&mut out, key, value.len());
    out.extend_from_slice(value);
    out
}

/// The wire form of `Value { raw_bytes }`.
pub fn bytes_value(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field_length(bytes.len()));
    put_field(&mut out, FIELD_1, bytes.len());
    out.extend_from_slice(bytes);
    out
}

/// Bytes that [`put_integer_value`] writes.
pub const fn integer_value_length(integer: i64) -> usize {
    1 + varint_length(integer as u64)
}

/// Appends the wire form of `Value { integer }`.
pub fn put_integer_value(out: &mut Vec<u8>, integer: i64) {
    out.push(VALUE_INTEGER);
    put_varint(out, integer as u64);
}

/// Bytes that [`put_timestamp_value`] writes.
pub fn timestamp_value_length(time: Timestamp) -> usize {
    field_length(timestamp(time).1)
}

/// Appends the wire form of `Value { timestamp }`.
pub fn put_timestamp_value(out: &mut Vec<u8>, time: Timestamp) {
    let (content, length) = timestamp(time);
    put_field(out, FIELD_2, length);
    out.extend_from_slice(&content[..length]);
}

/// The wire form of a `Timestamp`, and its length; a zero part is left out, as proto3 has it.
#[inline]
pub fn timestamp(time: Timestamp) -> ([u8; 18], usize) {
    let mut out = [0; 18];
    let mut at = 0;
    for (tag, mut value) in [(SECONDS, time.seconds as u64), (NANOS, u64::from(time.nanos))] {
        if value == 0 {
            continue;
        }
        out[at] = tag;
        at += 1;
        while value >= 0x80 {
            out[at] = value as u8 | 0x80;
            value >>= 7;
            at += 1;
        }
        out[at] = value as u8;
        at += 1;
    }
    (out, at)
}

/// Reads a varint from the front of `bytes`: its value and what follows it.
pub fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7F) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn varints_are_as_long_as_promised_and_read_back() {
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]).chain([u64::MAX]);
        for value in edges {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_length(value), "{value}");
            assert_eq!(out.len(), prost::length_delimiter_len(value as usize).max(1), "{value}");
            assert_eq!(take_varint(&out), Some((value, &[][..])));
        }
        assert_eq!(take_varint(&[0x80; 11]), None);
        assert_eq!(take_varint(&[0x80]), None);
    }

    #[test]
    fn timestamps_are_what_prost_writes() {
        for (seconds, nanos) in
            [(0, 0), (1, 0), (0, 1), (-1, 999_999_999), (1_796_000_000, 127), (i64::MAX, 128)]
        {
            let mut ours = Vec::new();
            put_timestamp_value(&mut ours, Timestamp { seconds, nanos });
            assert_eq!(ours.len(), timestamp_value_length(Timestamp { seconds, nanos }));
            let kind = crate::proto::event::value::Kind::Timestamp(prost_types::Timestamp {
                seconds,
                nanos: nanos as i32,
            });
            assert_eq!(ours, crate::proto::event::Value { kind: Some(kind) }.encode_to_vec());
        }
    }
}
