//! Real senders: what they sent is what arrives.

use std::io::Write;
use std::net::UdpSocket;
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use crate::support::process::Process;
use crate::support::{free_udp, program, require, wait_until};

/// The messages of [`events`], unparsed.
fn messages(count: usize, send: impl FnOnce(&str, u16)) -> Vec<String> {
    let message = |event: &Json| event["message"].as_str().unwrap().to_owned();
    events("none", count, send).iter().map(message).collect()
}

/// Runs the sidecar while `send` sends to its port, until `count` events are there.
fn events(parse: &str, count: usize, send: impl FnOnce(&str, u16)) -> Vec<Json> {
    let listen = free_udp();
    let listen_text = listen.to_string();
    let options = ["run", "--listen", &listen_text, "--stdout", "--batch-timeout", "10ms", "--parse", parse];
    let mut run = Process::start(&options);
    run.wait_for_log("listening");
    send("127.0.0.1", listen.port());
    wait_until("every event is printed", || run.stdout().lines().count() >= count);
    let ended = run.stop();
    assert_eq!(ended.json()["received"], count, "{}", ended.stdout);
    ended.stdout.lines().take(count).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn logger_in_both_formats() {
    let Some(logger) = program("logger") else {
        require(false, "logger (Debian: bsdutils)");
        return;
    };
    for (format, begins) in [("--rfc3164", "<14>"), ("--rfc5424", "<14>1 ")] {
        let seen = messages(1, |host, port| {
            let to = ["--server", host, "--port", &port.to_string(), "--udp"];
            let what = ["--priority", "user.info", "--tag", "sluice", "hello from logger"];
            succeed(Command::new(&logger).arg(format).args(to).args(what));
        });
        assert!(seen[0].starts_with(begins) && seen[0].contains("sluice"), "{seen:?}");
        assert!(seen[0].ends_with("hello from logger"), "{seen:?}");
    }
}

#[test]
fn logger_parsed_in_both_formats() {
    let Some(logger) = program("logger") else {
        require(false, "logger (Debian: bsdutils)");
        return;
    };
    for format in ["--rfc3164", "--rfc5424"] {
        let seen = events("syslog", 1, |host, port| {
            let to = ["--server", host, "--port", &port.to_string(), "--udp"];
            let what = ["--priority", "local3.err", "--tag", "sluice", "--id=77", "hello from logger"];
            succeed(Command::new(&logger).arg(format).args(to).args(what));
        });
        let event = &seen[0];
        assert_eq!(event["message"], "hello from logger", "{event}");
        assert_eq!((&event["appname"], &event["procid"]), (&"sluice".into(), &77.into()), "{event}");
        assert_eq!((&event["facility"], &event["severity"]), (&"local3".into(), &"err".into()), "{event}");
        assert_eq!(
            (&event["source_type"], &event["source_ip"]),
            (&"syslog".into(), &"127.0.0.1".into()),
            "{event}"
        );
        assert_eq!(event["host"], event["hostname"], "{event}");
        assert!(event.get("parse_error").is_none(), "{event}");
    }
}

#[test]
fn pythons_syslog_handler() {
    let Some(python) = program("python3") else {
        require(false, "python3");
        return;
    };
    let script = "
import logging, logging.handlers, sys
handler = logging.handlers.SysLogHandler(address=(sys.argv[1], int(sys.argv[2])))
handler.ident = 'sluice: '
log = logging.getLogger(); log.addHandler(handler); log.setLevel(logging.INFO)
log.info('héllo wörld'); log.error('two\\nlines')
";
    let mut seen = messages(2, |host, port| {
        succeed(Command::new(&python).args(["-c", script, host, &port.to_string()]));
    });
    seen.sort(); // two workers: no order between two datagrams
    // The handler ends each message with NUL, which is part of what it sent.
    assert_eq!(seen, ["<11>sluice: two\nlines\0", "<14>sluice: héllo wörld\0"]);
}

#[test]
fn rsyslogd_forwarding() {
    let Some(rsyslogd) = program("rsyslogd") else {
        require(false, "rsyslogd (Debian: rsyslog)");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let (input, config) = (free_udp(), directory.path().join("rsyslog.conf"));
    let sent: Vec<String> =
        (0..50).map(|i| format!("<13>Nov 30 12:00:00 fw01 app[{i}]: message number {i}")).collect();
    let mut daemon = None;
    let mut seen = messages(50, |host, port| {
        let text = format!(
            "module(load=\"imudp\")\ninput(type=\"imudp\" address=\"127.0.0.1\" port=\"{}\")\n\
             template(name=\"raw\" type=\"string\" string=\"%rawmsg%\")\n\
             action(type=\"omfwd\" target=\"{host}\" port=\"{port}\" protocol=\"udp\" template=\"raw\")\n",
            input.port()
        );
        std::fs::write(&config, text).unwrap();
        let pid_file = directory.path().join("pid");
        let mut command = Command::new(&rsyslogd);
        command.arg("-n").arg("-f").arg(&config).arg("-i").arg(&pid_file);
        daemon = Some(Daemon(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()));
        let wanted = format!(":{:04X}", input.port());
        wait_until("rsyslogd listens", || {
            std::fs::read_to_string("/proc/net/udp").unwrap().contains(&wanted)
        });
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for message in &sent {
            socket.send_to(message.as_bytes(), input).unwrap();
        }
    });
    let mut sent = sent;
    seen.sort();
    sent.sort();
    assert_eq!(seen, sent);
}

struct Daemon(std::process::Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn loggen_with_datagrams() {
    let Some(loggen) = program("loggen") else {
        require(false, "loggen (Debian: syslog-ng-core; .ci/tools unpacks it)");
        return;
    };
    let mut lines = tempfile::NamedTempFile::new().unwrap();
    let sent: Vec<String> =
        (0..20).map(|i| format!("<38>Nov 30 12:00:00 fw01 prg{i}[1234]: line number {i}")).collect();
    writeln!(lines, "{}", sent.join("\n")).unwrap();
    let mut seen = messages(20, |host, port| {
        let options = [
            "--inet",
            "--dgram",
            "--rate",
            "1000",
            "--number",
            "20",
            "--dont-parse",
            "--quiet",
            "--read-file",
        ];
        succeed(Command::new(&loggen).args(options).arg(lines.path()).args([host, &port.to_string()]));
    });
    let mut sent: Vec<_> = sent.iter().map(|line| format!("{line}\n")).collect(); // loggen keeps the newline
    seen.sort();
    sent.sort();
    assert_eq!(seen, sent);
}
