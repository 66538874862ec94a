//! `sluicegate top`: true numbers, and a terminal that is as it was before.

use std::net::SocketAddr;
use std::process::Command;

use rustix::process::Signal;

use crate::support::process::{Process, binary};
use crate::support::{free_tcp, free_udp, program, require, wait_until};

fn run(listen: SocketAddr, vector: SocketAddr, admin: SocketAddr) -> Process {
    let options = ["--admin", &admin.to_string(), "--workers", "2", "--receive-buffer-bytes", "1GiB"];
    let mut run = Process::run(listen, vector, &options);
    run.wait_for_log("admin port");
    run
}

fn once(admin: SocketAddr) -> String {
    let ended = Process::start(&["top", &admin.to_string(), "--once", "--interval", "500ms"]).end();
    assert!(ended.status.success(), "{}", ended.stderr);
    ended.stdout
}

#[test]
fn once_prints_the_true_numbers() {
    let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let run = run(listen, vector, admin);
    let target = listen.to_string();
    let load = Process::start(&["load", &target, "--count", "30000", "--rate", "10000", "--size", "300"]);
    wait_until("a rate is shown while the load lasts", || {
        let frame = once(admin);
        assert!(load.is_running() || frame.contains("30,000"), "{frame}");
        let received = frame.lines().find(|line| line.starts_with("Received")).unwrap();
        let rate = received.split_whitespace().nth(1).unwrap().trim_end_matches("/s").replace(',', "");
        rate.parse::<f64>().is_ok_and(|rate| rate > 0.0)
    });
    assert_eq!(load.end().json()["sent"], 30_000);
    let mut frame = String::new();
    wait_until("all is delivered", || {
        frame = once(admin);
        frame.lines().any(|line| line.starts_with("Delivered") && line.ends_with(" 30,000"))
    });
    assert!(frame.lines().any(|line| line.starts_with("Received") && line.ends_with(" 30,000")), "{frame}");
    assert!(frame.lines().all(|line| line.chars().count() <= 80) && frame.lines().count() <= 24, "{frame}");
    for text in [&admin.to_string(), "live  ready", "Nothing is lost", "Workers (2)"] {
        assert!(frame.contains(text), "no {text:?} in\n{frame}");
    }
    let books = run.stop().json();
    assert_eq!((&books["received"], &books["kernel_drops"]), (&30_000.into(), &0.into()));
    receive.stop();
}

#[test]
fn what_is_not_there_or_is_no_terminal_is_said_in_one_line() {
    let nobody = free_tcp().to_string();
    let ended = Process::start(&["top", &nobody, "--once"]).end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains(&nobody) && ended.stderr.contains("--admin"), "{}", ended.stderr);
    let ended = Process::start(&["top", &nobody]).end();
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("--once"), "{}", ended.stderr);
    // Something else that speaks HTTP, though not this.
    let vector = free_tcp();
    let receive = Process::receive(vector, "--count");
    let ended = Process::start(&["top", &vector.to_string(), "--once"]).end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("does not answer as an admin port"), "{}", ended.stderr);
    receive.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_endpoints_and_probes_are_asked_for() {
    use axum::http::StatusCode;
    use axum::routing::get;
    let status = r#"{"version": "9.8.7", "uptime_secs": 61.5, "received": 10, "received_bytes": 1000, "delivered": 5,
        "rejected": 0, "shed": 0, "spooled": 0, "in_memory": 5, "kernel_drops": 0, "parse_failures": 0, "unheard_of": {},
        "push_latency_secs": {"p50": 0.004, "p99": null},
        "endpoints": [{"endpoint": "http://vector:6000", "state": "down", "connections": 3, "connected": 0,
                       "delivered": 5, "failures": 2, "last_error": "Connection refused"}]}"#;
    let senders = r#"{"by_messages": [{"sender": "192.0.2.77", "count": 8, "error": 1}], "by_bytes": []}"#;
    let router = axum::Router::new()
        .route("/status", get(status))
        .route("/top", get(senders))
        .route("/livez", get("ok\n"))
        .route("/readyz", get((StatusCode::SERVICE_UNAVAILABLE, "the queue is 95 % full\n")));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let admin = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let frame = tokio::task::spawn_blocking(move || once(admin)).await.unwrap();
    for text in [
        "sluicegate 9.8.7",
        "up 00:01:01",
        "live  NOT READY",
        "Not ready: the queue is 95 % full. No Vector is connected",
        "p50 4.0 ms   p99 -",
        "down 0/3",
        "Connection refused",
        "192.0.2.77                  ~8   80.0 %",
    ] {
        assert!(frame.contains(text), "no {text:?} in\n{frame}");
    }
}

/// A terminal: starts `top` in it, and does what each line of standard input says.
const TERMINAL: &str = include_str!("support/terminal.py");

/// `top` in a pseudo terminal, driven by these steps.
fn in_a_terminal(admin: SocketAddr, steps: &[&str]) -> Option<Process> {
    let Some(python) = program("python3") else {
        require(false, "python3");
        return None;
    };
    let mut command = Command::new(python);
    command.args(["-c", TERMINAL, &steps.join("\n")]);
    command.arg(binary()).args(["top", &admin.to_string(), "--interval", "100ms"]);
    Some(Process::spawn(command))
}

#[test]
fn in_a_terminal_it_follows_resizes_and_a_restart_and_leaves_no_trace() {
    let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp());
    let first = run(listen, vector, admin);
    let steps = [
        "see No Vector is connected",
        "size 60 200",
        "see Top senders by parse failures",
        "size 1 1",
        "size 5 20",
        "size 100 300",
        "see Top senders by bytes",
        "size 24 80",
        // A key that comes with a resize is read at once.
        "both s 24 79",
        "see Top senders by bytes",
        "both s 24 80",
        "see Top senders by parse failures",
        "both s 24 79",
        "see Top senders by messages",
        "both s 24 80",
        "see Top senders by bytes",
        "key p",
        "see PAUSED",
        "key p",
        "tell ready",
        "see UNREACHABLE",
        "see cannot reach the admin port",
        "tell gone",
        "see live  ready",
        "key q",
        "end 0",
    ];
    let Some(mut terminal) = in_a_terminal(admin, &steps) else { return };
    terminal.wait_for_log("ready");
    assert!(first.stop().status.success());
    terminal.wait_for_log("gone");
    let second = run(listen, vector, admin);
    let ended = terminal.end();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert!(second.stop().status.success());
}

#[test]
fn a_signal_restores_the_terminal_too() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let kill = format!("signal {}", signal.as_raw());
        let steps = ["see cannot reach the admin port", &kill, "end 0"];
        let Some(terminal) = in_a_terminal(free_tcp(), &steps) else { return };
        let ended = terminal.end();
        assert!(ended.status.success(), "{}", ended.stderr);
    }
    for key in ["\u{1b}", "\u{3}"] {
        let key = format!("key {key}");
        let Some(terminal) = in_a_terminal(free_tcp(), &["see cannot reach", &key, "end 0"]) else { return };
        let ended = terminal.end();
        assert!(ended.status.success(), "{}", ended.stderr);
    }
}
