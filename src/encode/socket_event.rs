//! The event that Vector's `socket` source (mode `udp`) makes of a datagram.

use super::shape::{PeerEntries, put_text};
use super::{LogWriter, Shape, wire};
use crate::datagram::{Datagram, Timestamp};
use crate::parse::ParseError;

/// Bytes that the timestamp and the message's key and lengths take.
const REST: usize = 44;

/// Writes `{ message, host, port, source_type: "socket", timestamp }`.
pub struct SocketEncoder {
    shape: Shape,
    peer: PeerEntries,
}

impl SocketEncoder {
    /// An encoder for events of this shape.
    pub fn new(shape: &Shape) -> Self {
        Self { shape: shape.clone(), peer: PeerEntries::new() }
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Appends one `events` field of a `PushEventsRequest` to `out`.
    pub fn encode(
        &mut self,
        out: &mut Vec<u8>,
        datagram: &Datagram<'_>,
        received: Timestamp,
        error: Option<ParseError>,
        sequence: &[u8],
    ) {
        let shape = &self.shape;
        let (_, entries) = self.peer.of(datagram.peer, |entries, ip| {
            put_text(entries, &shape.host_key, ip);
            if !shape.port_key.is_empty() {
                let mut port = Vec::new();
                wire::put_integer_value(&mut port, i64::from(datagram.peer.port()));
                entries.extend(wire::entry(&shape.port_key, &port));
            }
            put_text(entries, "source_type", "socket");
            shape.fields.iter().for_each(|(key, value)| put_text(entries, key, value));
        });
        let payload = datagram.payload;
        let mut log = LogWriter::begin(out, entries.len() + sequence.len() + payload.len() + REST);
        log.entries(entries);
        log.timestamp("timestamp", received);
        if !shape.sequence_key.is_empty() {
            log.bytes(&shape.sequence_key, sequence);
        }
        if let Some(error) = error {
            log.bytes("parse_error", error.reason().as_bytes());
        }
        if shape.keep_raw {
            log.bytes("raw", payload);
        }
        log.bytes("message", payload);
        log.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message;

    use super::*;
    use crate::encode::MAX_EVENT_OVERHEAD;
    use crate::proto::event::{Log, Value, event_wrapper::Event, value::Kind};
    use crate::proto::vector::PushEventsRequest;

    fn bytes(bytes: &[u8]) -> Value {
        Value { kind: Some(Kind::RawBytes(bytes.to_vec().into())) }
    }

    fn expected(datagram: &Datagram<'_>, time: Timestamp) -> Log {
        let time = prost_types::Timestamp { seconds: time.seconds, nanos: time.nanos as i32 };
        let fields = BTreeMap::from([
            ("message".to_owned(), bytes(datagram.payload)),
            ("host".to_owned(), bytes(datagram.peer.ip().to_string().as_bytes())),
            ("port".to_owned(), Value { kind: Some(Kind::Integer(datagram.peer.port().into())) }),
            ("source_type".to_owned(), bytes(b"socket")),
            ("timestamp".to_owned(), Value { kind: Some(Kind::Timestamp(time)) }),
        ]);
        Log { fields, value: None }
    }

    fn decode(out: &[u8]) -> Vec<Event> {
        let request = PushEventsRequest::decode(out).unwrap();
        assert_eq!(request.encoded_len(), out.len(), "our lengths are the shortest ones");
        request.events.into_iter().map(|wrapper| wrapper.event.unwrap()).collect()
    }

    #[test]
    fn prost_reads_what_was_written_for_every_length_and_peer() {
        let payload: Vec<u8> = (0..65_507u32).map(|i| i as u8).collect();
        let peers = ["192.0.2.1:514", "192.0.2.1:65535", "[2001:db8::1]:1", "0.0.0.0:0"];
        let lengths = (0..300).chain([16_000, 16_383, 16_384, 65_507]);
        let time = Timestamp { seconds: 1_796_000_000, nanos: 123_456_789 };

        let mut encoder = SocketEncoder::new(&Shape::default());
        let mut out = Vec::new();
        let mut logs = Vec::new();
        for (length, peer) in lengths.zip(peers.iter().cycle()) {
            let peer = peer.parse().unwrap();
            let datagram = Datagram { payload: &payload[..length], peer, received: None, truncated: false };
            let before = out.len();
            encoder.encode(&mut out, &datagram, time, None, b"");
            assert!(out.len() - before <= length + MAX_EVENT_OVERHEAD);
            logs.push(expected(&datagram, time));
        }
        assert_eq!(decode(&out), logs.into_iter().map(Event::Log).collect::<Vec<_>>());
    }

    #[test]
    fn names_are_chosen_left_out_and_added() {
        let shape = Shape {
            host_key: String::new(),
            port_key: "peer_port".into(),
            sequence_key: "seq".into(),
            fields: vec![("node".into(), "n1".into())],
            keep_raw: true,
        };
        let peer = "192.0.2.1:514".parse().unwrap();
        let datagram = Datagram { payload: b"x", peer, received: None, truncated: false };
        let mut out = Vec::new();
        SocketEncoder::new(&shape).encode(
            &mut out,
            &datagram,
            Timestamp { seconds: 1, nanos: 0 },
            None,
            b"42",
        );
        let [Event::Log(log)] = &decode(&out)[..] else { panic!() };
        let keys: Vec<_> = log.fields.keys().map(String::as_str).collect();
        assert_eq!(keys, ["message", "node", "peer_port", "raw", "seq", "source_type", "timestamp"]);
        assert_eq!((&log.fields["node"], &log.fields["raw"]), (&bytes(b"n1"), &bytes(b"x")));
        assert_eq!(log.fields["seq"], bytes(b"42"));
    }
}
