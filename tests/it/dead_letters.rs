//! What Vector never takes is in the dead-letter file, once and whole; the rest is delivered, and the books balance.

use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value as Json;
use sluicegate::books::Report;
use sluicegate::config::{Batch, Config, OnRejected};
use sluicegate::load::Sent;
use sluicegate::pipeline::Pipeline;
use sluicegate::proto::event::{EventWrapper, event_wrapper::Event};
use tempfile::TempDir;
use tonic::Code;

use crate::support::process::Process;
use crate::support::scenario::{config, flow_through, load};
use crate::support::vector::{FakeVector, bytes};
use crate::support::{free_tcp, free_udp, number_in, wait_until};

/// The number of the message that the fake Vectors here take offence at.
const BAD: u64 = 12_345;

fn number(event: &EventWrapper) -> Option<u64> {
    let Some(Event::Log(log)) = &event.event else { return None };
    number_in(bytes(log, "message"))
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

#[tokio::test(flavor = "multi_thread")]
async fn data_loss_with_split_rejects_the_one_event() {
    let vector = offended(Code::DataLoss).await;
    let (mut config, directory) = with_file(&vector);
    config.vector.on_rejected = OnRejected::Split;
    let (sent, report) = flow_through(config).await;
    let letters = letters(directory.path());
    assert_accounted(&sent, &report, &vector, &letters, "data_loss");
    assert_eq!(numbers(&letters), [BAD]);
    assert!(report.possible_duplicates > 1, "a sink may have had the good ones");
}

/// Under load until the bad event is in the file.
async fn poisoned_by(vector: FakeVector) {
    let (config, directory) = with_file(&vector);
    let pipeline = Pipeline::start(&config).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let sending = tokio::task::spawn_blocking({
        let stop = Arc::clone(&stop);
        move || load(target, 20_000, 100.0).run(&stop).unwrap()
    });
    let view = pipeline.view();
    let rejected = tokio::task::spawn_blocking(move || {
        wait_until("the event is rejected", || view.report().rejected > 0);
    });
    rejected.await.unwrap();
    stop.store(true, Relaxed);
    let sent = sending.await.unwrap();
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    println!("{sent:?}\n{report:?}");
    assert!(report.balances() && report.in_memory == 0 && report.shed == 0, "{report:?}");
    let letters = letters(directory.path());
    assert_accounted(&sent, &report, &vector, &letters, "poison");
    assert_eq!(numbers(&letters), [BAD]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_event_is_rejected_alone_while_the_flow_goes_on() {
    poisoned_by(offended(Code::Internal).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_makes_the_receiver_panic_is_rejected_alone() {
    let panicking = |events: &[EventWrapper]| {
        assert!(events.iter().all(|event| number(event) != Some(BAD)), "as a decoder does");
        Code::Ok
    };
    poisoned_by(FakeVector::judging(move |_, events| panicking(events)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_makes_no_poison() {
    let vector =
        FakeVector::answering(|number, _| if (5..85).contains(&number) { Code::Internal } else { Code::Ok })
            .await;
    let (config, _directory) = with_file(&vector);
    let (sent, report) = flow_through(config).await;
    assert_eq!((report.delivered, report.rejected), (sent.sent, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_old_is_rejected_with_a_vector_that_fails_and_with_none() {
    let failing = FakeVector::answering(|_, _| Code::Unavailable).await;
    for address in [failing.address, free_tcp()] {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(address);
        config.vector.retry_max_duration = Some(Duration::from_secs(1));
        config.dead_letter.path = Some(directory.path().join("letters.jsonl"));
        let (sent, report) = flow_through(config).await;
        assert_eq!((report.rejected_by_reason["expired"], report.dead_lettered), (sent.sent, sent.sent));
        assert!(letters(directory.path()).iter().all(|letter| letter["code"].is_null()));
    }
}
