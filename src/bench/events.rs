//! A sink of Vector's protocol that only counts: what our own output is counted with, at about the cost of counting lines.
//!
//! A [`receiver`](crate::receiver) takes every event apart, which costs more than all the rest; a comparison with a peer whose lines
//! are merely counted would be one of sinks.

use std::io;
use std::net::SocketAddr;

use bytes::{Buf, Bytes};
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use memchr::memmem;
use prost::encoding::{WireType, decode_key, decode_varint};
use tokio::net::{TcpListener, TcpStream};

use super::{Counted, Tally};
use crate::load::Marker;

/// A stream's and a connection's window, bytes: as hyper has it, and so Vector.
const WINDOW: u32 = 1 << 20;

/// An uncompressed message without a field (gRPC over HTTP/2, "Length-Prefixed-Message"): the answer to everything.
const EMPTY: &[u8] = &[0; 5];

/// Counts the events of every connection until the runtime ends; the function that is returned gives what came so far.
///
/// # Errors
/// When the address cannot be had.
pub async fn count_events(address: SocketAddr) -> io::Result<impl Fn() -> Counted> {
    let listener = TcpListener::bind(address).await?;
    let tally = Tally::default();
    let shared = tally.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // It ends with its peer.
            tokio::spawn(serve(stream, shared.clone()));
        }
    });
    Ok(move || tally.counted())
}

async fn serve(stream: TcpStream, tally: Tally) -> Result<(), h2::Error> {
    let mut builder = Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let mut connection = builder.handshake::<_, Bytes>(stream).await?;
    while let Some(request) = connection.accept().await {
        let (request, respond) = request?;
        tokio::spawn(answer(request.into_body(), respond, tally.clone()));
    }
    Ok(())
}

async fn answer(
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
    tally: Tally,
) -> Result<(), h2::Error> {
    let mut whole = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        whole.extend_from_slice(&chunk);
    }
    if count(&whole, &tally).is_none() {
        respond.send_reset(Reason::PROTOCOL_ERROR);
        return Ok(());
    }
    let mut response = Response::new(());
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    let mut stream = respond.send_response(response, false)?;
    stream.send_data(Bytes::from_static(EMPTY), false)?;
    let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
    stream.send_trailers(HeaderMap::from_iter([status]))
}

/// Counts the events of a request, `PushEventsRequest` or empty; none where it is neither, or compressed.
fn count(request: &[u8], tally: &Tally) -> Option<()> {
    let (prefix, mut events) = request.split_at_checked(EMPTY.len())?;
    let length = u32::from_be_bytes(prefix[1..].try_into().ok()?);
    if prefix[0] != 0 || length as usize != events.len() {
        return None;
    }
    let mut seen = tally.lock();
    while events.has_remaining() {
        let (1, WireType::LengthDelimited) = decode_key(&mut events).ok()? else { return None };
        let length = usize::try_from(decode_varint(&mut events).ok()?).ok()?;
        let (event, rest) = events.split_at_checked(length)?;
        if let Some(at) = memmem::find(event, Marker::START) {
            seen.numbers.see(&event[at..]);
        }
        seen.events += 1;
        events = rest;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::proto::event::{EventWrapper, Log, Value, event_wrapper::Event, value::Kind};
    use crate::proto::vector::PushEventsRequest;

    fn event(number: u64) -> EventWrapper {
        let message = format!("<1>{} x", Marker { number, of: 9, run: 1, flow: 0 }).into_bytes();
        let value = Value { kind: Some(Kind::RawBytes(message.into())) };
        let log = Log { fields: [("message".to_owned(), value)].into(), ..Log::default() };
        EventWrapper { event: Some(Event::Log(log)) }
    }

    fn framed(body: &[u8]) -> Vec<u8> {
        [&[0][..], &(body.len() as u32).to_be_bytes(), body].concat()
    }

    #[test]
    fn events_are_counted_and_what_is_none_is_refused() {
        let tally = Tally::default();
        let body = PushEventsRequest { events: (0..3).map(event).collect() }.encode_to_vec();
        assert_eq!(count(&framed(&body), &tally), Some(()));
        assert_eq!(count(&framed(b""), &tally), Some(()), "a health check");
        let counted = tally.counted();
        let report = counted.numbers.unwrap();
        assert_eq!((counted.events, report.unique, report.missing), (3, 3, 6));
        let compressed = [&[1][..], &framed(&body)[1..]].concat();
        for bad in [&framed(&body[..40])[..], &framed(&body)[..40], &framed(b"\x10\x01"), &compressed, b""] {
            assert_eq!(count(bad, &tally), None);
        }
    }
}
