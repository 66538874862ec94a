use std::net::UdpSocket;
use std::os::fd::AsFd;

use super::*;
use crate::socket::options;

fn pair(bind: &str, target: &str) -> (UdpSocket, UdpSocket) {
    let receiver = UdpSocket::bind(bind).unwrap();
    let port = receiver.local_addr().unwrap().port();
    let sender = UdpSocket::bind(target).unwrap();
    sender.connect((sender.local_addr().unwrap().ip(), port)).unwrap();
    (receiver, sender)
}

#[test]
fn takes_many_datagrams_at_once_and_again() {
    let (receiver, sender) = pair("127.0.0.1:0", "127.0.0.1:0");
    let mut slots = Slots::new(4, 65_507);
    for round in 0u8..3 {
        for i in 0..6 {
            sender.send(&[round, i]).unwrap();
        }
        assert_eq!(slots.receive(receiver.as_fd()).unwrap(), 4);
        let first: Vec<_> = slots.datagrams().map(|d| d.payload.to_vec()).collect();
        assert_eq!(first, [[round, 0], [round, 1], [round, 2], [round, 3]]);
        assert!(slots.datagrams().all(|d| d.peer == sender.local_addr().unwrap() && !d.truncated));
        assert_eq!(slots.receive(receiver.as_fd()).unwrap(), 2);
        assert_eq!(slots.receive(receiver.as_fd()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(slots.datagrams().count(), 0);
    }
}

#[test]
fn a_longer_datagram_is_cut_and_says_so() {
    let (receiver, sender) = pair("127.0.0.1:0", "127.0.0.1:0");
    let mut slots = Slots::new(2, 100);
    sender.send(&[7; 101]).unwrap();
    sender.send(&[7; 100]).unwrap();
    assert_eq!(slots.receive(receiver.as_fd()).unwrap(), 2);
    let seen: Vec<_> = slots.datagrams().map(|d| (d.payload.len(), d.truncated)).collect();
    assert_eq!(seen, [(100, true), (100, false)]);
}

#[test]
fn the_kernel_stamps_each_datagram() {
    let (receiver, sender) = pair("127.0.0.1:0", "127.0.0.1:0");
    let mut slots = Slots::new(2, 100);
    sender.send(b"unstamped").unwrap();
    slots.receive(receiver.as_fd()).unwrap();
    assert_eq!(slots.datagrams().next().unwrap().received, None);

    options::enable_timestamps(receiver.as_fd()).unwrap();
    let before = Timestamp::now();
    sender.send(b"stamped").unwrap();
    slots.receive(receiver.as_fd()).unwrap();
    // The kernel switches stamping on in the background: the first datagram may be stamped as it is read.
    let after = Timestamp::now();
    let received = slots.datagrams().next().unwrap().received.unwrap();
    assert!(before <= received && received <= after, "{before:?} {received:?} {after:?}");
}

#[test]
fn mapped_peers_are_ipv4_and_others_stay() {
    let (receiver, sender) = pair("[::]:0", "127.0.0.1:0");
    let mut slots = Slots::new(2, 100);
    sender.send(b"four").unwrap();
    let port = receiver.local_addr().unwrap().port();
    let six = UdpSocket::bind("[::1]:0").unwrap();
    six.send_to(b"six", ("::1", port)).unwrap();
    assert_eq!(slots.receive(receiver.as_fd()).unwrap(), 2);
    let peers: Vec<_> = slots.datagrams().map(|d| d.peer).collect();
    assert_eq!(peers, [sender.local_addr().unwrap(), six.local_addr().unwrap()]);
}

#[test]
fn an_empty_datagram_is_a_datagram() {
    let (receiver, sender) = pair("127.0.0.1:0", "127.0.0.1:0");
    let mut slots = Slots::new(2, 100);
    sender.send(b"").unwrap();
    assert_eq!(slots.receive(receiver.as_fd()).unwrap(), 1);
    assert_eq!(slots.datagrams().next().unwrap().payload, b"");
}
