//! Health as real clients see it, from start to shutdown: gRPC from Python's grpcio, HTTP from curl.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;

use rustix::process::Signal;

use crate::support::process::Process;
use crate::support::{free_tcp, free_udp, program, require, wait_until};

pub const CLIENT: &str = r#"
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
check = channel.unary_unary('/grpc.health.v1.Health/Check',
    request_serializer=lambda name: bytes([10, len(name)]) + name.encode() if name else b'',
    response_deserializer=lambda answer: {b'\x08\x01': 'SERVING', b'\x08\x02': 'NOT_SERVING'}[answer])
print(*(check(name, timeout=5) for name in ('', 'liveness', 'readiness')))
"#;

pub fn has_clients() -> bool {
    let grpc = Command::new("/usr/bin/python3").args(["-c", "import grpc"]).status();
    require(
        grpc.is_ok_and(|status| status.success()) && program("curl").is_some(),
        "curl and Debian's python3-grpcio",
    )
}

/// What gRPC says of ``, `liveness` and `readiness`.
fn grpc(admin: SocketAddr) -> String {
    let output = Command::new("/usr/bin/python3").args(["-c", CLIENT, &admin.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The status that curl sees, as Kubernetes' probes would.
fn http(admin: SocketAddr, path: &str) -> String {
    let url = format!("http://{admin}{path}");
    let output = Command::new("curl").args(["-s", "-o", "/dev/null", "-w", "%{http_code}", &url]).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

fn start(listen: SocketAddr, admin: SocketAddr, more: &[&str]) -> Process {
    let admin = admin.to_string();
    let mut run = Process::run(listen, free_tcp(), &[&["--admin", &admin, "--workers", "2"], more].concat());
    run.wait_for_log("admin port");
    run
}

const WELL: &str = "SERVING SERVING SERVING";
const UNREADY: &str = "NOT_SERVING SERVING NOT_SERVING";

#[test]
fn start_ready_queue_over_its_mark_shutdown() {
    if !has_clients() {
        return;
    }
    let (listen, admin) = (free_udp(), free_tcp());
    let run = start(listen, admin, &["--buffer-max-bytes", "300KB", "--shutdown-timeout", "20"]);
    wait_until("gRPC says that it is well", || grpc(admin) == WELL);
    assert_eq!((http(admin, "/livez"), http(admin, "/readyz")), ("200".into(), "200".into()));
    Process::start(&["load", &listen.to_string(), "--count", "2000", "--rate", "20000"]).end();
    wait_until("gRPC says that it is full", || grpc(admin) == UNREADY);
    assert_eq!((http(admin, "/livez"), http(admin, "/readyz")), ("200".into(), "503".into()));
    run.signal(Signal::TERM);
    wait_until("it is stopping", || run.stderr().contains("stopping"));
    wait_until("gRPC says so", || grpc(admin) == UNREADY);
    assert_eq!((http(admin, "/livez"), http(admin, "/readyz")), ("200".into(), "503".into()));
    drop(run); // Vector never comes
}

/// A worker that is inside a VRL program for ever, with datagrams waiting.
#[test]
fn a_wedged_worker_is_not_live_and_the_process_still_ends() {
    if !has_clients() {
        return;
    }
    let long = "list = split(\"0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9\", \",\")\n";
    let loops = "for_each(list) -> |_i, _v| { ".repeat(12) + ". = . " + &"}".repeat(12);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wedge.vrl");
    std::fs::write(&file, format!("{long}if .message == \"wedge\" {{ {loops} }}\n")).unwrap();
    let (listen, admin) = (free_udp(), free_tcp());
    let more = ["--program", file.to_str().unwrap(), "--shutdown-timeout", "1"];
    let run = start(listen, admin, &more);
    wait_until("it is well", || grpc(admin) == WELL);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"wedge", listen).unwrap();
    wait_until("a worker is stuck and no longer live", || {
        sender.send_to(b"next", listen).unwrap();
        http(admin, "/livez") == "503"
    });
    wait_until("gRPC says so too", || grpc(admin) == "NOT_SERVING NOT_SERVING SERVING");
    let ended = run.stop();
    assert!(ended.stderr.contains("does not come back"), "{}", ended.stderr);
    let books = ended.json();
    let accounted = books["shed"].as_u64().unwrap() + books["in_memory"].as_u64().unwrap();
    assert_eq!(books["received"].as_u64().unwrap(), accounted, "{books}");
}
