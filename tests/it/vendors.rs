//! Vendors' datagrams through `sluicegate parse`: equal to what Vector's `syslog` source made of them or, where it
//! dropped them, kept with what their format states.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Map, Value as Json};

use crate::support::process::binary;

/// The recording's day: dates without a year belong to it.
const NOW: &str = "2026-11-30T12:00:00Z";
const PEER: &str = "198.51.100.254";

fn rows(file: &str) -> Vec<Json> {
    let path = format!("{}/tests/cases/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn parsed() -> BTreeMap<String, Vec<Json>> {
    let file = format!("{}/tests/cases/datagrams.jsonl", env!("CARGO_MANIFEST_DIR"));
    let options =
        ["parse", "--parse", "syslog", "--timezone", "UTC", "--now", NOW, "--peer", PEER, "--jsonl"];
    let output = Command::new(binary()).args(options).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let row: Json = serde_json::from_str(line).unwrap();
        (row["id"].as_str().unwrap().to_owned(), row["events"].as_array().unwrap().clone())
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

fn filled(value: &Json) -> Json {
    match value {
        Json::String(text) if text == "<peer>" => PEER.into(),
        Json::String(text) if text == "<receipt>" => NOW.into(),
        Json::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), filled(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

#[test]
fn what_vectors_source_kept_is_the_same_here() {
    let parsed = parsed();
    let mut differ = Vec::new();
    let mut compared = 0;
    for row in rows("datagrams.jsonl") {
        let (id, source) = (row["id"].as_str().unwrap(), &row["vector_syslog_source"]);
        if source.is_null() {
            continue;
        }
        compared += 1;
        let ours = &parsed[id];
        if ours[..] != [filled(source)] {
            differ.push(format!("{id}\n  ours   {ours:?}\n  source {}", filled(source)));
        }
    }
    assert_eq!(compared, 65);
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn what_vectors_source_dropped_is_kept_with_what_its_format_states() {
    let parsed = parsed();
    let stated: BTreeMap<_, _> = rows("stated.jsonl")
        .into_iter()
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row["event"].clone()))
        .collect();
    let mut differ = Vec::new();
    for row in rows("datagrams.jsonl").iter().filter(|row| row["vector_syslog_source"].is_null()) {
        let id = row["id"].as_str().unwrap();
        let expected = match filled(&stated[id]) {
            Json::Null => vec![],
            Json::Object(mut event) => {
                // What every kept event has.
                event.entry("host").or_insert_with(|| PEER.into());
                event.entry("timestamp").or_insert_with(|| NOW.into());
                event.insert("source_ip".into(), PEER.into());
                event.insert("source_type".into(), "syslog".into());
                vec![Json::Object(event)]
            }
            other => panic!("{other}"),
        };
        if parsed[id] != expected {
            differ.push(format!("{id}\n  ours   {:?}\n  stated {expected:?}", parsed[id]));
        }
    }
    assert_eq!(stated.len(), 30);
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}
