//! Several Vectors: behind several URLs, and behind one name.

use std::collections::BTreeSet;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use sluicegate::config::Endpoint;
use sluicegate::pipeline::Pipeline;
use tokio::time::{Instant, sleep};
use tonic::Code;

use crate::support::admin::get;
use crate::support::process::{Process, binary};
use crate::support::scenario::{config, load, send};
use crate::support::vector::{FakeVector, Wire, in_front_of};
use crate::support::{free_tcp, free_udp, is_root, numbers_in, program, require, wait_until};

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint { tls: false, host: address.ip().to_string(), port: address.port() }
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_vector_holds_up_little_and_is_used_again_once_it_is_well() {
    let healthy = FakeVector::answering(|_, _| Code::Ok).await;
    let stalled = FakeVector::answering(|_, _| Code::Ok).await;
    let front = in_front_of(stalled.address, Wire::Silence, u64::MAX).await;
    let mut config = config(healthy.address);
    config.vector.endpoints.push(endpoint(front.address));
    let in_flight = config.vector.connections * config.vector.streams;

    let pipeline = Pipeline::start(&config).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let first = send(load(target, 20_000, 3.0)).await;
    // Long before its requests time out: it holds no more than a batch for each stream.
    let most_held = (in_flight * config.batch.max_events) as u64;
    until("the healthy one has all others", || healthy.received().events + most_held >= first.sent).await;
    assert!(healthy.received().events * 10 > first.sent * 9, "{:?} of {first:?}", healthy.received().events);

    front.mend();
    sleep(Duration::from_secs(1)).await;
    let second = send(load(target, 20_000, 3.0)).await;
    until("the other one is used again", || stalled.received().events > first.sent / 10).await;
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    assert_eq!((report.delivered, report.rejected, report.shed), (first.sent + second.sent, 0, 0));
    assert_eq!(healthy.received().events + stalled.received().events, first.sent + second.sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_vector_stalls_it_is_given_one_batch_at_a_time() {
    let vector = FakeVector::answering(|_, _| Code::Ok).await;
    let front = in_front_of(vector.address, Wire::Silence, u64::MAX).await;
    let mut config = config(front.address);
    config.vector.request_timeout = Duration::from_millis(300);
    let pipeline = Pipeline::start(&config).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let sent = send(load(target, 20_000, 1.0)).await;
    sleep(config.vector.request_timeout * 4).await;
    for _ in 0..20 {
        let in_flight = pipeline.view().status().queue.in_flight_events;
        assert!(in_flight <= config.batch.max_events as u64, "{in_flight} events in the hands of a dead one");
        sleep(Duration::from_millis(40)).await;
    }
    front.mend();
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    assert_eq!((report.delivered, report.rejected, report.shed), (sent.sent, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_only_ever_fails_is_made_anew() {
    let sick = FakeVector::answering(|_, _| Code::Unavailable).await;
    let well = FakeVector::answering(|_, _| Code::Ok).await;
    // A balancer that pins each connection to a Vector: the first two to a sick one.
    let front = in_front_of(well.address, Wire::To(sick.address), 2).await;
    let mut config = config(front.address);
    config.vector.request_timeout = Duration::from_secs(1);
    let pipeline = Pipeline::start(&config).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let sent = send(load(target, 20_000, 1.0)).await;
    until("a Vector that is well has all of it", || well.received().events == sent.sent).await;
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    assert_eq!((report.delivered, report.rejected, report.shed), (sent.sent, 0, 0));
    assert!(front.connections() > 2);
}

/// What each connection reports of the first endpoint.
fn of_endpoint(admin: SocketAddr, field: &str) -> u64 {
    let status: serde_json::Value = serde_json::from_str(&get(admin, "/status").1).unwrap();
    status["endpoints"][0][field].as_u64().unwrap()
}

/// `sluicegate` with this file as its /etc/hosts.
fn with_hosts(hosts: &Path) -> Option<Command> {
    let unshare = program("unshare").filter(|_| is_root());
    require(unshare.is_some(), "root and unshare, for an /etc/hosts of its own").then_some(())?;
    let mut command = Command::new(unshare?);
    let script = "mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"";
    command.args(["-m", "sh", "-c", script, "sh"]).arg(hosts).arg(binary());
    Some(command)
}

#[test]
fn every_address_behind_a_name_is_used_for_as_long_as_it_is_there() {
    let (listen, admin, port) = (free_udp(), free_tcp(), free_tcp().port());
    let address = |host: u8| SocketAddr::from(([127, 0, 0, host], port));
    let hosts = tempfile::NamedTempFile::new().unwrap();
    let name_leads_to = |them: &[u8]| {
        let lines: String = them.iter().map(|host| format!("127.0.0.{host} vectors.test\n")).collect();
        std::fs::write(hosts.path(), lines).unwrap();
    };
    let (first, second) = (Process::receive(address(2), "--json"), Process::receive(address(3), "--json"));
    name_leads_to(&[2, 3]);
    let Some(mut command) = with_hosts(hosts.path()) else { return };
    let url = format!("http://vectors.test:{port}");
    command.args(["run", "--listen", &listen.to_string(), "--vector", &url, "--admin", &admin.to_string()]);
    command.args(["--receive-buffer-bytes", "1GiB", "--connections", "2"]);
    let mut run = Process::spawn(command);
    run.wait_for_log("listening");
    wait_until("both are connected", || of_endpoint(admin, "connected") == 4);

    let target = listen.to_string();
    let load = Process::start(&["load", &target, "--rate", "20000", "--seconds", "20", "--size", "200"]);
    let has_some = |receiver: &Process| receiver.stdout().lines().count() > 1_000;
    wait_until("both take events", || has_some(&first) && has_some(&second));
    let first = first.kill();
    wait_until("one is left", || of_endpoint(admin, "connected") == 2);
    name_leads_to(&[3, 4]);
    let third = Process::receive(address(4), "--json");
    run.wait_for_log("an address is gone");
    wait_until("the new one takes events", || has_some(&third));
    assert_eq!(of_endpoint(admin, "connections"), 4);

    let sent = load.end().json()["sent"].as_u64().unwrap();
    let books = run.stop().json();
    let received = [first, second.stop().stdout, third.stop().stdout];
    let numbers: BTreeSet<_> = received.iter().flat_map(|text| numbers_in(text)).collect();
    assert_eq!((&books["received"], &books["delivered"]), (&sent.into(), &sent.into()), "{books}");
    assert_eq!(numbers.len() as u64, sent, "{books}");
}

#[test]
fn a_name_that_is_not_known_yet_is_tried_until_it_is() {
    let (listen, vector) = (free_udp(), free_tcp());
    let receiver = Process::receive(vector, "--json");
    let hosts = tempfile::NamedTempFile::new().unwrap();
    let Some(mut command) = with_hosts(hosts.path()) else { return };
    let url = format!("http://vectors.test:{}", vector.port());
    command.args(["run", "--listen", &listen.to_string(), "--vector", &url]);
    let mut run = Process::spawn(command);
    run.wait_for_log("cannot look the name up");
    // The first family leads nowhere, the other one does.
    std::fs::write(hosts.path(), "::1 vectors.test\n127.0.0.1 vectors.test\n").unwrap();
    run.wait_for_log("\"connected\"");
    let sent = Process::start(&["load", &listen.to_string(), "--rate", "1000", "--seconds", "1"]).end();
    let books = run.stop().json();
    assert_eq!(books["delivered"], sent.json()["sent"], "{books}");
    assert_eq!(numbers_in(&receiver.stop().stdout).count() as u64, books["delivered"]);
}
