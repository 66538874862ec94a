//! The event that Vector's `syslog` source makes of a message.

use std::borrow::Cow;
use std::collections::BTreeMap;

use syslog_loose::{ProcId, StructuredElement};

use super::shape::{PeerEntries, put_text};
use super::{LogWriter, Shape};
use crate::datagram::{Datagram, Timestamp};
use crate::parse::Parts;

/// Bytes that keys, lengths and the fields of fixed size take.
const REST: usize = 240;

/// Writes `{ message, timestamp, hostname, severity, facility, version, appname, msgid, procid, one object per
/// structured-data id, host, source_ip, source_type: "syslog" }`, each where it is known.
///
/// A structured-data id may be named like one of these. Then Vector's source has one overwrite the other, in a
/// certain order; here they are written in that order, since of two entries with one key the last counts.
pub struct SyslogEncoder {
    shape: Shape,
    peer: PeerEntries,
    fields: Vec<u8>,
}

impl SyslogEncoder {
    /// An encoder for events of this shape.
    pub fn new(shape: &Shape) -> Self {
        let mut fields = Vec::new();
        shape.fields.iter().for_each(|(key, value)| put_text(&mut fields, key, value));
        Self { shape: shape.clone(), peer: PeerEntries::new(), fields }
    }

    /// Appends one `events` field of a `PushEventsRequest` to `out`.
    pub fn encode(
        &mut self,
        out: &mut Vec<u8>,
        datagram: &Datagram<'_>,
        received: Timestamp,
        parts: &Parts<'_>,
    ) {
        let shape = &self.shape;
        let (ip, source_ip) = self.peer.of(datagram.peer, |entries, ip| put_text(entries, "source_ip", ip));
        let mut log =
            LogWriter::begin(out, datagram.payload.len() + source_ip.len() + self.fields.len() + REST);
        log.bytes("source_type", b"syslog");
        put_header(&mut log, parts);
        let overwritten = put_structured_data(&mut log, &parts.structured_data);
        if !shape.host_key.is_empty() {
            let host = overwritten.host.as_deref().or(parts.hostname).unwrap_or(ip);
            log.bytes(&shape.host_key, host.as_bytes());
        }
        log.entries(source_ip);
        let device_time = parts.timestamp.filter(|_| !overwritten.timestamp);
        log.timestamp("timestamp", device_time.unwrap_or(received));
        if let Some(error) = parts.error {
            log.bytes("parse_error", error.reason().as_bytes());
        }
        if shape.keep_raw {
            log.bytes("raw", datagram.payload);
        }
        log.entries(&self.fields);
        log.finish();
    }
}

fn put_header(log: &mut LogWriter<'_>, parts: &Parts<'_>) {
    log.bytes("message", parts.message);
    for (key, text) in parts.texts() {
        if let Some(text) = text {
            log.bytes(key, text.as_bytes());
        }
    }
    if let Some(version) = parts.version {
        log.integer("version", i64::from(version));
    }
    match &parts.procid {
        Some(ProcId::PID(pid)) => log.integer("procid", i64::from(*pid)),
        Some(ProcId::Name(name)) => log.bytes("procid", name.as_bytes()),
        None => {}
    }
}

/// What structured data did to fields that the source reads afterwards.
#[derive(Default)]
struct Overwritten {
    timestamp: bool,
    host: Option<String>,
}

fn put_structured_data(log: &mut LogWriter<'_>, elements: &[StructuredElement<&str>]) -> Overwritten {
    let mut overwritten = Overwritten::default();
    for element in elements {
        log.object(element.id, || element.params.iter().map(|(name, value)| (*name, unescape(value))));
        match element.id {
            "timestamp" => overwritten.timestamp = true,
            // The source takes whatever is called `hostname` by then for the host, an object as JSON.
            "hostname" => {
                let object: BTreeMap<_, _> = element.params().collect();
                overwritten.host = serde_json::to_string(&object).ok();
            }
            _ => {}
        }
    }
    overwritten
}

/// A parameter's value without its escapes (RFC 5424, 6.3.3), as `syslog_loose` reads them: `\"`, `\]` and `\\`, and `\n`
/// for a line feed; a backslash before anything else is one.
pub(crate) fn unescape(value: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', value.as_bytes()).is_none() {
        return Cow::Borrowed(value);
    }
    let one = StructuredElement { id: "", params: vec![("", value)] };
    Cow::Owned(one.params().next().map(|(_, value)| value).unwrap_or_default())
}
