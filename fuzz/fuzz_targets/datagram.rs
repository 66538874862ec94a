//! Any datagram becomes one event that Vector can decode: no panic, UTF-8 keys, times in range, nothing lost.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use sluicegate::datagram::{Datagram, Timestamp};
use sluicegate::parse::{EventMaker, Mode, Options};
use sluicegate::proto::event::event_wrapper::Event;
use sluicegate::proto::event::{Value, value::Kind};
use sluicegate::proto::vector::PushEventsRequest;

fn check(value: &Value) {
    match value.kind.as_ref().expect("a value has a kind") {
        Kind::Timestamp(time) => {
            assert!((0..1_000_000_000).contains(&time.nanos));
            // The range of chrono, beyond which Vector's decoder panics.
            assert!((-8_334_601_228_800..=8_210_266_876_799).contains(&time.seconds));
        }
        Kind::Map(map) => map.fields.values().for_each(check),
        _ => {}
    }
}

fuzz_target!(|payload: &[u8]| {
    if payload.is_empty() {
        return;
    }
    let mut options = Options { mode: Mode::Syslog, timezone: "Europe/Berlin".parse().unwrap(), ..Options::default() };
    options.shape.keep_raw = true;
    let peer = "192.0.2.1:514".parse().unwrap();
    let datagram = Datagram { payload, peer, received: None, truncated: false };
    let mut encoded = Vec::new();
    EventMaker::new(&options).make(&datagram, Timestamp { seconds: 1_796_000_000, nanos: 0 }, &mut encoded);
    let request = PushEventsRequest::decode(&encoded[..]).expect("what is sent can be decoded");
    let [event] = &request.events[..] else { panic!("one datagram, one event") };
    let Some(Event::Log(log)) = &event.event else { panic!("a log") };
    log.fields.values().for_each(check);
    let fields = ["message", "host", "source_type", "timestamp", "source_ip", "raw"];
    assert!(fields.iter().all(|field| log.fields.contains_key(*field)));
});
