//! The event that Vector's `syslog` source makes of a message.

use std::borrow::Cow;
use std::collections::BTreeMap;

use syslog_loose::{ProcId, StructuredElement, SyslogFacility, SyslogSeverity, decompose_pri};

use super::shape::{PeerEntries, put_text};
use super::{LogWriter, Shape};
use crate::datagram::{Datagram, Timestamp};
use crate::parse::Parts;

/// Bytes that keys, lengths and the fields of fixed size take.
const REST: usize = 240;

/// Writes `{ message, timestamp, hostname, severity, facility, version, appname, msgid, procid, one object per
/// structured-data id, host, source_ip, source_type: "syslog" }`, each where it is known.
///
/// What is the same for many messages is encoded once and copied: the fields of a peer, of a PRI, of a host.
///
/// A structured-data id may be named like one of these. Then Vector's source has one overwrite the other, in a
/// certain order; here they are written in that order, since of two entries with one key the last counts.
pub struct SyslogEncoder {
    shape: Shape,
    peer: PeerEntries,
    fields: Vec<u8>,
    /// `severity` and `facility` of each PRI.
    priorities: Vec<Vec<u8>>,
    host: HostEntries,
}

impl SyslogEncoder {
    /// An encoder for events of this shape.
    pub fn new(shape: &Shape) -> Self {
        let mut fields = Vec::new();
        shape.fields.iter().for_each(|(key, value)| put_text(&mut fields, key, value));
        let priorities = (0..=191).map(priority_entries).collect();
        Self {
            shape: shape.clone(),
            peer: PeerEntries::new(),
            fields,
            priorities,
            host: HostEntries::default(),
        }
    }

    /// Appends one `events` field of a `PushEventsRequest` to `out`.
    pub fn encode(
        &mut self,
        out: &mut Vec<u8>,
        datagram: &Datagram<'_>,
        received: Timestamp,
        parts: &Parts<'_>,
        sequence: &[u8],
    ) {
        let shape = &self.shape;
        let (ip, source_ip) = self.peer.of(datagram.peer, |entries, ip| put_text(entries, "source_ip", ip));
        let mut log =
            LogWriter::begin(out, datagram.payload.len() + source_ip.len() + self.fields.len() + REST);
        log.bytes("source_type", b"syslog");
        log.bytes("message", parts.message);
        match (parts.facility, parts.severity) {
            (Some(facility), Some(severity)) => {
                log.entries(&self.priorities[(facility as usize) << 3 | severity as usize]);
            }
            (_, severity) => put_optional(&mut log, "severity", severity.map(SyslogSeverity::as_str)),
        }
        put_header(&mut log, parts);
        let hidden = put_structured_data(&mut log, &parts.structured_data);
        match (&hidden.host, parts.hostname) {
            (None, Some(hostname)) => log.entries(self.host.of(hostname, &shape.host_key)),
            (host, hostname) => {
                if !shape.host_key.is_empty() {
                    log.bytes(&shape.host_key, host.as_deref().or(hostname).unwrap_or(ip).as_bytes());
                }
            }
        }
        log.entries(source_ip);
        let device_time = parts.timestamp.filter(|_| !hidden.timestamp);
        log.timestamp("timestamp", device_time.unwrap_or(received));
        if !shape.sequence_key.is_empty() {
            log.bytes(&shape.sequence_key, sequence);
        }
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

fn priority_entries(priority: u8) -> Vec<u8> {
    let (facility, severity) = decompose_pri(priority);
    let mut out = Vec::new();
    put_text(&mut out, "severity", severity.map_or("", SyslogSeverity::as_str));
    put_text(&mut out, "facility", facility.map_or("", SyslogFacility::as_str));
    out
}

/// The entries of the last host: the messages of one flow are mostly one device's.
#[derive(Default)]
struct HostEntries {
    name: String,
    entries: Vec<u8>,
}

impl HostEntries {
    fn of(&mut self, name: &str, host_key: &str) -> &[u8] {
        if self.entries.is_empty() || self.name != name {
            self.name.clear();
            self.name.push_str(name);
            self.entries.clear();
            put_text(&mut self.entries, "hostname", name);
            put_text(&mut self.entries, host_key, name);
        }
        &self.entries
    }
}

fn put_optional(log: &mut LogWriter<'_>, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        log.bytes(key, text.as_bytes());
    }
}

fn put_header(log: &mut LogWriter<'_>, parts: &Parts<'_>) {
    put_optional(log, "appname", parts.appname);
    put_optional(log, "msgid", parts.msgid);
    put_optional(log, "header", parts.header);
    if let Some(version) = parts.version {
        log.integer("version", i64::from(version));
    }
    match &parts.procid {
        Some(ProcId::PID(pid)) => log.integer("procid", i64::from(*pid)),
        Some(ProcId::Name(name)) => log.bytes("procid", name.as_bytes()),
        None => {}
    }
}

/// What structured data hides of the header, for the source reads it afterwards.
#[derive(Default)]
struct Hidden {
    timestamp: bool,
    host: Option<String>,
}

fn put_structured_data(log: &mut LogWriter<'_>, elements: &[StructuredElement<&str>]) -> Hidden {
    let mut hidden = Hidden::default();
    for element in elements {
        log.object(element.id, || element.params.iter().map(|(name, value)| (*name, unescape(value))));
        match element.id {
            "timestamp" => hidden.timestamp = true,
            // The source takes whatever is called `hostname` by then for the host, an object as JSON.
            "hostname" => {
                let object: BTreeMap<_, _> = element.params().collect();
                hidden.host = serde_json::to_string(&object).ok();
            }
            _ => {}
        }
    }
    hidden
}

/// A parameter's value without its escapes (RFC 5424, 6.3.3), as `syslog_loose` reads them: `\"`, `\]` and `\\`, and `\n`
/// for a line feed; a backslash before anything else is one.
fn unescape(value: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', value.as_bytes()).is_none() {
        return Cow::Borrowed(value);
    }
    let one = StructuredElement { id: "", params: vec![("", value)] };
    Cow::Owned(one.params().next().map(|(_, value)| value).unwrap_or_default())
}
