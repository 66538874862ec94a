//! A batch taken apart: into halves, or into its events.

use super::{Batch, PREFIX, open};
use crate::encode::wire::{FIELD_1, take_varint};

impl Batch {
    /// The batch as two of about half its events, in order; none when it has a single event.
    pub fn halves(&self) -> Option<(Self, Self)> {
        if self.events < 2 {
            return None;
        }
        let first = self.events / 2;
        let mut rest = &self.body[PREFIX..];
        for _ in 0..first {
            rest = take_event(rest)?.1;
        }
        let middle = self.body.len() - rest.len();
        let half = |range: &[u8], events| {
            let mut body = Vec::with_capacity(PREFIX + range.len());
            body.extend_from_slice(&[0; PREFIX]);
            body.extend_from_slice(range);
            self.with_body(open::finish(body), events)
        };
        Some((half(&self.body[PREFIX..middle], first), half(&self.body[middle..], self.events - first)))
    }
}

/// The events of a request's body, each as it is on the wire: an `EventWrapper`.
pub fn events_in(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = body.get(PREFIX..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (event, after) = take_event(rest)?;
        rest = after;
        Some(event)
    })
}

/// The first event of a `PushEventsRequest`, and what follows it.
fn take_event(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&FIELD_1, rest) = bytes.split_first()? else { return None };
    let (length, rest) = take_varint(rest)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use prost::Message;

    use super::*;
    use crate::batch::{Closed, Limits, OpenBatch, Pool};
    use crate::datagram::{Datagram, Timestamp};
    use crate::encode::{Shape, SocketEncoder};
    use crate::proto::event::EventWrapper;
    use crate::proto::vector::PushEventsRequest;

    fn batch(events: usize) -> Batch {
        let limits = Limits { max_bytes: 1 << 20, max_events: 1_000, timeout: Duration::from_secs(1) };
        let mut open = OpenBatch::new(limits, Pool::new(1 << 20, 1));
        let mut encoder = SocketEncoder::new(&Shape::default());
        for i in 0..events {
            let payload = vec![i as u8; i * 7 % 300];
            let peer = "192.0.2.1:514".parse().unwrap();
            let datagram = Datagram { payload: &payload, peer, received: None, truncated: false };
            let time = Timestamp { seconds: 1, nanos: 2 };
            open.push(Instant::now(), time, |out| encoder.encode(out, &datagram, time, None, b""));
        }
        open.close(Closed::Stop).unwrap()
    }

    fn events(batch: &Batch) -> Vec<EventWrapper> {
        let events = PushEventsRequest::decode(&batch.body[PREFIX..]).unwrap().events;
        assert_eq!(events.len() as u64, batch.events);
        let length = u32::from_be_bytes(batch.body[1..PREFIX].try_into().unwrap());
        assert_eq!(length as usize, batch.body.len() - PREFIX);
        events
    }

    #[test]
    fn halves_hold_the_same_events_in_order_down_to_one() {
        for count in 2..60 {
            let whole = batch(count);
            let (left, right) = whole.halves().unwrap();
            assert!(left.events.abs_diff(right.events) <= 1);
            assert_eq!([events(&left), events(&right)].concat(), events(&whole));
            let each: Vec<_> =
                events_in(&whole.body).map(|event| EventWrapper::decode(event).unwrap()).collect();
            assert_eq!(each, events(&whole));
        }
        assert!(batch(1).halves().is_none());
    }
}
