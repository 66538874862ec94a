//! VRL programs and the options of an event's shape, through `sluicegate parse` and the whole pipeline.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

use crate::support::process::{Process, binary};
use crate::support::{free_tcp, free_udp};

fn program(source: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(source.as_bytes()).unwrap();
    file
}

fn parse(options: &[&str], input: &[u8]) -> Vec<Json> {
    let mut command = Command::new(binary());
    command.args(["parse", "--now", "2026-11-30T12:00:00Z", "--peer", "192.0.2.7:5000", "--timezone", "UTC"]);
    let mut child = command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn run(source: &str, mode: &str, input: &str) -> Vec<Json> {
    let file = program(source);
    parse(&["--parse", mode, "--program", file.path().to_str().unwrap()], input.as_bytes())
}

const RAW: &str = "<13>Oct 11 22:14:15 fw1 app[7]: hello";

#[test]
fn a_program_sees_the_event_that_would_be_sent_without_it() {
    for mode in ["none", "syslog"] {
        assert_eq!(run(".", mode, RAW), parse(&["--parse", mode], RAW.as_bytes()), "{mode}");
    }
    let strange = "<14>1 2026-10-11T22:14:15Z h a 1 - [message x=\"1\"][timestamp y=\"2\"][hostname z=\"3\"][source_type q=\"4\"] t";
    for input in [strange, "<189>1042: *Mar  1 18:46:11.214: %SYS-5-X: t", "no header at all"] {
        assert_eq!(run(".", "syslog", input), parse(&["--parse", "syslog"], input.as_bytes()), "{input}");
    }
}

#[test]
fn results_of_every_kind() {
    assert_eq!(run(". = {\"a\": .appname, \"n\": 1}", "syslog", RAW), [json!({"a": "app", "n": 1})]);
    assert_eq!(
        run(". = [{\"a\": 1}, 2, \"three\"]", "none", RAW),
        [json!({"a": 1}), json!(2), json!("three")]
    );
    assert_eq!(run(". = \"text\"", "none", RAW), [json!("text")]);
    assert_eq!(run(". = []", "none", RAW), [] as [Json; 0]);
    assert_eq!(run("abort", "none", RAW), [] as [Json; 0]);
    let kept = run(". = parse_json!(.message)", "none", RAW);
    assert_eq!((&kept[0]["message"], &kept[0]["parse_error"]), (&json!(RAW), &json!("program")));
    let parsed = run("if .appname == \"app\" { .team = \"net\" }", "syslog", RAW);
    assert_eq!((&parsed[0]["team"], &parsed[0]["procid"]), (&json!("net"), &json!(7)));
}

#[test]
fn an_event_nested_too_deeply_is_kept_as_it_was() {
    let levels = |n: usize| {
        let ones = vec!["1"; n].join(",");
        run(&format!("for_each([{ones}]) -> |_i, _v| {{ .n = {{\"n\": .n}} }}"), "none", RAW)
    };
    assert!(levels(100)[0].get("parse_error").is_none());
    let kept = levels(1_000);
    assert_eq!((&kept[0]["message"], &kept[0]["parse_error"]), (&json!(RAW), &json!("program")));
}

#[test]
fn names_that_would_overwrite_are_refused() {
    for options in [
        &["--host-key", "message"][..],
        &["--field", "timestamp=x"],
        &["--field", "a=1", "--field", "a=2"],
        &["--keep-raw", "--field", "raw=1"],
    ] {
        let arguments = [&["config", "--listen", "[::]:1", "--vector", "http://v"][..], options].concat();
        let ended = Process::start(&arguments).end();
        assert_eq!(ended.status.code(), Some(2), "{options:?}");
        assert!(ended.stderr.contains("would overwrite"), "{}", ended.stderr);
    }
}

#[test]
fn shapes() {
    let none =
        parse(&["--host-key", "", "--port-key", "peer", "--field", "node=n1", "--keep-raw"], RAW.as_bytes());
    assert_eq!(
        none,
        [
            json!({"message": RAW, "raw": RAW, "node": "n1", "peer": 5000, "source_type": "socket", "timestamp": "2026-11-30T12:00:00Z"})
        ]
    );
    let syslog = parse(
        &["--parse", "syslog", "--host-key", "device", "--keep-raw", "--field", "env=${NONE:-lab}"],
        RAW.as_bytes(),
    );
    assert_eq!(
        (&syslog[0]["device"], &syslog[0]["raw"], &syslog[0]["env"]),
        (&json!("fw1"), &json!(RAW), &json!("lab"))
    );
    assert_eq!(parse(&["--parse", "syslog", "--on-error", "drop"], b"nothing of the kind\n").len(), 0);
    assert_eq!(parse(&["--parse", "syslog"], b"nothing of the kind\n").len(), 1);
}

#[test]
fn a_program_that_does_not_compile_is_shown_where_and_why() {
    let file = program(". = parse_syslog(.message)");
    let ended = Process::start(&["parse", "--program", file.path().to_str().unwrap()]).end();
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.stderr.contains("error[E103]") && ended.stderr.contains("parse_syslog(.message)"),
        "{}",
        ended.stderr
    );
    let ended = Process::start(&["parse", "--program", "/nonexistent.vrl"]).end();
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("/nonexistent.vrl"), "{}", ended.stderr);
}

#[test]
fn the_books_balance_through_a_program() {
    let (listen, vector) = (free_udp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let file = program(
        "n = to_int!(slice!(.message, -1))\nif n < 3 { abort }\nif n < 5 { . = [., .] }\nif n == 5 { . = parse_json!(\"broken\") }\nif n == 6 { . = [] }",
    );
    let path = file.path().to_str().unwrap();
    let run = Process::run(
        listen,
        vector,
        &["--workers", "2", "--program", path, "--receive-buffer-bytes", "64MiB"],
    );
    let mut corpus = NamedTempFile::new().unwrap();
    for digit in 0..10 {
        writeln!(corpus, "message {digit}").unwrap();
    }
    let path = corpus.path().to_str().unwrap();
    Process::start(&["load", &listen.to_string(), "--corpus", path, "--count", "10000", "--rate", "20000"])
        .end();
    let books = run.stop().json();
    // Of ten: three aborted, two doubled, one failed and kept, one made nothing, three as they were.
    assert_eq!(books["received"], 10_000, "{books}");
    assert_eq!(books["shed_by_reason"]["program"], 4_000, "{books}");
    assert_eq!(books["parse_failures_by_reason"]["program"], 1_000, "{books}");
    assert_eq!(books["extra"], 2_000, "{books}");
    assert_eq!(books["delivered"], 8_000, "{books}");
    assert_eq!(receive.stop().json()["events"], 8_000);
}
