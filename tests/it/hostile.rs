//! Datagrams made to hurt a parser: each becomes one event that decodes, within a second for all of them.

use prost::Message;
use sluicegate::datagram::{Datagram, Timestamp};
use sluicegate::parse::{EventMaker, Mode, Options};
use sluicegate::proto::event::{Log, event_wrapper::Event, value::Kind};
use sluicegate::proto::vector::PushEventsRequest;

fn log(payload: &[u8]) -> Log {
    let options = Options { mode: Mode::Syslog, timezone: "UTC".parse().unwrap(), ..Options::default() };
    let datagram =
        Datagram { payload, peer: "192.0.2.1:514".parse().unwrap(), received: None, truncated: false };
    let mut encoded = Vec::new();
    EventMaker::new(&options).make(&datagram, Timestamp { seconds: 1_796_000_000, nanos: 0 }, &mut encoded);
    let request = PushEventsRequest::decode(&encoded[..]).expect("it decodes");
    match request.events.into_iter().next().unwrap().event {
        Some(Event::Log(log)) => log,
        other => panic!("{other:?}"),
    }
}

fn filled(head: &str, unit: &str, length: usize) -> Vec<u8> {
    let mut out = head.as_bytes().to_vec();
    while out.len() + unit.len() <= length {
        out.extend_from_slice(unit.as_bytes());
    }
    out
}

#[test]
fn sixty_four_kilobytes_of_anything() {
    let heads = [
        "",
        "<13>",
        "<13>1 2026-10-11T22:14:15Z h a - - ",
        "<13>Oct 11 22:14:15 h a: ",
        "<189>1: ",
        "<134>id=1 ",
        "1 <1>",
        "\u{FEFF}",
    ];
    let units = [
        "[",
        "]",
        "\\",
        "\"",
        "[a b=\"c\"]",
        "[a b=\"",
        "\\\"",
        " ",
        ": ",
        "a: ",
        "1: ",
        "%A-1-",
        "é",
        "\0",
        "<1>",
        "7 <1>abc",
        "=",
        "k=\"v\" ",
        "-",
        "|",
        "\n",
        "*",
    ];
    for head in heads {
        for unit in units {
            let payload = filled(head, unit, 65_507);
            let log = log(&payload);
            assert!(log.fields.contains_key("message"), "{head:?} {unit:?}");
        }
    }
    for byte in 0..=255u8 {
        log(&vec![byte; 65_507]);
    }
}

#[test]
fn thousands_of_structured_data_elements_are_all_there() {
    let elements: String = (0..4_000).map(|i| format!("[e{i} k=\"{i}\"]")).collect();
    let log = log(format!("<13>1 2026-10-11T22:14:15Z h a - - {elements} text").as_bytes());
    let is_object = |i| matches!(log.fields[&format!("e{i}")].kind, Some(Kind::Map(_)));
    assert!((0..4_000).all(is_object));
}

#[test]
fn keys_are_utf_8_whatever_is_sent() {
    let log = log(b"<13>1 2026-10-11T22:14:15Z h a - - [\xFF\xFEid \xC3name=\"\xE9\"] text");
    assert!(log.fields.keys().any(|key| key.contains('\u{FFFD}')), "{log:?}");
}

#[test]
fn times_at_the_edge_of_what_vector_takes() {
    for (date, seconds) in [
        ("2016-12-31T23:59:60Z", 1_483_228_800),
        ("9999-12-31T23:59:59.999999999Z", 253_402_300_799),
        ("0000-01-01T00:00:00Z", -62_167_219_200),
        ("1969-12-31T23:59:59.5Z", -1),
    ] {
        let log = log(format!("<13>1 {date} h a - - - text").as_bytes());
        let Some(Kind::Timestamp(time)) = &log.fields["timestamp"].kind else { panic!("{log:?}") };
        assert_eq!(time.seconds, seconds, "{date}");
        assert!((0..1_000_000_000).contains(&time.nanos), "{date}");
    }
}
