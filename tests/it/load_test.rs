//! One flow at 100,000 messages a second, as three processes: every number arrives once, every worker has its share.

use std::process::Command;

use serde_json::Value as Json;

use crate::support::process::{Process, as_nobody, binary};
use crate::support::seccomp::forbid_steering;
use crate::support::{free_tcp, free_udp};

fn offer(target: &str, flows: &str) -> Json {
    Process::start(&["load", target, "--rate", "100000", "--seconds", "5", "--flows", flows]).end().json()
}

fn assert_even(books: &Json) {
    let received = books["received"].as_f64().unwrap();
    let workers = books["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 4);
    for worker in workers {
        assert_eq!(worker["steering"], "spread");
        let share = worker["received"].as_f64().unwrap() / received;
        assert!((0.20..=0.30).contains(&share), "{share} {books}");
    }
}

#[test]
fn every_number_is_delivered_once_and_shares_are_even() {
    let (listen, vector) = (free_udp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    // A buffer for all of it: this test is about counting, not about the speed of the machine it runs on.
    let run = Process::run(listen, vector, &["--workers", "4", "--receive-buffer-bytes", "2GiB"]);
    let sent = offer(&listen.to_string(), "1");
    let books = run.stop();
    assert!(books.status.success());
    let books = books.json();
    let received = receive.stop().json();

    assert_eq!(sent["sent"], 500_000);
    assert_eq!(received["unique"], 500_000, "{books}");
    assert_eq!(received["duplicates"], 0, "{books}");
    assert_eq!(received["missing"], 0, "{books}");
    assert_eq!(books["delivered"], 500_000, "{books}");
    assert_eq!(books["kernel_drops"], 0, "{books}");
    assert_eq!(books["received_bytes"], 550_000_000, "{books}");
    assert_even(&books);
}

#[test]
fn a_user_without_any_privilege_gets_the_same_spread() {
    let (listen, vector) = (free_udp(), free_tcp());
    let (address, url) = (listen.to_string(), format!("http://{vector}"));
    let options = ["--workers", "4", "--receive-buffer-bytes", "2GiB"];
    let arguments = [&["run", "--listen", &address, "--vector", &url][..], &options].concat();
    let Some((command, _directory)) = as_nobody(&arguments) else { return };
    let receive = Process::receive(vector, "--count");
    let mut run = Process::spawn(command);
    run.wait_for_log("listening");
    let sent = offer(&listen.to_string(), "1");
    let ended = run.stop();
    let (books, received) = (ended.json(), receive.stop().json());

    assert_even(&books);
    assert_eq!(
        ended.stderr.matches("net.core.rmem_max=").count(),
        1,
        "clamping is said once: {}",
        ended.stderr
    );
    let number = |json: &Json, key: &str| json[key].as_u64().unwrap();
    // How much the clamped buffer holds is the machine's affair; what is missing must be what the kernel dropped.
    assert_eq!(number(&sent, "sent"), number(&books, "received") + number(&books, "kernel_drops"), "{books}");
    assert_eq!(number(&received, "unique"), number(&books, "received"), "{books}");
    assert_eq!(received["duplicates"], 0, "{books}");
}

#[test]
fn flow_steering_keeps_each_senders_order() {
    let (listen, vector) = (free_udp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let options = ["--workers", "4", "--steering", "flow", "--connections", "1", "--streams", "1"];
    let run = Process::run(listen, vector, &[&options[..], &["--receive-buffer-bytes", "2GiB"]].concat());
    offer(&listen.to_string(), "40");
    let books = run.stop().json();
    let received = receive.stop().json();
    assert_eq!(received["unique"], 500_000, "{books}");
    assert_eq!(received["out_of_order"], 0, "{books}");
    let busy = books["workers"].as_array().unwrap().iter().filter(|w| w["received"] != 0).count();
    assert!(busy > 1, "40 flows on one socket: {books}");
}

#[test]
fn where_steering_is_forbidden_it_degrades_says_so_once_and_shows_it() {
    let (listen, vector) = (free_udp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let mut command = Command::new(binary());
    command.args([
        "run",
        "--listen",
        &listen.to_string(),
        "--vector",
        &format!("http://{vector}"),
        "--workers",
        "4",
    ]);
    forbid_steering(&mut command);
    let mut run = Process::spawn(command);
    run.wait_for_log("listening");
    Process::start(&["load", &listen.to_string(), "--count", "1000", "--rate", "5000"]).end();
    let ended = run.stop();
    let books = ended.json();
    assert_eq!(receive.stop().json()["unique"], 1_000, "{books}");
    assert_eq!(ended.stderr.matches("refused the steering program").count(), 1, "{}", ended.stderr);
    let workers = books["workers"].as_array().unwrap();
    assert!(workers.iter().all(|worker| worker["steering"] == "flow"), "{books}");
    assert_eq!(
        workers.iter().filter(|worker| worker["received"] != 0).count(),
        1,
        "one flow, one worker: {books}"
    );
}
