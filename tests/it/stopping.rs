//! Stopping: under load, with Vector gone, with a full queue, twice.

use std::future::{pending, ready};
use std::time::Duration;

use rustix::process::Signal;
use sluicegate::config::{Endpoint, WhenFull};
use sluicegate::pipeline::Pipeline;
use tokio::time::timeout;
use tonic::Code;

use crate::support::process::Process;
use crate::support::scenario::{config, load, send};
use crate::support::vector::{FakeVector, Wire, in_front_of};
use crate::support::{free_tcp, free_udp, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn under_load_every_datagram_is_delivered_or_counted_by_the_kernel() {
    let vector = FakeVector::answering(|_, _| Code::Ok).await;
    let config = config(vector.address);
    let pipeline = Pipeline::start(&config).unwrap();
    let target = pipeline.addresses().next().unwrap();
    // While it stops, its sockets stay open but refuse: the load goes on into them.
    let sending = tokio::spawn(send(load(target, 50_000, 2.0)));
    wait_until("some of it is there", || pipeline.report().received > 20_000);
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    let sent = sending.await.unwrap();
    assert!(report.balances() && report.in_memory == 0, "{report:?}");
    assert_eq!(report.delivered, report.received);
    let numbers = vector.received().numbers.unwrap();
    assert_eq!((numbers.unique, numbers.duplicates), (report.received, 0));
    assert!(report.received < sent.sent, "it stopped before the load did");
    assert!(report.kernel_drops > 0 && report.kernel_drops <= sent.sent - report.received, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_acknowledged_in_time_is_counted_as_shed() {
    // The queue is so small that workers wait for room, with data left in the sockets.
    for when_full in [WhenFull::Block, WhenFull::DropNewest] {
        let mut config = config(free_tcp());
        config.buffer.max_bytes = 200_000;
        config.buffer.when_full = when_full;
        let pipeline = Pipeline::start(&config).unwrap();
        let target = pipeline.addresses().next().unwrap();
        let sent = send(load(target, 20_000, 0.5)).await;
        let report = pipeline.stop(Duration::from_millis(300), pending()).await;
        assert_eq!(report.received, sent.sent, "the sockets are drained all the same");
        assert_eq!((report.delivered, report.shed, report.in_memory), (0, sent.sent, 0));
        let full = report.shed_by_reason["queue_full"];
        assert_eq!(full > 0, when_full == WhenFull::DropNewest, "{report:?}");
        assert!(report.shed_by_reason["shutdown"] > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_failures_nor_silence_hold_up_a_stop_in_a_hurry() {
    let vector = FakeVector::answering(|_, _| Code::Unavailable).await;
    let silent = in_front_of(vector.address, Wire::Silence, u64::MAX).await.address;
    for address in [vector.address, silent] {
        let config = config(address);
        let pipeline = Pipeline::start(&config).unwrap();
        let sent = send(load(pipeline.addresses().next().unwrap(), 10_000, 0.2)).await;
        let stop = pipeline.stop(Duration::from_secs(1_000), ready(()));
        let report = timeout(Duration::from_secs(60), stop).await.expect("it hurries");
        assert_eq!((report.received, report.shed), (sent.sent, sent.sent));
        assert!(report.balances());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_gone_does_not_hold_up_a_stop() {
    let vector = FakeVector::answering(|_, _| Code::Ok).await;
    let mut config = config(vector.address);
    // Nobody listens there; dialling it fails at once, and the pauses between grow to seconds.
    let gone = free_tcp();
    config.vector.endpoints.push(Endpoint { tls: false, host: gone.ip().to_string(), port: gone.port() });
    config.vector.retry_initial_backoff = Duration::from_secs(5);
    let pipeline = Pipeline::start(&config).unwrap();
    let sent = send(load(pipeline.addresses().next().unwrap(), 10_000, 0.2)).await;
    let report = timeout(Duration::from_secs(60), pipeline.stop(Duration::from_secs(1_000), pending())).await;
    assert_eq!(report.expect("it stops").delivered, sent.sent);
}

#[test]
fn an_idle_process_stops_at_once_and_a_second_signal_hurries() {
    let run = Process::run(free_udp(), free_tcp(), &["--shutdown-timeout", "1000"]);
    let ended = run.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(ended.json()["received"], 0);

    let listen = free_udp();
    let run = Process::run(listen, free_tcp(), &["--shutdown-timeout", "1000"]);
    Process::start(&["load", &listen.to_string(), "--count", "1000"]).end();
    wait_until("a batch is there", || run.stderr().contains("cannot connect"));
    run.signal(Signal::INT);
    run.signal(Signal::INT); // some senders give it twice
    std::thread::sleep(Duration::from_millis(1_500));
    run.signal(Signal::HUP);
    run.signal(Signal::INT);
    let ended = run.end();
    assert!(ended.status.success(), "{}", ended.stderr);
    let books = ended.json();
    assert_eq!((&books["received"], &books["shed"]), (&1_000.into(), &1_000.into()), "{books}");
}

#[test]
fn a_slow_program_does_not_outstay_the_deadline() {
    let (listen, vector) = (free_udp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let numbers = (0..1_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let program = tempfile::NamedTempFile::new().unwrap();
    let source = format!(
        "n = 0\na = [{numbers}]\nfor_each(a) -> |_i, x| {{ for_each(a) -> |_j, y| {{ n = x + y }} }}"
    );
    std::fs::write(program.path(), source).unwrap();
    let options =
        ["--workers", "1", "--shutdown-timeout", "1", "--program", program.path().to_str().unwrap()];
    let run = Process::run(listen, vector, &options);
    Process::start(&["load", &listen.to_string(), "--count", "1000", "--size", "100"]).end();
    wait_until("the program is at work", || receive.is_running());
    std::thread::sleep(Duration::from_millis(500));
    let books = run.stop().json();
    let number = |key: &str| books[key].as_u64().unwrap();
    assert_eq!(number("received"), 1_000, "{books}");
    assert_eq!(number("delivered") + number("shed"), 1_000, "{books}");
    assert!(number("shed") > 0, "a thousand such events take minutes: {books}");
    assert!(number("delivered") > 0, "a batch closes by its age between two slow events: {books}");
}

#[test]
fn a_stderr_that_nobody_reads_stops_nothing() {
    use std::process::{Command, Stdio};
    // Closed, full for ever, and a pipe that fills up.
    for stderr in ["2>/dev/full", "2>&1 >/dev/null | true", "2>&1 >$OUT | sleep 30"] {
        let (listen, vector) = (free_udp(), free_tcp());
        let out = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("sh");
        let binary = crate::support::process::binary();
        let run =
            format!("env RUST_LOG=trace {} run --listen {listen} --vector http://{vector}", binary.display());
        let script = if stderr == "2>/dev/full" {
            format!("exec {run} >$OUT {stderr}")
        } else {
            format!("{run} {}", stderr.replace(">/dev/null", ">$OUT"))
        };
        command.args(["-c", &script]).env("OUT", out.path()).stdin(Stdio::null());
        let shell = Process::spawn(command);
        let ends = format!(":{:04X}", listen.port());
        wait_until("it listens", || std::fs::read_to_string("/proc/net/udp").unwrap().contains(&ends));
        let load = ["load", &listen.to_string(), "--count", "20000", "--rate", "20000", "--size", "200"]
            .map(str::to_owned);
        Process::start(&load.each_ref().map(String::as_str)).end();
        let receive = Process::receive(vector, "--count");
        std::thread::sleep(Duration::from_millis(500));
        let pattern = format!("^[^ ]*sluicegate run --listen {listen}");
        Command::new("pkill").args(["-TERM", "-f", &pattern]).status().unwrap();
        wait_until("the books are printed", || std::fs::read_to_string(out.path()).unwrap().ends_with("}\n"));
        let books: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(out.path()).unwrap()).unwrap();
        assert_eq!(books["delivered"], 20_000, "{stderr}: {books}");
        assert_eq!(receive.stop().json()["unique"], 20_000);
        drop(shell);
    }
}
