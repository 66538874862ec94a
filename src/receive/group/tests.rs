use std::net::UdpSocket;

use super::*;

fn free_port() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn queued(group: &Group) -> Vec<bool> {
    group.memory().map(|memory| memory.queued > 0).collect()
}

#[test]
fn one_flow_reaches_every_socket_under_spread_and_one_under_flow() {
    for (steering, sockets) in [(Steering::Spread, 4), (Steering::Flow, 1)] {
        let address = free_port();
        let listener = Listener { workers: 4, steering, ..Listener::new(address) };
        let group = Group::open(&listener, false).unwrap();
        assert_eq!(group.steering, steering);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..200 {
            sender.send_to(b"one flow", address).unwrap();
        }
        assert_eq!(queued(&group).iter().filter(|queued| **queued).count(), sockets);
    }
}

#[test]
fn a_dual_stack_wildcard_takes_both_families() {
    let port = free_port().port();
    let listener = Listener { workers: 1, ..Listener::new(format!("[::]:{port}").parse().unwrap()) };
    let group = Group::open(&listener, true).unwrap();
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"four", ("127.0.0.1", port)).unwrap();
    assert_eq!(queued(&group), [true]);
}

#[test]
fn a_taken_port_is_refused_with_what_to_do() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = Listener::new(taken.local_addr().unwrap());
    let error = Group::open(&listener, false).unwrap_err().to_string();
    assert!(error.contains("ss -lunp"), "{error}");
    let elsewhere = Listener::new("192.0.2.1:5514".parse().unwrap());
    let error = Group::open(&elsewhere, false).unwrap_err().to_string();
    assert!(error.contains("no address of this machine"), "{error}");
}
