//! VRL's values to the wire.

use vrl::value::Value;

use super::LogWriter;
use super::wire::{self, FIELD_1, FIELD_2, field_length, put_field};
use crate::datagram::Timestamp;

const VALUE_FLOAT: u8 = 0x29;
const VALUE_BOOLEAN: u8 = 0x30;
const VALUE_MAP: u8 = 0x3A;
const VALUE_ARRAY: u8 = 0x42;
const VALUE_NULL: u8 = 0x48;
/// Tag of `Log.value`.
const LOG_VALUE: u8 = FIELD_2;

/// Vector's decoder takes 30 levels of objects and refuses the whole request at 60.
const MAX_DEPTH: usize = 30;

/// Appends one `events` field: an object's fields, or anything else as the log's `value`.
pub fn encode_value(out: &mut Vec<u8>, event: &Value) {
    let mut log = LogWriter::begin(out, 1_024);
    match event {
        Value::Object(fields) => {
            for (key, value) in fields {
                log.value(key, length(value, 1), |out| put(out, value, 1));
            }
        }
        other => log.root(LOG_VALUE, length(other, 1), |out| put(out, other, 1)),
    }
    log.finish();
}

/// Bytes that [`put`] writes.
fn length(value: &Value, depth: usize) -> usize {
    match value {
        Value::Bytes(bytes) => field_length(bytes.len()),
        Value::String(text) => field_length(text.len()),
        Value::Regex(regex) => field_length(regex.as_str().len()),
        Value::Integer(integer) => wire::integer_value_length(*integer),
        Value::Float(float) if float.is_finite() => 9,
        Value::Boolean(_) | Value::Null | Value::Float(_) => 2,
        Value::Timestamp(time) => wire::timestamp_value_length(Timestamp::from(time)),
        Value::Object(_) | Value::Array(_) if depth > MAX_DEPTH => field_length(value.to_string().len()),
        Value::Object(_) | Value::Array(_) => field_length(children_length(value, depth)),
    }
}

fn children_length(value: &Value, depth: usize) -> usize {
    let entry =
        |key: &str, value| field_length(field_length(key.len()) + field_length(length(value, depth + 1)));
    match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| entry(key, value)).sum(),
        Value::Array(items) => items.iter().map(|item| field_length(length(item, depth + 1))).sum(),
        _ => 0,
    }
}

/// Appends the wire form of a `Value`. What is nested deeper than Vector takes goes as JSON text; a float that is no
/// number, at which Vector's decoder panics, goes as null.
fn put(out: &mut Vec<u8>, value: &Value, depth: usize) {
    match value {
        Value::Bytes(bytes) => put_bytes(out, bytes),
        Value::String(text) => put_bytes(out, text.as_bytes()),
        Value::Regex(regex) => put_bytes(out, regex.as_str().as_bytes()),
        Value::Integer(integer) => wire::put_integer_value(out, *integer),
        Value::Float(float) if float.is_finite() => {
            out.push(VALUE_FLOAT);
            out.extend_from_slice(&float.to_le_bytes());
        }
        Value::Boolean(boolean) => out.extend_from_slice(&[VALUE_BOOLEAN, u8::from(*boolean)]),
        Value::Null | Value::Float(_) => out.extend_from_slice(&[VALUE_NULL, 0]),
        Value::Timestamp(time) => wire::put_timestamp_value(out, Timestamp::from(time)),
        Value::Object(_) | Value::Array(_) if depth > MAX_DEPTH => {
            put_bytes(out, value.to_string().as_bytes());
        }
        Value::Object(fields) => {
            put_field(out, VALUE_MAP, children_length(value, depth));
            for (key, value) in fields {
                wire::put_entry_head(out, key, length(value, depth + 1));
                put(out, value, depth + 1);
            }
        }
        Value::Array(items) => {
            put_field(out, VALUE_ARRAY, children_length(value, depth));
            for item in items {
                put_field(out, FIELD_1, length(item, depth + 1));
                put(out, item, depth + 1);
            }
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_field(out, FIELD_1, bytes.len());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::proto::vector::PushEventsRequest;
    use crate::receiver::event_to_json;

    fn shown(event: Value) -> String {
        let mut out = Vec::new();
        encode_value(&mut out, &event);
        let request = PushEventsRequest::decode(&out[..]).unwrap();
        event_to_json(&request.events[0]).to_string()
    }

    fn json(text: &str) -> Value {
        serde_json::from_str::<serde_json::Value>(text).unwrap().into()
    }

    #[test]
    fn objects_and_anything_else_arrive_as_they_are() {
        let text = r#"{"a":{"b":[1,-2.5,true,null,"text",{"c":[]}],"d":{}},"e":9223372036854775807}"#;
        assert_eq!(shown(json(text)), text);
        for root in ["[1,2]", "\"text\"", "7", "null", "{}"] {
            assert_eq!(shown(json(root)), root);
        }
    }

    #[test]
    fn deep_nesting_is_cut_where_vector_would_refuse() {
        let mut value = json("1");
        for _ in 0..200 {
            value = Value::Object([("k".into(), value)].into());
        }
        let shown = shown(value);
        assert_eq!(shown.matches("{\"k\":").count(), 1 + MAX_DEPTH, "the root and what is in it");
        assert_eq!(shown.matches("k").count(), 200, "nothing is lost");
    }

    #[test]
    fn floats_without_a_value_are_null() {
        let infinite = Value::from_f64_or_zero(f64::INFINITY);
        assert_eq!(shown(Value::Object([("f".into(), infinite)].into())), r#"{"f":null}"#);
    }
}
