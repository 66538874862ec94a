//! `--parse syslog` against VRL's own `parse_syslog`, over generated and mutated messages: no difference but the
//! documented ones.

use std::collections::BTreeMap;

use fastrand::Rng;
use prost::Message;
use serde_json::Value as Json;
use sluicegate::datagram::{Datagram, Timestamp};
use sluicegate::parse::{EventMaker, Mode, Options};
use sluicegate::proto::vector::PushEventsRequest;
use sluicegate::receiver::event_to_json;
use vrl::compiler::runtime::Runtime;
use vrl::compiler::{Program, TargetValue, TimeZone};
use vrl::value::{Secrets, Value};

const MESSAGES: usize = 200_000;

fn ours(maker: &mut EventMaker, payload: &[u8]) -> BTreeMap<String, Json> {
    let peer = "192.0.2.1:514".parse().unwrap();
    let datagram = Datagram { payload, peer, received: None, truncated: false };
    let mut encoded = Vec::new();
    maker.make(&datagram, Timestamp::now(), &mut encoded);
    let request = PushEventsRequest::decode(&encoded[..]).unwrap();
    match event_to_json(&request.events[0]) {
        Json::Object(fields) => fields.into_iter().collect(),
        other => panic!("{other}"),
    }
}

fn vrl(program: &Program, payload: &[u8]) -> Option<BTreeMap<String, Json>> {
    let value = Value::Object([("message".into(), Value::Bytes(payload.to_vec().into()))].into());
    let mut target = TargetValue { value, metadata: Value::Object([].into()), secrets: Secrets::new() };
    let utc = TimeZone::Named("UTC".parse().unwrap());
    Runtime::default().resolve(&mut target, program, &utc).ok()?;
    match serde_json::to_value(&target.value).unwrap() {
        Json::Object(fields) => Some(fields.into_iter().collect()),
        other => panic!("{other}"),
    }
}

fn pick<'a>(random: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[random.usize(..choices.len())]
}

fn generated(random: &mut Rng) -> Vec<u8> {
    let priority =
        pick(random, &["<13>", "<134>", "<191>", "<0>", "", "<192>", "<255>", "<256>", "<1>", "<13> "]);
    let host = pick(random, &["host-1", "192.0.2.1", "fe80::1", "host.example.com", "sw:", "a", "2026", "-"]);
    let app = pick(
        random,
        &["app", "app[12]", "app[w-1]:", "app:", "sshd[1]:", "a/b[3]:", ":", "x[", "CEF:0|a|", "-"],
    );
    let text = pick(
        random,
        &[
            "hello",
            "",
            "[a b=\"c\"] text",
            "- dash",
            "{\"a\":1}",
            " two  blanks ",
            "é ü \u{FEFF}",
            "[x][y z=\"1\"]",
            "k=v",
        ],
    );
    let mut message = if random.bool() {
        let date = pick(
            random,
            &[
                "2026-10-11T22:14:15Z",
                "2026-10-11T22:14:15.123456789+02:00",
                "2026-02-30T00:00:00Z",
                "2026-10-11 22:14:15",
                "2016-06-30T23:59:59.999Z",
            ],
        );
        let rest = pick(
            random,
            &[
                "- - -",
                "12 ID -",
                "- ID47 [ex@1 k=\"v\" k2=\"a\\\"b\\]c\\\\d\\ne\"]",
                "7 - [a@1][b@2 c=\"\"]",
                "x y [ex@1 broken",
                "1 2 [id k=v]",
                "99999999999 - -",
            ],
        );
        let version = pick(random, &["1", "1", "1", "2", "999", "x"]);
        let app = pick(random, &["app", "a:b", "-", "LS-BLUE:rpd"]);
        format!("{priority}{version} {date} {host} {app} {rest} {text}")
    } else {
        let date = pick(
            random,
            &[
                "Oct 11 22:14:15",
                "Jan  1 00:00:00",
                "Dec 31 23:59:59",
                "Feb 30 00:00:00",
                "Oct 11 2026 22:14:15",
                "oct 1 1:2:3",
                "Oct 11 22:14:15:",
                "2026-10-11T22:14:15Z",
                "Okt 11 22:14:15",
                "Oct 11 22:14:61",
            ],
        );
        format!("{priority}{date} {host} {app} {text}")
    }
    .into_bytes();
    for _ in 0..random.usize(..4) {
        mutate(random, &mut message);
    }
    message
}

fn mutate(random: &mut Rng, message: &mut Vec<u8>) {
    if message.is_empty() {
        return;
    }
    let at = random.usize(..message.len());
    match random.u8(..5) {
        0 => drop(message.remove(at)),
        1 => message[at] = *random.choice(b" :[]\"\\=<>-\t\0\xff1a").unwrap(),
        2 => message.insert(at, *random.choice(b" :[]\"\\=<>-\n\xc3\x009Z").unwrap()),
        3 => message.truncate(at),
        _ => message.extend_from_within(at..),
    }
}

/// The documented differences: a `-` for the time is understood here, as in Vector's source; a structured-data id may be
/// named like a field that the source sets.
fn is_documented(payload: &[u8], vrl: Option<&BTreeMap<String, Json>>) -> bool {
    let text = String::from_utf8_lossy(payload);
    let after_priority =
        text.trim().trim_start_matches(|c: char| c == '<' || c == '>' || c.is_ascii_digit()).trim_start();
    match vrl {
        None => after_priority.starts_with('-'),
        Some(fields) => ["host", "source_ip", "source_type", "timestamp"]
            .iter()
            .any(|key| fields.get(*key).is_some_and(Json::is_object)),
    }
}

#[test]
fn nothing_differs_but_what_is_documented() {
    let program = vrl::compiler::compile(". = parse_syslog!(.message)", &vrl::stdlib::all()).unwrap().program;
    let options = Options { mode: Mode::Syslog, timezone: "UTC".parse().unwrap(), ..Options::default() };
    let mut maker = EventMaker::new(&options);
    let mut random = Rng::with_seed(20_261_130);
    let (mut same, mut refused, mut documented) = (0, 0, 0);
    for _ in 0..MESSAGES {
        let payload = generated(&mut random);
        if payload.is_empty() {
            continue;
        }
        let theirs = vrl(&program, &payload);
        let mut fields = ours(&mut maker, &payload);
        if is_documented(&payload, theirs.as_ref()) {
            documented += 1;
            continue;
        }
        let error = fields.remove("parse_error");
        let Some(theirs) = theirs else {
            assert!(
                error.is_some(),
                "VRL refuses {:?}, we made {fields:?}",
                String::from_utf8_lossy(&payload)
            );
            refused += 1;
            continue;
        };
        assert_eq!(error, None, "VRL parses {:?}", String::from_utf8_lossy(&payload));
        for key in ["host", "source_ip", "source_type"] {
            fields.remove(key);
        }
        assert_eq!(fields, theirs, "{:?}", String::from_utf8_lossy(&payload));
        same += 1;
    }
    println!("{same} the same, {refused} refused by both, {documented} documented");
    assert!(
        same > MESSAGES / 4 && refused > MESSAGES / 20,
        "the generator makes both kinds: {same} {refused}"
    );
}
