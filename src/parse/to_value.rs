//! Events as VRL's values, for programs: the same fields that the encoders write.

use bytes::Bytes;
use chrono::DateTime;
use syslog_loose::ProcId;
use vrl::value::{ObjectMap, Value};

use super::parts::{ParseError, Parts};
use crate::datagram::{Datagram, Timestamp};
use crate::encode::{Sequence, Shape};

/// The event of Vector's `socket` source.
pub(super) fn socket_event(
    shape: &Shape,
    datagram: &Datagram<'_>,
    received: Timestamp,
    sequence: &Sequence,
) -> Value {
    let mut event = ObjectMap::new();
    put(&mut event, "message", bytes(datagram.payload));
    put(&mut event, &shape.host_key, datagram.peer.ip().to_string().into());
    put(&mut event, &shape.port_key, Value::Integer(datagram.peer.port().into()));
    put(&mut event, "source_type", "socket".into());
    put(&mut event, "timestamp", time(received));
    put(&mut event, &shape.sequence_key, bytes(sequence.text()));
    common(&mut event, shape, datagram, None);
    Value::Object(event)
}

/// The event of Vector's `syslog` source, with one overwriting the other in that source's order.
pub(super) fn syslog_event(
    shape: &Shape,
    datagram: &Datagram<'_>,
    received: Timestamp,
    parts: &Parts<'_>,
    sequence: &Sequence,
) -> Value {
    let mut event = ObjectMap::new();
    put(&mut event, "source_type", "syslog".into());
    put(&mut event, "message", bytes(parts.message));
    for (key, text) in parts.texts() {
        if let Some(text) = text {
            put(&mut event, key, text.into());
        }
    }
    if let Some(version) = parts.version {
        put(&mut event, "version", Value::Integer(version.into()));
    }
    match &parts.procid {
        Some(ProcId::PID(pid)) => put(&mut event, "procid", Value::Integer((*pid).into())),
        Some(ProcId::Name(name)) => put(&mut event, "procid", (*name).into()),
        None => {}
    }
    let mut device_time = parts.timestamp;
    for element in &parts.structured_data {
        let params: ObjectMap =
            element.params().map(|(name, value)| ((*name).into(), value.into())).collect();
        put(&mut event, element.id, Value::Object(params));
        device_time = device_time.filter(|_| element.id != "timestamp");
    }
    let ip = datagram.peer.ip().to_string();
    let host =
        event.get("hostname").map_or_else(|| Value::from(ip.as_str()), |host| host.coerce_to_bytes().into());
    put(&mut event, &shape.host_key, host);
    put(&mut event, "source_ip", ip.into());
    put(&mut event, "timestamp", time(device_time.unwrap_or(received)));
    put(&mut event, &shape.sequence_key, bytes(sequence.text()));
    common(&mut event, shape, datagram, parts.error);
    Value::Object(event)
}

fn common(event: &mut ObjectMap, shape: &Shape, datagram: &Datagram<'_>, error: Option<ParseError>) {
    if let Some(error) = error {
        put(event, "parse_error", error.reason().into());
    }
    if shape.keep_raw {
        put(event, "raw", bytes(datagram.payload));
    }
    for (key, value) in &shape.fields {
        put(event, key, value.as_str().into());
    }
}

fn put(event: &mut ObjectMap, key: &str, value: Value) {
    if !key.is_empty() {
        event.insert(key.into(), value);
    }
}

fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(Bytes::copy_from_slice(bytes))
}

fn time(time: Timestamp) -> Value {
    DateTime::from_timestamp(time.seconds, time.nanos).map_or(Value::Null, Value::Timestamp)
}
