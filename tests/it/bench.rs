//! `bench`: short runs of every kind, and what it says when a stage does not do its part.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value as Json;

use crate::support::process::{Ended, Process};
use crate::support::{program, require};

const RSYSLOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/peers/rsyslog.sh");

fn bench(arguments: &[&str]) -> Ended {
    Process::start(&[&["bench", "--rate", "2000", "--seconds", "1", "--workers", "2"], arguments].concat())
        .end()
}

#[test]
fn a_peer_is_measured_beside_us_and_nothing_is_lost() {
    if !require(program("rsyslogd").is_some(), "rsyslogd") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (csv, report) = (path("csv"), path("json"));
    let ended = bench(&["--peer", RSYSLOG, "--csv", &csv, "--report", &report, "--", "--parse", "syslog"]);
    assert!(ended.status.success(), "{}", ended.stderr);
    let report: Json = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let outcomes = report["outcomes"].as_array().unwrap();
    let names: Vec<_> = outcomes.iter().map(|outcome| outcome["pipeline"].as_str().unwrap()).collect();
    assert_eq!(names, ["load → discard", "load → sluicegate → count-events", "load → rsyslog → count-lines"]);
    for outcome in outcomes {
        assert_eq!((&outcome["sent"], &outcome["arrived"]), (&2_000.into(), &2_000.into()), "{outcome}");
        assert!(outcome["forwarder"]["peak_rss_kib"].as_u64().unwrap() > 0, "{outcome}");
        assert!(ended.stdout.contains(outcome["pipeline"].as_str().unwrap()));
    }
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 4);
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
}

#[test]
fn a_sweep_ends_at_the_rate_that_was_asked_for_where_nothing_is_lost() {
    let ended = bench(&["--plan", "sweep"]);
    assert!(ended.stdout.contains("sluicegate: no loss up to 2,000 a second"), "{}", ended.stdout);
    assert!(ended.stdout.contains("discard: no loss up to 2,000 a second"), "{}", ended.stdout);
}

fn script(at: &Path, text: &str) -> String {
    std::fs::write(at, text).unwrap();
    std::fs::set_permissions(at, PermissionsExt::from_mode(0o755)).unwrap();
    at.to_str().unwrap().to_owned()
}

#[test]
fn a_stage_that_fails_is_named_and_nothing_stays_behind() {
    let directory = tempfile::tempdir().unwrap();
    let peer = script(&directory.path().join("peer.sh"), "#!/bin/sh\necho nonsense >&2\nexit 3\n");
    let ended = bench(&["--peer", &peer]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("nonsense") && ended.stderr.contains("`peer` ended early"),
        "{}",
        ended.stderr
    );
    let unknown = bench(&["--", "--no-such-option"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(unknown.stderr.contains("no-such-option"), "{}", unknown.stderr);
    for (arguments, says) in [
        (["--peer", "/no/such/script"], "is no file"),
        (["--pin", "0/1"], "three lists of cores"),
        (["--rate", "0"], "measures nothing"),
    ] {
        let refused = Process::start(&[&["bench"], &arguments[..]].concat()).end();
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
}
