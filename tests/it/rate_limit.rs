//! A limit for each sender: one that is mad starves nobody, and a reload changes it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use sluicegate::proto::event::EventWrapper;
use sluicegate::proto::event::event_wrapper::Event;

use crate::support::admin::counter;
use crate::support::process::Process;
use crate::support::vector::{FakeVector, bytes};
use crate::support::{free_tcp, free_udp, wait_until};

/// Made-up senders; a million by hand (SLUICEGATE_SENDERS=1000000).
fn made_up() -> u32 {
    std::env::var("SLUICEGATE_SENDERS").ok().and_then(|n| n.parse().ok()).unwrap_or(50_000)
}

fn is_well_behaved(event: &EventWrapper) -> bool {
    matches!(&event.event, Some(Event::Log(log)) if bytes(log, "host").starts_with(b"127.0.1."))
}

/// Twenty senders, a hundred messages a second each; how many each sent.
fn send_well_behaved(target: SocketAddr, seconds: u64) -> u64 {
    let socket = |last| UdpSocket::bind((Ipv4Addr::new(127, 0, 1, last), 0)).unwrap();
    let sockets: Vec<_> = (1..=20).map(socket).collect();
    let start = Instant::now();
    for n in 0..seconds * 100 {
        for socket in &sockets {
            socket.send_to(format!("message {n}").as_bytes(), target).unwrap();
        }
        let next = start + Duration::from_millis(10 * (n + 1));
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    seconds * 100
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_one_mad_sender_and_thousands_of_made_up_ones_twenty_lose_nothing() {
    let vector = FakeVector::keeping(is_well_behaved).await;
    let (listen, admin) = (free_udp(), free_tcp());
    let address = admin.to_string();
    let options = [
        "--workers",
        "2",
        "--receive-buffer-bytes",
        "1GiB",
        "--rate-limit-threshold",
        "1000",
        "--admin",
        &address,
    ];
    let mut run = Process::run(listen, vector.address, &options);
    run.wait_for_log("admin port");
    let before = counter(admin, "sluicegate_process_resident_memory_bytes");
    let mad =
        Process::start(&["load", &listen.to_string(), "--rate", "100000", "--seconds", "3", "--size", "200"]);
    let flood = thread::spawn(move || {
        for n in 0..made_up() {
            let source = Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 16, 0, 0)) + n);
            UdpSocket::bind((source, 0)).unwrap().send_to(b"made up", listen).unwrap();
        }
    });
    let each = tokio::task::spawn_blocking(move || send_well_behaved(listen, 4)).await.unwrap();
    flood.join().unwrap();
    let by_mad = mad.end().json()["sent"].as_u64().unwrap();
    let sent = by_mad + u64::from(made_up()) + 20 * each;
    let received = || counter(admin, "sluicegate_receive_datagrams_total");
    wait_until("all is received", || received() == sent as f64);
    let grown = counter(admin, "sluicegate_process_resident_memory_bytes") - before;
    let books = run.stop().json();
    assert_eq!(books["kernel_drops"], 0, "{books}");
    let number = |key: &str| books[key].as_u64().unwrap();
    assert_eq!(number("received"), number("delivered") + number("shed"), "{books}");
    assert_eq!(books["shed_by_reason"]["rate_limited"], number("shed"), "{books}");
    let let_in = number("delivered") - u64::from(made_up()) - 20 * each;
    assert!(let_in >= 1_000 && let_in <= by_mad / 2, "of the mad one's {by_mad}: {let_in}");

    let mut arrived = BTreeMap::<Vec<u8>, u64>::new();
    for log in vector.logs() {
        *arrived.entry(bytes(&log, "host").to_vec()).or_default() += 1;
    }
    assert_eq!(arrived.len(), 20);
    assert!(arrived.values().all(|count| *count == each), "{each} each: {arrived:?}");
    // Batches that wait are in it, too: far less than a word for each of a million senders would not show.
    assert!(grown < 100e6, "{grown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_changes_the_limit() {
    let vector = FakeVector::start().await;
    let (listen, admin) = (free_udp(), free_tcp());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let write = |threshold: &str| {
        let text = format!(
            "listeners = [{{ address = \"{listen}\" }}]\nvector.endpoints = [\"http://{}\"]\nrate_limit = {{ threshold = {threshold}, window_secs = 3600 }}",
            vector.address
        );
        std::fs::write(&file, text).unwrap();
    };
    write("5");
    let mut run = Process::start(&["run", "--config", file.to_str().unwrap(), "--admin", &admin.to_string()]);
    run.wait_for_log("admin port");
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sent = 0.0;
    let mut send = |count: usize| {
        for _ in 0..count {
            sender.send_to(b"x", listen).unwrap();
        }
        sent += count as f64;
        wait_until("all came", || counter(admin, "sluicegate_receive_datagrams_total") == sent);
        counter(admin, "sluicegate_shed_events_total{reason=\"rate_limited\"}")
    };
    assert_eq!(send(8), 3.0);
    write("20");
    let reloads = || counter(admin, "sluicegate_config_reloads_total{result=\"applied\"}");
    run.signal(Signal::HUP);
    wait_until("it is in force", || reloads() == 1.0);
    assert_eq!(send(21), 4.0, "another limit begins with full buckets");
    run.signal(Signal::HUP);
    wait_until("it was read again", || reloads() == 2.0);
    assert_eq!(send(1), 5.0, "the same limit goes on");
    write("0");
    run.signal(Signal::HUP);
    wait_until("it is in force", || reloads() == 3.0);
    assert_eq!(send(100), 5.0);
    assert!(!run.stderr().contains("need a restart"), "{}", run.stderr());
    let books = run.stop().json();
    assert_eq!((&books["delivered"], &books["shed"]), (&125.into(), &5.into()), "{books}");
}
