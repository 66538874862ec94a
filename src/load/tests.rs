use std::collections::BTreeSet;
use std::net::UdpSocket;

use super::*;
use crate::socket::options::request_receive_buffer;

fn load(target: SocketAddr) -> Load {
    Load {
        target,
        rate: None,
        until: Until::Count(300),
        size: 200,
        flows: 1,
        seed: 1,
        corpus: None,
        segment: true,
    }
}

fn receive(load: impl Fn(SocketAddr) -> Load) -> (Sent, Vec<Vec<u8>>, usize) {
    use std::os::fd::AsFd;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    request_receive_buffer(socket.as_fd(), 4 << 20).unwrap();
    let sent = load(socket.local_addr().unwrap()).run(&AtomicBool::new(false)).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut buffer = vec![0; 65_536];
    let mut ports = BTreeSet::new();
    let mut messages = Vec::new();
    while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
        ports.insert(peer.port());
        messages.push(buffer[..length].to_vec());
    }
    (sent, messages, ports.len())
}

#[test]
fn numbers_every_message_in_pieces_or_one_by_one() {
    for segment in [true, false] {
        for flows in [1, 3] {
            let (sent, messages, ports) = receive(|target| Load { flows, segment, ..load(target) });
            assert_eq!((sent.sent, messages.len(), ports), (300, 300, flows));
            assert!(messages.iter().all(|message| message.len() == 200));
            let mut numbers = crate::receiver::Numbers::default();
            messages.iter().for_each(|message| numbers.see(message));
            let report = numbers.report().unwrap();
            assert_eq!((report.unique, report.missing, report.out_of_order), (300, 0, 0));
        }
    }
}

#[test]
fn a_rate_and_a_time_make_a_number() {
    let elapsed = Until::Elapsed(Duration::from_millis(200));
    let (sent, messages, _) = receive(|target| Load { rate: Some(1_000.0), until: elapsed, ..load(target) });
    assert_eq!((sent.sent, messages.len()), (200, 200));
    assert!(sent.seconds >= 0.19, "{sent:?}");
}

#[test]
fn a_corpus_is_sent_line_by_line_and_over_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"first\n\n<1>second \xff\n").unwrap();
    let corpus = Corpus::read(file.path()).unwrap();
    let (_, messages, _) =
        receive(|target| Load { until: Until::Count(3), corpus: Some(corpus.clone()), ..load(target) });
    assert_eq!(messages, [&b"first"[..], b"<1>second \xff", b"first"]);
    std::fs::write(file.path(), b"\n\n").unwrap();
    assert!(Corpus::read(file.path()).is_err());
}

#[test]
fn the_smallest_message_is_its_mark() {
    let (_, messages, _) = receive(|target| Load { size: MIN_SIZE, until: Until::Count(2), ..load(target) });
    assert!(messages.iter().all(|message| parse_marker(message).is_some()));
}
