//! One line of the dead-letter file: how it is written, and how `load` reads it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::{DateTime, SecondsFormat};
use prost::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::Letter;
use crate::batch::events_in;
use crate::proto::event::EventWrapper;
use crate::proto::event::event_wrapper::Event;
use crate::proto::event::value::Kind;
use crate::push::status_name;
use crate::receiver::event_to_json;

/// The line's fields; docs/delivery.md says what each holds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    time: Option<String>,
    reason: String,
    code: Option<String>,
    message: String,
    event: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    datagram: Option<String>,
    /// Only of an event that cannot be decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoded: Option<String>,
}

/// A line for each event of a letter.
pub(super) fn lines(letter: &Letter) -> impl Iterator<Item = Vec<u8>> {
    events_in(&letter.body).map(move |event| {
        let row = Row::new(letter, event);
        // It fails for no value that a row can hold.
        let mut line = serde_json::to_vec(&row).unwrap_or_default();
        line.push(b'\n');
        line
    })
}

/// The datagram that a line of a corpus stands for: a dead letter's, or the line itself. None for a dead letter without
/// one, such as a metric's.
pub(crate) fn replayed(line: &[u8]) -> Option<Vec<u8>> {
    match serde_json::from_slice::<Row>(line) {
        Ok(row) => BASE64.decode(row.datagram?).ok(),
        Err(_) => Some(line.to_vec()),
    }
}

impl Row {
    fn new(letter: &Letter, bytes: &[u8]) -> Self {
        let decoded = EventWrapper::decode(bytes);
        let time = DateTime::from_timestamp(letter.time.seconds, letter.time.nanos);
        Self {
            time: time.map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true)),
            reason: letter.reason.reason().to_owned(),
            code: letter.code.map(status_name),
            message: letter.message.clone(),
            event: decoded.as_ref().map_or(Json::Null, event_to_json),
            datagram: decoded.as_ref().ok().and_then(datagram).map(|bytes| BASE64.encode(bytes)),
            encoded: decoded.is_err().then(|| BASE64.encode(bytes)),
        }
    }
}

/// What came on the wire, or its message where that was not kept.
fn datagram(event: &EventWrapper) -> Option<&[u8]> {
    let Some(Event::Log(log)) = &event.event else { return None };
    ["raw", "message"].iter().find_map(|name| match &log.fields.get(*name)?.kind {
        Some(Kind::RawBytes(bytes)) => Some(&bytes[..]),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::batch::made_of;
    use crate::books::Rejected;
    use crate::datagram::Timestamp;
    use crate::proto::event::{Log, Value};
    use crate::proto::vector::PushEventsRequest;

    const TIME: Timestamp = Timestamp { seconds: 1_796_000_000, nanos: 5_000_000 };

    fn rows(request: &[u8], events: u64) -> Vec<String> {
        let letter = Letter {
            time: TIME,
            reason: Rejected::DataLoss,
            code: Some(Code::DataLoss),
            message: "Delivery failed".to_owned(),
            body: made_of(request, events, TIME).body,
            events,
        };
        lines(&letter).map(|line| String::from_utf8(line).unwrap()).collect()
    }

    fn log(fields: &[(&str, &[u8])]) -> EventWrapper {
        let value = |bytes: &[u8]| Value { kind: Some(Kind::RawBytes(bytes.to_vec().into())) };
        let fields = fields.iter().map(|(name, bytes)| ((*name).to_owned(), value(bytes))).collect();
        EventWrapper { event: Some(Event::Log(Log { fields, value: None })) }
    }

    #[test]
    fn a_line_tells_why_and_gives_the_datagram_back() {
        let events = vec![log(&[("message", b"caf\xe9\n")]), log(&[("message", b"b"), ("raw", b"<1>b")])];
        let rows = rows(&PushEventsRequest { events }.encode_to_vec(), 2);
        assert_eq!(
            rows[0],
            "{\"time\":\"2026-11-30T00:53:20.005Z\",\"reason\":\"data_loss\",\"code\":\"DATA_LOSS\",\
             \"message\":\"Delivery failed\",\"event\":{\"message\":\"caf\u{fffd}\\n\"},\"datagram\":\"Y2Fm6Qo=\"}\n"
        );
        let datagrams: Vec<_> = rows.iter().map(|row| replayed(row.as_bytes()).unwrap()).collect();
        assert_eq!(datagrams, [&b"caf\xe9\n"[..], b"<1>b"]);
    }

    #[test]
    fn an_event_that_is_no_event_is_kept_as_it_was() {
        let rows = rows(&[0x0A, 2, 0xFF, 0xFF], 1);
        assert!(rows[0].contains(r#""event":null,"encoded":"//8=""#), "{rows:?}");
        assert_eq!(replayed(rows[0].as_bytes()), None);
    }

    #[test]
    fn any_other_line_is_a_datagram_itself() {
        for line in [&b"<1>hello"[..], b"{\"reason\":\"x\"}", b"{\"message\":\"a\",\"event\":1}", b"\xff"] {
            assert_eq!(replayed(line).as_deref(), Some(line));
        }
    }
}
