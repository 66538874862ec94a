//! What does not fit into memory waits on disk: through outages, stops, kills and full disks, and the books know of it.

use std::future::pending;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value as Json;
use sluicegate::config::{Config, WhenFull};
use sluicegate::pipeline::Pipeline;
use tonic::Code;

use crate::support::admin::get;
use crate::support::process::{Process, as_nobody, binary};
use crate::support::scenario::{self, load, send};
use crate::support::vector::FakeVector;
use crate::support::{free_tcp, free_udp, is_root, program, require, wait_until};

fn overflowing(vector: std::net::SocketAddr, directory: &Path, memory: usize) -> Config {
    let mut config = scenario::config(vector);
    config.buffer.when_full = WhenFull::Overflow;
    config.buffer.max_bytes = memory;
    config.data_dir = directory.to_owned();
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_that_memory_cannot_hold_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let down = free_tcp();
    let pipeline = Pipeline::start(&overflowing(down, directory.path(), 1 << 20)).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let sent = send(load(target, 20_000, 3.0)).await;
    wait_until("all is received", || pipeline.report().received == sent.sent);
    tokio::time::sleep(Duration::from_millis(300)).await; // the last batches close by age
    let held = pipeline.report();
    assert!(held.balances(), "{held:?}");
    assert!(held.spooled > sent.sent / 2, "memory holds a part only: {held:?}");
    let mut receive = Process::receive(down, "--count");
    wait_until("all is delivered", || pipeline.report().delivered == sent.sent);
    let report = pipeline.stop(Duration::from_secs(60), pending()).await;
    assert!(report.balances(), "{report:?}");
    assert_eq!((report.delivered, report.spooled, report.shed), (sent.sent, 0, 0));
    receive.wait_for_log("receiving");
    assert_eq!(receive.stop().json()["unique"], sent.sent);
    let left: Vec<_> = std::fs::read_dir(directory.path().join("spool")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the lock is left: {left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_removed_while_running_costs_nothing_that_is_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let down = free_tcp();
    let pipeline = Pipeline::start(&overflowing(down, directory.path(), 1 << 20)).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let first = send(load(target, 20_000, 1.0)).await;
    wait_until("some wait on disk", || pipeline.report().spooled > 0);
    std::fs::remove_dir_all(directory.path().join("spool")).unwrap();
    let second = send(load(target, 20_000, 3.0)).await; // more than the file in use takes
    let receive = Process::receive(down, "--count");
    let sent = first.sent + second.sent;
    wait_until("all is delivered", || pipeline.report().delivered == sent);
    let report = pipeline.stop(Duration::from_secs(60), pending()).await;
    assert!(report.balances(), "{report:?}");
    assert_eq!((report.received, report.spooled, report.shed), (sent, 0, 0), "{report:?}");
    assert_eq!(receive.stop().json()["events"], sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_stop_leaves_is_sent_by_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let pipeline = Pipeline::start(&overflowing(free_tcp(), directory.path(), 64 << 20)).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let sent = send(load(target, 20_000, 0.5)).await;
    wait_until("all is received", || pipeline.report().received == sent.sent);
    let stopped = pipeline.stop(Duration::from_millis(300), pending()).await;
    assert!(stopped.balances(), "{stopped:?}");
    assert_eq!((stopped.spooled, stopped.in_memory, stopped.shed), (sent.sent, 0, 0), "{stopped:?}");

    let vector = FakeVector::answering(|_, _| Code::Ok).await;
    let pipeline = Pipeline::start(&overflowing(vector.address, directory.path(), 64 << 20)).unwrap();
    assert_eq!(pipeline.report().recovered, sent.sent);
    wait_until("all is delivered", || pipeline.report().delivered == sent.sent);
    let report = pipeline.stop(Duration::from_secs(60), pending()).await;
    assert!(report.balances() && report.spooled == 0, "{report:?}");
    assert_eq!(vector.received().numbers.unwrap().unique, sent.sent);
}

fn run(
    listen: std::net::SocketAddr,
    vector: std::net::SocketAddr,
    directory: &Path,
    more: &[&str],
) -> Process {
    let directory = directory.to_str().unwrap();
    let overflow = ["--when-full", "overflow", "--data-dir", directory, "--buffer-max-bytes", "200KB"];
    Process::run(listen, vector, &[&overflow[..], &["--receive-buffer-bytes", "1GiB"], more].concat())
}

/// Kills at random instants: five in CI, more by hand (SLUICEGATE_KILLS=20).
#[test]
fn a_kill_loses_nothing_that_was_reported_to_be_on_disk() {
    let kills = std::env::var("SLUICEGATE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    for kill in 0..kills {
        let directory = tempfile::tempdir().unwrap();
        let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp());
        let mut killed = run(listen, vector, directory.path(), &["--admin", &admin.to_string()]);
        killed.wait_for_log("admin port");
        let sending = Process::start(&[
            "load",
            &listen.to_string(),
            "--rate",
            "20000",
            "--seconds",
            "2",
            "--size",
            "300",
        ]);
        let spooled =
            || serde_json::from_str::<Json>(&get(admin, "/status").1).unwrap()["spooled"].as_u64().unwrap();
        wait_until("some is on disk", || spooled() > 3_000);
        std::thread::sleep(Duration::from_millis(fastrand::u64(..500)));
        let reported = spooled();
        killed.kill();
        sending.end();

        let receive = Process::receive(vector, "--count");
        let mut next = run(listen, vector, directory.path(), &["--admin", &admin.to_string()]);
        next.wait_for_log("admin port");
        let books = || serde_json::from_str::<Json>(&get(admin, "/status").1).unwrap();
        wait_until("all that was found is delivered", || {
            books()["spooled"] == 0 && books()["in_memory"] == 0
        });
        let books = next.stop().json();
        let number = |key: &str| books[key].as_u64().unwrap();
        assert!(number("recovered") >= reported, "kill {kill}: {reported} were reported: {books}");
        assert_eq!(number("recovered") + number("received"), number("delivered"), "{books}");
        let received = receive.stop().json();
        assert_eq!(received["unique"], number("delivered"), "{received}");
    }
}

#[test]
fn a_full_disk_sheds_and_the_process_lives() {
    let mount = program("mount");
    if !require(is_root() && mount.is_some(), "root and mount, for a small tmpfs") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().to_str().unwrap();
    // A namespace of its own, so that nothing stays mounted.
    let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp());
    let script = format!(
        "mount -t tmpfs -o size=2m none {at} && exec {} run --listen {listen} --vector http://{vector} --admin {admin} \
         --when-full overflow --data-dir {at} --buffer-max-bytes 200KB --receive-buffer-bytes 1GiB",
        binary().display()
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let mut run = Process::spawn(command);
    run.wait_for_log("admin port");
    let target = listen.to_string();
    let sent = Process::start(&["load", &target, "--count", "20000", "--rate", "20000", "--size", "300"])
        .end()
        .json();
    run.wait_for_log("could not be kept on disk");
    let receive = Process::receive(vector, "--count");
    let status = || serde_json::from_str::<Json>(&get(admin, "/status").1).unwrap();
    wait_until("the rest is delivered", || status()["spooled"] == 0 && status()["in_memory"] == 0);
    let books = run.stop().json();
    let number = |key: &str| books[key].as_u64().unwrap();
    assert_eq!(number("received"), sent["sent"].as_u64().unwrap());
    assert_eq!(number("received"), number("delivered") + number("shed"), "{books}");
    assert_eq!(books["shed_by_reason"]["spool_failed"], number("shed"), "{books}");
    assert!(number("shed") > 0 && number("delivered") > 4_000, "{books}");
    receive.stop();
}

#[test]
fn the_limit_on_disk_sheds_what_is_beyond_it() {
    let directory = tempfile::tempdir().unwrap();
    let (listen, vector) = (free_udp(), free_tcp());
    let run = run(
        listen,
        vector,
        directory.path(),
        &["--buffer-max-disk-bytes", "1MiB", "--shutdown-timeout", "1"],
    );
    Process::start(&["load", &listen.to_string(), "--count", "20000", "--rate", "20000", "--size", "300"])
        .end();
    let books = run.stop().json();
    let number = |key: &str| books[key].as_u64().unwrap();
    assert_eq!(number("received"), number("spooled") + number("shed"), "{books}");
    assert!(
        books["shed_by_reason"]["spool_full"].as_u64().unwrap() > 0 && number("spooled") > 1_000,
        "{books}"
    );
}

#[test]
fn a_directory_that_is_taken_or_closed_is_said_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let first = run(free_udp(), free_tcp(), directory.path(), &["--admin="]);
    let listen = free_udp().to_string();
    let at = directory.path().to_str().unwrap();
    let arguments = [
        "run",
        "--listen",
        &listen,
        "--vector",
        "http://127.0.0.1:1",
        "--when-full",
        "overflow",
        "--data-dir",
        at,
    ];
    let ended = Process::start(&arguments).end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("another process uses"), "{}", ended.stderr);
    first.stop();
    let Some((nobody, _copy)) = as_nobody(&arguments) else { return };
    let ended = Process::spawn(nobody).end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("name another data_dir"), "{}", ended.stderr);
}
