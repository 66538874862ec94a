//! The command line as a person meets it: one clear line for each mistake, and a demo that works.

use std::net::UdpSocket;
use std::process::Command;

use crate::support::process::{Ended, Process, as_nobody, binary};
use crate::support::{free_tcp, free_udp};

fn fails(arguments: &[&str], code: i32, says: &[&str]) {
    assert_failure(&Process::start(arguments).end(), code, says);
}

fn assert_failure(ended: &Ended, code: i32, says: &[&str]) {
    assert_eq!(ended.status.code(), Some(code), "{}", ended.stderr);
    let lines: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with("sluicegate: ")).collect();
    let [line] = lines[..] else { panic!("not one clear line: {}", ended.stderr) };
    for text in says {
        assert!(line.contains(text), "{line:?} does not say {text:?}");
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

#[test]
fn mistakes_are_answered_with_one_line_that_says_what_to_do() {
    let vector = ["--vector", "http://127.0.0.1:6000"];
    let run = |more: &[&'static str]| [&["run"][..], &vector, more].concat();
    fails(&run(&["--listen", "nonsense"]), 2, &["--listen", "nonsense"]);
    fails(&run(&["--listen", "127.0.0.1:99999"]), 2, &["--listen"]);
    fails(&run(&["--listen", "127.0.0.1:0"]), 2, &["name one, such as"]);
    fails(&run(&["--listen", "192.0.2.1:5514"]), 1, &["192.0.2.1", "ip addr"]);
    fails(&run(&["--listen", "127.0.0.1:5514", "--bogus"]), 2, &["--bogus", "--help"]);
    fails(&run(&["--listen", "127.0.0.1:5514", "--workers", "0"]), 2, &["--workers", "1 to 256"]);
    fails(&run(&["--listen", "127.0.0.1:5514", "--steering", "random"]), 2, &["spread, flow, cpu"]);
    fails(&run(&["--listen", "127.0.0.1:5514", "--batch-max-bytes", "64MB"]), 2, &["--batch-max-bytes"]);
    fails(&["run", "--listen", "127.0.0.1:5514"], 2, &["--vector"]);
    fails(&["run", "--listen", "127.0.0.1:5514", "--vector", "vector:6000"], 2, &["http://127.0.0.1:6000"]);
    fails(&["load", "127.0.0.1:5514", "--size", "5"], 2, &["--size 5", "56 to 65507"]);
    fails(&["load", "no-such-name.invalid:5514"], 1, &["no-such-name.invalid", "IP:PORT"]);
    fails(&["load", "127.0.0.1:5514", "--corpus", "/nonexistent"], 1, &["/nonexistent"]);
    fails(&["receive", "192.0.2.1:6000"], 1, &["192.0.2.1:6000"]);
    fails(&["frobnicate"], 2, &["frobnicate"]);
}

#[test]
fn a_taken_port_and_a_second_sluicegate_are_refused() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let vector = format!("http://{}", free_tcp());
    fails(&["run", "--listen", &address, "--vector", &vector], 1, &[&address, "ss -lunp"]);

    let listen = free_udp();
    let first = Process::run(listen, free_tcp(), &[]);
    let listen = listen.to_string();
    fails(&["run", "--listen", &listen, "--vector", &vector], 1, &["second listener"]);
    assert!(first.stop().status.success());
}

#[test]
fn a_privileged_port_says_which_three_ways_there_are() {
    let arguments = ["run", "--listen", "127.0.0.1:514", "--vector", "http://127.0.0.1:6000"];
    let Some((command, _directory)) = as_nobody(&arguments) else { return };
    let says = ["CAP_NET_BIND_SERVICE", "net.ipv4.ip_unprivileged_port_start=514", "5514"];
    assert_failure(&Process::spawn(command).end(), 1, &says);
}

#[test]
fn an_unreachable_vector_is_said_and_waited_for() {
    let listen = free_udp().to_string();
    let mut run =
        Process::start(&["run", "--listen", &listen, "--vector", "http://no-such-name.invalid:6000"]);
    run.wait_for_log("cannot look the name up");
    let stderr = run.stderr();
    assert!(stderr.contains("no-such-name.invalid") && stderr.contains("cannot be resolved"), "{stderr}");
    assert!(run.stop().status.success());
}

#[test]
fn the_demo_shows_the_books() {
    let ended =
        Process::start(&["demo", "--rate", "20000", "--seconds", "1", "--receive-buffer-bytes", "1GiB"])
            .end();
    assert!(ended.status.success(), "{}", ended.stderr);
    let row = |name: &str| {
        let row = ended.stdout.lines().find_map(|line| line.trim_start().strip_prefix(name));
        let row = row.unwrap_or_else(|| panic!("no row {name:?} in {}", ended.stdout));
        row.split_whitespace().next().unwrap().replace(',', "")
    };
    assert_eq!(["sent", "received", "delivered", "arrived, each counted once"].map(row), ["20000"; 4]);
    assert_eq!(["dropped by the kernel", "rejected", "shed", "in memory", "lost"].map(row), ["0"; 5]);
    assert!(ended.stdout.contains("The books balance"), "{}", ended.stdout);
}

#[test]
fn stdout_prints_each_event_and_then_the_books() {
    let listen = free_udp();
    let mut run = Process::start(&["run", "--listen", &listen.to_string(), "--stdout"]);
    run.wait_for_log("listening");
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"<13>hello", listen).unwrap();
    let ended = run.stop();
    let lines: Vec<serde_json::Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [event, books] = &lines[..] else { panic!("{}", ended.stdout) };
    assert_eq!(event["message"], "<13>hello");
    assert_eq!(event["host"], "127.0.0.1");
    assert_eq!((&books["received"], &books["delivered"]), (&1.into(), &1.into()));
    for key in [
        "received",
        "delivered",
        "rejected",
        "shed",
        "spooled",
        "kernel_drops",
        "parse_failures",
        "received_bytes",
        "cpu_us_per_event",
    ] {
        assert!(books[key].is_number(), "{key} is missing in {books}");
    }
}

#[test]
fn a_reader_that_goes_or_stalls_does_not_keep_it_alive() {
    for (reader, code) in [("head -1", Some(1)), ("sleep 20", None)] {
        let listen = free_udp();
        let mut command = Command::new("sh");
        let run = format!(
            "{} run --stdout --listen {listen} --shutdown-timeout 2; echo \"code $?\" >&2",
            binary().display()
        );
        command.args(["-c", &format!("({run}) | {reader}")]);
        let mut shell = Process::spawn(command);
        shell.wait_for_log("listening");
        let load = ["load", &listen.to_string(), "--count", "20000", "--rate", "50000"].map(str::to_owned);
        let load = load.each_ref().map(String::as_str);
        Process::start(&load).end();
        if code.is_none() {
            let name = format!("run --stdout --listen {listen}");
            Command::new("pkill")
                .args(["-TERM", "-f", &format!("^[^ ]*sluicegate {name}")])
                .status()
                .unwrap();
        }
        let stderr = shell.end().stderr;
        assert!(stderr.contains("code 1"), "{stderr}");
    }
}

#[test]
fn a_demo_that_cannot_be_is_refused_in_one_line() {
    fails(&["demo", "--size", "5"], 2, &["--size 5", "56 to 65507"]);
    fails(&["demo", "--rate", "0"], 2, &["--rate 0"]);
}
