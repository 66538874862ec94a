//! What Vector never takes is in the dead-letter file, once and whole; the rest is delivered, and the books balance.

use std::path::Path;

use serde_json::Value as Json;
use sluicegate::books::Report;
use sluicegate::config::{Batch, Config};
use sluicegate::load::{Sent, parse_marker};
use sluicegate::proto::event::{EventWrapper, event_wrapper::Event};
use tempfile::TempDir;
use tonic::Code;

use crate::support::process::Process;
use crate::support::scenario::{config, flow_through};
use crate::support::vector::{FakeVector, bytes};
use crate::support::{free_tcp, free_udp};

/// The number of the message that the fake Vectors here take offence at.
const BAD: u64 = 12_345;

fn number(event: &EventWrapper) -> Option<u64> {
    let Some(Event::Log(log)) = &event.event else { return None };
    number_in(bytes(log, "message"))
}

fn number_in(message: &[u8]) -> Option<u64> {
    let at = message.windows(4).position(|window| window == b"seq=")?;
    parse_marker(&message[at..]).map(|marker| marker.number)
}

/// A Vector that answers `code` to every request with the bad event.
async fn offended(code: Code) -> FakeVector {
    let is_bad = |events: &[EventWrapper]| events.iter().any(|event| number(event) == Some(BAD));
    FakeVector::judging(move |_, events| if is_bad(events) { code } else { Code::Ok }).await
}

/// Batches of 1,000, and a dead-letter file in a directory.
fn with_file(vector: &FakeVector) -> (Config, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config { batch: Batch::default(), ..config(vector.address) };
    config.dead_letter.path = Some(directory.path().join("letters.jsonl"));
    (config, directory)
}

fn letters(directory: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(directory.join("letters.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers(letters: &[Json]) -> Vec<u64> {
    let number = |letter: &Json| number_in(letter["event"]["message"].as_str().unwrap().as_bytes());
    letters.iter().filter_map(number).collect()
}

/// Everything but the rejected arrived once, and all of those are in the file.
fn assert_accounted(sent: &Sent, report: &Report, vector: &FakeVector, letters: &[Json], reason: &str) {
    assert_eq!(report.delivered + report.rejected, sent.sent);
    assert_eq!((report.dead_lettered, report.dead_letters_lost), (report.rejected, 0));
    assert_eq!(report.rejected_by_reason[reason], report.rejected);
    let received = vector.received().numbers.unwrap();
    assert_eq!((received.unique, received.duplicates), (report.delivered, 0));
    assert_eq!(letters.len() as u64, report.rejected);
    assert!(letters.iter().all(|letter| letter["reason"] == reason), "{letters:?}");
    assert!(numbers(letters).contains(&BAD));
}

#[tokio::test(flavor = "multi_thread")]
async fn data_loss_ends_the_batch_which_replays_from_the_file() {
    let vector = offended(Code::DataLoss).await;
    let (config, directory) = with_file(&vector);
    let (sent, report) = flow_through(config.clone()).await;
    let letters = letters(directory.path());
    assert!(report.rejected > 1, "the batch as a whole");
    assert_accounted(&sent, &report, &vector, &letters, "data_loss");
    assert_eq!(
        (&letters[0]["code"], &letters[0]["message"]),
        (&"DATA_LOSS".into(), &"as the test wants".into())
    );

    let (listen, address) = (free_udp(), free_tcp());
    let receive = Process::receive(address, "--json");
    let run = Process::run(listen, address, &["--receive-buffer-bytes", "1GiB"]);
    let file = config.dead_letter.path.unwrap().display().to_string();
    let again = Process::start(&["load", &listen.to_string(), "--corpus", &file, "--once"]).end().json();
    assert_eq!(again["sent"], report.rejected);
    assert_eq!(run.stop().json()["delivered"], report.rejected);
    let messages = |events: &[Json]| {
        let mut messages: Vec<_> = events.iter().map(|event| event["message"].to_string()).collect();
        messages.sort();
        messages
    };
    let received = receive.stop().stdout;
    let received: Vec<Json> = received
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap())
        .filter(|event| event["source_type"] == "socket")
        .collect();
    let rejected: Vec<Json> = letters.iter().map(|letter| letter["event"].clone()).collect();
    assert_eq!(messages(&received), messages(&rejected));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_too_large_by_itself_is_rejected_alone() {
    let vector = offended(Code::OutOfRange).await;
    let (config, directory) = with_file(&vector);
    let (sent, report) = flow_through(config).await;
    let letters = letters(directory.path());
    assert_accounted(&sent, &report, &vector, &letters, "too_large");
    assert_eq!(numbers(&letters), [BAD]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_file_takes_no_more_and_what_did_not_fit_is_counted() {
    let vector = FakeVector::answering(|_, _| Code::DataLoss).await;
    let (mut config, directory) = with_file(&vector);
    config.dead_letter.max_bytes = 10_000;
    let (sent, report) = flow_through(config).await;
    let letters = letters(directory.path());
    assert_eq!(report.rejected, sent.sent);
    assert_eq!(report.dead_lettered + report.dead_letters_lost, sent.sent);
    assert_eq!(report.dead_lettered, letters.len() as u64);
    assert!(!letters.is_empty());
    assert!(std::fs::metadata(directory.path().join("letters.jsonl")).unwrap().len() <= 10_000);
}

#[test]
fn a_file_that_cannot_be_had_is_said_at_the_start() {
    let (listen, vector) = (free_udp().to_string(), format!("http://{}", free_tcp()));
    let arguments =
        ["run", "--listen", &listen, "--vector", &vector, "--dead-letter-path", "/nowhere/letters"];
    let ended = Process::start(&arguments).end();
    assert!(!ended.status.success());
    assert!(ended.stderr.contains("cannot open /nowhere/letters (dead_letter.path)"), "{}", ended.stderr);
}
