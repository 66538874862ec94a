//! Who may send: listed networks only, by every form of an address, in the books, and changed while it runs.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value as Json;

use crate::support::admin::{counter, get};
use crate::support::process::Process;
use crate::support::vector::{FakeVector, bytes};
use crate::support::{free_tcp, free_udp, wait_until};

fn configuration(listen: SocketAddr, vector: SocketAddr, list: &[String]) -> String {
    format!(
        "[[listeners]]\naddress = \"{listen}\"\npermit_origin = {list:?}\n[vector]\nendpoints = [\"http://{vector}\"]\n"
    )
}

fn run(file: &Path, admin: SocketAddr) -> Process {
    let mut run = Process::start(&["run", "--config", file.to_str().unwrap(), "--admin", &admin.to_string()]);
    run.wait_for_log("admin port");
    run
}

/// Sends one datagram from each address of 127.0.N.1, which holds N.
fn send_from_each(senders: u8, port: u16) {
    for n in 0..senders {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, n, 1), 0)).unwrap();
        socket.send_to(n.to_string().as_bytes(), ("127.0.0.1", port)).unwrap();
    }
}

fn arrived(vector: &FakeVector) -> Vec<String> {
    let text = |log| String::from_utf8(bytes(log, "message").to_vec()).unwrap();
    let mut all: Vec<_> = vector.logs().iter().map(text).collect();
    all.sort();
    all
}

fn sorted(numbers: impl Iterator<Item = u8>) -> Vec<String> {
    let mut all: Vec<_> = numbers.map(|n| n.to_string()).collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_thousand_networks_exactly_the_listed_may_send_and_a_reload_changes_them() {
    let vector = FakeVector::start().await;
    // Every IPv4 sender comes to this socket as an IPv4-mapped one.
    let (port, admin) = (free_udp().port(), free_tcp());
    let listen: SocketAddr = format!("[::]:{port}").parse().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let others = (0..9_800u32).map(|n| match n % 2 {
        0 => format!("10.{}.{}.0/24", n >> 8, n & 255),
        _ => format!("2001:db8:{n:x}::/48"),
    });
    // Written as IPv4, and as mapped IPv6.
    let listed = |n: &u8| n.is_multiple_of(3);
    let ours = (0..200u8).filter(listed).map(|n| match n % 2 {
        0 => format!("127.0.{n}.0/24"),
        _ => format!("::ffff:127.0.{n}.1"),
    });
    let list: Vec<_> = others.chain(ours).collect();
    std::fs::write(&file, configuration(listen, vector.address, &list)).unwrap();
    let mut run = run(&file, admin);
    send_from_each(200, port);
    let six = UdpSocket::bind("[::1]:0").unwrap();
    six.send_to(b"six", ("::1", port)).unwrap();
    let received = || counter(admin, "sluicegate_receive_datagrams_total");
    wait_until("all came", || received() == 201.0);
    let expected = sorted((0..200).filter(listed));
    wait_until("what is permitted has arrived", || vector.logs().len() == expected.len());
    assert_eq!(arrived(&vector), expected);
    let refused = "sluicegate_shed_events_total{reason=\"not_permitted\"}";
    assert_eq!(counter(admin, refused), 201.0 - expected.len() as f64);
    let top: Json = serde_json::from_str(&get(admin, "/top").1).unwrap();
    assert!(!top["by_messages"].as_array().unwrap().is_empty(), "those who are refused are seen too");

    // A bad list changes nothing; a good one is in force without a restart.
    let bad = ["::1".to_owned(), "127.0.0.0/33".to_owned(), "x".to_owned()];
    std::fs::write(&file, configuration(listen, vector.address, &bad)).unwrap();
    run.signal(Signal::HUP);
    wait_until("it is refused", || counter(admin, "sluicegate_config_last_reload_refused") == 1.0);
    run.wait_for_log("number 2, `127.0.0.0/33`");
    run.wait_for_log("number 3, `x`");
    six.send_to(b"six", ("::1", port)).unwrap();
    wait_until("it came", || received() == 202.0);
    std::fs::write(&file, configuration(listen, vector.address, &["::1".to_owned()])).unwrap();
    run.signal(Signal::HUP);
    wait_until("it is in force", || counter(admin, "sluicegate_config_last_reload_refused") == 0.0);
    six.send_to(b"now six may", ("::1", port)).unwrap();
    send_from_each(10, port);
    wait_until("all came", || received() == 213.0);
    wait_until("six has arrived", || vector.logs().len() == expected.len() + 1);
    assert!(!run.stderr().contains("need a restart"), "{}", run.stderr());
    let books = run.stop().json();
    let delivered = expected.len() + 1;
    assert_eq!((&books["received"], &books["delivered"]), (&213.into(), &delivered.into()));
    assert_eq!(books["shed_by_reason"]["not_permitted"], 213 - delivered, "{books}");
}
