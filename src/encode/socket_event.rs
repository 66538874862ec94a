//! The event that Vector's `socket` source (mode `udp`) makes of a datagram.

use std::net::SocketAddr;

use super::{LogWriter, wire};
use crate::datagram::{Datagram, Timestamp};

/// Bytes that the timestamp and the message's key and lengths take.
const REST: usize = 44;

/// Writes `{ message, host, port, source_type: "socket", timestamp }`.
///
/// What is the same for every datagram of a peer is encoded once and copied: one flow is the common case.
pub struct SocketEncoder {
    peer: Option<SocketAddr>,
    /// The entries `host`, `port` and `source_type` of `peer`.
    peer_entries: Vec<u8>,
}

impl Default for SocketEncoder {
    fn default() -> Self {
        Self { peer: None, peer_entries: Vec::with_capacity(128) }
    }
}

impl SocketEncoder {
    /// Appends one `events` field of a `PushEventsRequest` to `out`.
    pub fn encode(&mut self, out: &mut Vec<u8>, datagram: &Datagram<'_>, received: Timestamp) {
        if self.peer != Some(datagram.peer) {
            self.remember(datagram.peer);
        }
        let payload = datagram.payload;
        let mut log = LogWriter::begin(out, self.peer_entries.len() + payload.len() + REST);
        log.entries(&self.peer_entries);
        log.timestamp("timestamp", received);
        log.bytes("message", payload);
        log.finish();
    }

    fn remember(&mut self, peer: SocketAddr) {
        self.peer_entries.clear();
        let host = peer.ip().to_string();
        self.peer_entries.extend(wire::entry("host", &wire::bytes_value(host.as_bytes())));
        let mut port = Vec::new();
        wire::put_integer_value(&mut port, i64::from(peer.port()));
        self.peer_entries.extend(wire::entry("port", &port));
        self.peer_entries.extend(wire::entry("source_type", &wire::bytes_value(b"socket")));
        self.peer = Some(peer);
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

    fn value(kind: Kind) -> Value {
        Value { kind: Some(kind) }
    }

    fn expected(datagram: &Datagram<'_>, time: Timestamp) -> Log {
        let time = prost_types::Timestamp { seconds: time.seconds, nanos: time.nanos as i32 };
        let bytes = |bytes: &[u8]| value(Kind::RawBytes(bytes.to_vec().into()));
        let fields = BTreeMap::from([
            ("message".to_owned(), bytes(datagram.payload)),
            ("host".to_owned(), bytes(datagram.peer.ip().to_string().as_bytes())),
            ("port".to_owned(), value(Kind::Integer(datagram.peer.port().into()))),
            ("source_type".to_owned(), bytes(b"socket")),
            ("timestamp".to_owned(), value(Kind::Timestamp(time))),
        ]);
        Log { fields, value: None }
    }

    #[test]
    fn prost_reads_what_was_written_for_every_length_and_peer() {
        let payload: Vec<u8> = (0..65_507u32).map(|i| i as u8).collect();
        let peers = ["192.0.2.1:514", "192.0.2.1:65535", "[2001:db8::1]:1", "0.0.0.0:0"];
        let lengths = (0..300).chain([16_000, 16_383, 16_384, 65_507]);
        let time = Timestamp { seconds: 1_796_000_000, nanos: 123_456_789 };

        let mut encoder = SocketEncoder::default();
        let mut out = Vec::new();
        let mut logs = Vec::new();
        for (length, peer) in lengths.zip(peers.iter().cycle()) {
            let peer = peer.parse().unwrap();
            let datagram = Datagram { payload: &payload[..length], peer, received: None, truncated: false };
            let before = out.len();
            encoder.encode(&mut out, &datagram, time);
            assert!(out.len() - before <= length + MAX_EVENT_OVERHEAD);
            logs.push(expected(&datagram, time));
        }

        let request = PushEventsRequest::decode(&out[..]).unwrap();
        assert_eq!(request.encoded_len(), out.len(), "our lengths are the shortest ones");
        let decoded: Vec<_> = request.events.into_iter().map(|wrapper| wrapper.event.unwrap()).collect();
        assert_eq!(decoded, logs.into_iter().map(Event::Log).collect::<Vec<_>>());
    }
}
