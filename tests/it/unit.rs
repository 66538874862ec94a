//! The unit: taken by systemd's own tools, and closed to what the program does not do. There is no systemd as process 1 here.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::admin::{counter, get};
use crate::support::documents::text_of as file;
use crate::support::process::{Process, binary};
use crate::support::tls::Files;
use crate::support::{free_tcp, free_udp, program, repository, require, wait_until};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What stands behind a key of the unit, each time that it is there.
fn values(key: &str) -> Vec<String> {
    let text = file("systemd/sluicegate.service");
    let found = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.map(str::to_owned).collect()
}

/// The unit, with this build's binary in the place of the installed one, and its socket unit beside it.
fn unit(files: &Files) -> PathBuf {
    files.put("sluicegate.socket", &file("systemd/sluicegate.socket"));
    let text = file("systemd/sluicegate.service").replace("/usr/bin/sluicegate", binary().to_str().unwrap());
    files.put("sluicegate.service", &text)
}

#[test]
fn systemd_takes_the_unit_and_finds_it_well_closed() {
    let analyze = program("systemd-analyze");
    if !require(analyze.is_some(), "systemd-analyze") {
        return;
    }
    let (files, analyze) = (Files::new(), analyze.unwrap());
    let unit = unit(&files);
    let verified = Command::new(&analyze).arg("verify").arg("--man=no").arg(&unit).output().unwrap();
    assert!(verified.status.success() && said(&verified).is_empty(), "{}", said(&verified));
    let security =
        Command::new(&analyze).args(["security", "--offline=yes", "--no-pager"]).arg(&unit).output();
    let said = said(&security.unwrap());
    let level = said.split("Overall exposure level for sluicegate.service: ").nth(1);
    let level: f64 = level.and_then(|rest| rest.split(' ').next()).unwrap_or(&said).parse().unwrap();
    assert!(level <= 2.0, "{said}"); // 1.6 by systemd 252
}

#[test]
fn the_packaged_configuration_is_taken_and_kept_where_the_unit_allows() {
    let path = repository("packaging/debian/sluicegate.toml").display().to_string();
    let shown = Process::start(&["config", "--config", &path]).end();
    assert!(shown.status.success(), "{}", shown.stderr);
    let config: toml::Table = shown.stdout.parse().unwrap();
    // systemd holds a socket for each worker, so that a restart keeps them all.
    let listener = &config["listeners"][0];
    let sockets = file("systemd/sluicegate.socket");
    let bound: Vec<_> = sockets.lines().filter_map(|line| line.strip_prefix("ListenDatagram=")).collect();
    assert_eq!(
        bound,
        vec![listener["address"].as_str().unwrap(); listener["workers"].as_integer().unwrap() as usize]
    );
    let unit = file("systemd/sluicegate.service");
    let state = unit.lines().find_map(|line| line.strip_prefix("StateDirectory=")).unwrap();
    assert_eq!(config["data_dir"].as_str().unwrap(), format!("/var/lib/{state}"));
    assert!(unit.contains("\nExecStart=/usr/bin/sluicegate run --config /etc/sluicegate/sluicegate.toml\n"));
    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
    assert!(stop.parse::<i64>().unwrap() > config["shutdown"]["timeout_secs"].as_integer().unwrap());
    assert!(!unit.contains("ProcSubset=pid\n"), "/proc/net has counters that are exported");
}

/// The system calls of these sets, and of the sets in them (systemd.exec(5), SystemCallFilter).
fn calls_in(sets: &[&str]) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for set in sets {
        let output =
            Command::new(program("systemd-analyze").unwrap()).args(["syscall-filter", set]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        for word in
            text.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            match word.starts_with('@') {
                true => calls.extend(calls_in(&[word])),
                false => drop(calls.insert(word.to_owned())),
            }
        }
    }
    calls
}

/// What it does from start to stop, with a spool, metrics and a reload, is within what the unit allows.
#[test]
fn the_unit_allows_all_that_it_does() {
    let strace = program("strace");
    if !require(strace.is_some() && program("systemd-analyze").is_some(), "strace and systemd-analyze") {
        return;
    }
    let (files, listen, vector, admin) = (Files::new(), free_udp(), free_tcp(), free_tcp());
    let (trace, spool) = (files.path().join("trace"), files.path().join("spool"));
    let config = files.put("sluicegate.toml", &format!(
        "data_dir = {spool:?}\n[[listeners]]\naddress = \"{listen}\"\n[parse]\nmode = \"syslog\"\n[buffer]\nwhen_full = \"overflow\"\n\
         max_bytes = \"100KB\"\n[vector]\nendpoints = [\"http://localhost:{}\"]\n[admin]\naddress = \"{admin}\"\n",
        vector.port()
    ));
    let mut command = Command::new(strace.unwrap());
    command
        .args(["-f", "-qq", "-s", "0", "-o"])
        .arg(&trace)
        .arg(binary())
        .args(["run", "--config"])
        .arg(&config);
    let mut run = Process::spawn(command);
    run.wait_for_log("admin port");
    Process::start(&["load", &listen.to_string(), "--count", "3000", "--rate", "3000"]).end();
    wait_until("some of it is on disk", || counter(admin, "sluicegate_spool_events") > 0.0);
    let receive = Process::receive(vector, "--count");
    let received = counter(admin, "sluicegate_receive_datagrams_total");
    wait_until("all is delivered", || counter(admin, "sluicegate_push_delivered_events_total") == received);
    let traced = std::fs::read_to_string(&trace).unwrap();
    let child = traced.split_whitespace().next().unwrap().parse().unwrap();
    let child = Pid::from_raw(child).unwrap();
    let signal = |signal| kill_process(child, signal).unwrap();
    signal(Signal::HUP);
    wait_until("it has read its file again", || counter(admin, "sluicegate_config_reloads_total") == 1.0);
    assert_eq!(get(admin, "/readyz").0, 200);
    signal(Signal::TERM);
    assert!(run.end().status.success());
    receive.stop();

    let filters = values("SystemCallFilter");
    let sets = |text: &str| calls_in(&text.split(' ').collect::<Vec<_>>());
    let (allowed, refused) = (sets(&filters[0]), sets(filters[1].strip_prefix('~').unwrap()));
    let families = values("RestrictAddressFamilies").concat();
    let mut used = BTreeSet::new();
    for line in std::fs::read_to_string(&trace).unwrap().lines() {
        let Some((_, what)) = line.split_once(' ') else { continue };
        let Some((name, arguments)) = what.trim_start().split_once('(') else { continue };
        if name.starts_with('<') || name.starts_with('+') || name.starts_with('-') {
            continue;
        }
        used.insert(name.to_owned());
        let executable = arguments.contains("PROT_WRITE|PROT_EXEC")
            || (name == "mprotect" && arguments.contains("PROT_EXEC"));
        assert!(!executable, "MemoryDenyWriteExecute refuses {line}");
        if name == "socket" {
            let family = arguments.split(',').next().unwrap();
            assert!(families.split(' ').any(|known| known == family), "{line}");
        }
    }
    assert!(used.contains("recvmmsg") && used.len() > 40, "{used:?}");
    let outside: Vec<_> =
        used.iter().filter(|name| !allowed.contains(*name) || refused.contains(*name)).collect();
    assert!(outside.is_empty(), "{outside:?}");
}
