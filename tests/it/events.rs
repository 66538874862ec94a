//! Each datagram arrives as the event that Vector's `socket` source makes of it, byte for byte.

use std::collections::BTreeMap;
use std::future::pending;
use std::net::UdpSocket;
use std::time::{SystemTime, UNIX_EPOCH};

use sluicegate::books::Report;
use sluicegate::config::{Config, Listener};
use sluicegate::pipeline::Pipeline;
use sluicegate::proto::event::{Log, value::Kind};

use crate::support::free_udp;
use crate::support::scenario::config;
use crate::support::vector::{FakeVector, bytes};

async fn deliver(change: impl FnOnce(&mut Config), send: impl FnOnce(&[u16])) -> (Vec<Log>, Report) {
    let vector = FakeVector::start().await;
    let mut config = config(vector.address);
    change(&mut config);
    let pipeline = Pipeline::start(&config).unwrap();
    let ports: Vec<_> = pipeline.addresses().map(|address| address.port()).collect();
    send(&ports);
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    assert!(report.balances(), "{report:?}");
    (vector.logs(), report)
}

fn hostile() -> Vec<Vec<u8>> {
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut all = vec![
        b"x".to_vec(),
        b"\0".to_vec(),
        vec![0; 1_000],
        b"\xff\xfe\xc0\x80 not UTF-8".to_vec(),
        b"two\nlines\r\n".to_vec(),
        every_byte.repeat(255),
        vec![b'L'; 65_507],
    ];
    all.extend((0..=255u8).map(|byte| vec![byte]));
    all.extend((1..300).map(|length| vec![b'n'; length]));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_datagrams_arrive_byte_for_byte() {
    let count = |messages: &mut dyn Iterator<Item = Vec<u8>>| {
        messages.fold(BTreeMap::new(), |mut counts: BTreeMap<_, u64>, message| {
            *counts.entry(message).or_default() += 1;
            counts
        })
    };
    let (logs, report) = deliver(
        |_| {},
        |ports| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            for datagram in hostile() {
                socket.send_to(&datagram, ("127.0.0.1", ports[0])).unwrap();
                socket.send_to(b"", ("127.0.0.1", ports[0])).unwrap();
            }
        },
    )
    .await;
    let sent = hostile();
    assert_eq!(
        (report.received, report.delivered, report.empty),
        (sent.len() as u64, sent.len() as u64, sent.len() as u64)
    );
    let arrived = count(&mut logs.iter().map(|log| bytes(log, "message").to_vec()));
    assert!(arrived == count(&mut sent.into_iter()), "something was changed on the way");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_is_the_socket_sources() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = socket.local_addr().unwrap();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i128;
    let before = now();
    let send = |ports: &[u16]| {
        socket.send_to(b"<13>hello", ("127.0.0.1", ports[0])).unwrap();
    };
    let (logs, _) = deliver(|_| {}, send).await;
    let [log] = &logs[..] else { panic!("{logs:?}") };
    let keys: Vec<_> = log.fields.keys().map(String::as_str).collect();
    assert_eq!(keys, ["host", "message", "port", "source_type", "timestamp"]);
    assert_eq!(bytes(log, "message"), b"<13>hello");
    assert_eq!(bytes(log, "host"), b"127.0.0.1");
    assert_eq!(bytes(log, "source_type"), b"socket");
    assert_eq!(log.fields["port"].kind, Some(Kind::Integer(peer.port().into())));
    let Some(Kind::Timestamp(time)) = &log.fields["timestamp"].kind else { panic!("{log:?}") };
    let received = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    assert!((before..=now()).contains(&received), "{time:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_addresses_and_both_families() {
    for reverse in [false, true] {
        several_addresses(reverse).await;
    }
}

async fn several_addresses(reverse: bool) {
    let (both, six) = (free_udp().port(), free_udp().port());
    let listener = |text: String| Listener { workers: 2, ..Listener::new(text.parse().unwrap()) };
    let change = |config: &mut Config| {
        // [::] takes IPv4 too, unless that port has a listener of its own for IPv4.
        let mut listeners = [format!("[::]:{both}"), format!("[::]:{six}"), format!("127.0.0.1:{six}")];
        if reverse {
            listeners.reverse();
        }
        config.listeners = listeners.map(listener).into();
    };
    let send = |_: &[u16]| {
        let v4 = UdpSocket::bind("127.0.0.1:0").unwrap();
        let v6 = UdpSocket::bind("[::1]:0").unwrap();
        v4.send_to(b"four to both", ("127.0.0.1", both)).unwrap();
        v6.send_to(b"six to both", ("::1", both)).unwrap();
        v4.send_to(b"four to its own", ("127.0.0.1", six)).unwrap();
        v6.send_to(b"six to its own", ("::1", six)).unwrap();
    };
    let (logs, report) = deliver(change, send).await;
    let mut seen: Vec<_> = logs
        .iter()
        .map(|log| {
            let text = |field| String::from_utf8(bytes(log, field).to_vec()).unwrap();
            (text("message"), text("host"))
        })
        .collect();
    seen.sort();
    let expected = [
        ("four to both", "127.0.0.1"),
        ("four to its own", "127.0.0.1"),
        ("six to both", "::1"),
        ("six to its own", "::1"),
    ];
    assert_eq!(seen, expected.map(|(message, host)| (message.to_owned(), host.to_owned())));
    let by_listener = |address: &str| -> u64 {
        report.workers.iter().filter(|w| w.listener == address).map(|w| w.received).sum()
    };
    assert_eq!(by_listener(&format!("[::]:{both}")), 2);
    assert_eq!(by_listener(&format!("[::]:{six}")), 1);
    assert_eq!(by_listener(&format!("127.0.0.1:{six}")), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn longer_than_max_length_is_counted_and_nothing_else_suffers() {
    let send = |ports: &[u16]| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for length in [99, 100, 101, 5_000, 1] {
            socket.send_to(&vec![b'x'; length], ("127.0.0.1", ports[0])).unwrap();
        }
    };
    let (logs, report) = deliver(|config| config.listeners[0].max_length = 100, send).await;
    let mut lengths: Vec<_> = logs.iter().map(|log| bytes(log, "message").len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [1, 99, 100]);
    assert_eq!((report.received, report.delivered, report.shed), (5, 3, 2));
    assert_eq!(report.shed_by_reason["too_long"], 2);
}
