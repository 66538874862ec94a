//! Vector goes wrong in every way that it can: nothing that was received is lost, and the books balance.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use sluicegate::config::Batch;
use tonic::Code;

use crate::support::process::Process;
use crate::support::scenario::{config, flow_through};
use crate::support::vector::{FakeVector, Wire, in_front_of};
use crate::support::{free_tcp, free_udp, numbers_in};

#[tokio::test(flavor = "multi_thread")]
async fn every_status_in_turn_loses_nothing() {
    for code in (1..=16).map(Code::from).filter(|code| *code != Code::DataLoss) {
        let answer = move |number, events| match number % 3 {
            // Of a single event that would be the truth about its size: it is rejected.
            0 if code != Code::OutOfRange || events > 1 => code,
            _ => Code::Ok,
        };
        let vector = FakeVector::answering(answer).await;
        let (sent, report) = flow_through(config(vector.address)).await;
        assert_eq!((report.delivered, report.rejected, report.shed), (sent.sent, 0, 0), "{code:?}");
        assert!(report.retries > 0, "{code:?}");
        let numbers = vector.received().numbers.unwrap();
        assert_eq!((numbers.unique, numbers.duplicates, numbers.missing), (sent.sent, 0, 0), "{code:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_loss_rejects_the_batch_and_counts_it() {
    let vector = FakeVector::answering(|number, _| if number == 2 { Code::DataLoss } else { Code::Ok }).await;
    let (sent, report) = flow_through(config(vector.address)).await;
    let numbers = vector.received().numbers.unwrap();
    assert!(report.rejected > 0);
    assert_eq!(report.delivered + report.rejected, sent.sent);
    assert_eq!((numbers.unique, numbers.missing), (report.delivered, report.rejected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_with_a_small_limit_gets_halves() {
    let vector =
        FakeVector::answering(|_, events| if events > 20 { Code::OutOfRange } else { Code::Ok }).await;
    let (sent, report) = flow_through(config(vector.address)).await;
    let numbers = vector.received().numbers.unwrap();
    assert_eq!((report.delivered, report.rejected), (sent.sent, 0));
    assert_eq!((numbers.unique, numbers.duplicates), (sent.sent, 0));
}

/// gRPC libraries have it by default, and so had Vector before 0.31.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_with_grpcs_own_limit_of_4_mib_gets_what_fits() {
    let vector = FakeVector::limited(4 << 20).await;
    let mut config = config(vector.address);
    config.batch = Batch { max_bytes: 8 << 20, max_events: 100_000, timeout: Duration::from_secs(1) };
    config.listeners[0].workers = 1;
    let (sent, report) = flow_through(config).await;
    let numbers = vector.received().numbers.unwrap();
    assert!(report.retries > 0, "a batch was beyond the limit");
    assert_eq!((report.delivered, numbers.unique, numbers.duplicates), (sent.sent, sent.sent, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn bare_eof_in_the_middle_loses_nothing() {
    let vector = FakeVector::answering(|_, _| Code::Ok).await;
    let front = in_front_of(vector.address, Wire::Eof(40_000), 6).await;
    let (sent, report) = flow_through(config(front.address)).await;
    assert_eq!(report.delivered, sent.sent);
    assert_eq!(vector.received().numbers.unwrap().unique, sent.sent);
    assert!(report.possible_duplicates > 0, "requests without an answer are counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn goaway_under_load_loses_nothing() {
    let vector = FakeVector::saying_goodbye(Duration::from_millis(300)).await;
    let front = in_front_of(vector.address, Wire::Good, 0).await;
    let (sent, report) = flow_through(config(front.address)).await;
    assert!(front.connections() > 4, "each of the two connections was closed and made anew");
    let numbers = vector.received().numbers.unwrap();
    assert_eq!((report.delivered, numbers.unique), (sent.sent, sent.sent));
    assert!(numbers.duplicates <= report.possible_duplicates, "{numbers:?} {report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_never_answers_is_left_for_another_connection() {
    let vector = FakeVector::answering(|_, _| Code::Ok).await;
    let front = in_front_of(vector.address, Wire::Silence, 3).await;
    let mut config = config(front.address);
    config.vector.request_timeout = Duration::from_millis(500);
    let (sent, report) = flow_through(config).await;
    assert_eq!(report.delivered, sent.sent);
    assert_eq!(vector.received().numbers.unwrap().unique, sent.sent);
    assert!(report.possible_duplicates > 0);
}

#[test]
fn a_receiver_that_is_killed_and_comes_back_loses_nothing() {
    let (listen, vector) = (free_udp(), free_tcp());
    let first = Process::receive(vector, "--json");
    let run = Process::run(listen, vector, &["--workers", "2", "--receive-buffer-bytes", "1GiB"]);
    let target = listen.to_string();
    let load = Process::start(&["load", &target, "--rate", "20000", "--seconds", "8", "--size", "200"]);
    sleep(Duration::from_millis(1_500));
    let before = first.kill();
    sleep(Duration::from_secs(5));
    let second = Process::receive(vector, "--json");
    let sent = load.end().json()["sent"].as_u64().unwrap();
    let run = run.stop();
    let books = run.json();
    let after = second.stop().stdout;

    let (before, after): (BTreeSet<_>, BTreeSet<_>) =
        (numbers_in(&before).collect(), numbers_in(&after).collect());
    assert!(!before.is_empty() && !after.is_empty());
    assert_eq!(before.union(&after).count() as u64, sent, "{books}");
    assert_eq!(books["received"], sent, "{books}");
    assert_eq!(books["delivered"], sent, "{books}");
    assert!(before.intersection(&after).count() as u64 <= books["possible_duplicates"].as_u64().unwrap());
}
