//! What the documents show is what works.

use std::process::{Command, Stdio};

use serde_json::Value as Json;

use crate::support::process::Process;
use crate::support::{free_tcp, free_udp, wait_until};

fn file(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_readmes_vector_configuration_is_the_shipped_one() {
    let shipped = file("vector-config/vector.toml");
    let after_comment = shipped.split_once("\n\n").unwrap().1;
    assert!(file("README.md").contains(&format!("```toml\n{after_comment}```")));
    let parsed: toml::Table = shipped.parse().unwrap();
    assert_eq!(parsed["sources"]["sluicegate"]["type"].as_str(), Some("vector"));
}

/// The shipped example says every default, so that a person can see and change it.
#[test]
fn the_example_configuration_is_the_defaults() {
    let shown = |arguments: &[&str]| Process::start(&[&["config"], arguments].concat()).end().stdout;
    let path = format!("{}/docs/sluicegate.toml", env!("CARGO_MANIFEST_DIR"));
    let defaults = shown(&["--listen", "[::]:5514", "--vector", "http://127.0.0.1:6000"]);
    assert_eq!(shown(&["--config", &path]), defaults);
    let example = file("docs/sluicegate.toml");
    let keys = |text: &str| {
        let key = |line: &str| line.split_once(" = ").map(|(key, _)| key.trim_start_matches("# ").to_owned());
        text.lines()
            .filter(|line| !line.starts_with("# ") || line.starts_with("# workers = "))
            .filter_map(key)
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&example), keys(&defaults), "the example should be:\n{defaults}");
}

#[test]
fn ci_runs_the_readmes_test_command() {
    assert!(file("README.md").contains("```sh\ncargo test\n```"));
    assert!(file(".ci/run").lines().any(|line| line == "cargo test --locked"));
    assert!(file("justfile").contains("    cargo test --locked\n"));
}

/// With VECTOR_BIN naming a Vector, the shipped configuration takes what sluicegate sends.
#[test]
fn a_real_vector_takes_it() {
    let Some(vector) = std::env::var_os("VECTOR_BIN") else {
        eprintln!("passed over: VECTOR_BIN names no Vector");
        return;
    };
    let (listen, address) = (free_udp(), free_tcp());
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("vector.toml");
    std::fs::write(
        &config,
        file("vector-config/vector.toml").replace("127.0.0.1:6000", &address.to_string()),
    )
    .unwrap();
    let mut command = Command::new(vector);
    command.arg("--config").arg(&config).arg("--quiet").stdin(Stdio::null());
    let vector = Process::spawn(command);
    let run = Process::run(listen, address, &["--workers", "2", "--receive-buffer-bytes", "1GiB"]);
    let target = listen.to_string();
    let sent =
        Process::start(&["load", &target, "--rate", "20000", "--seconds", "3", "--size", "300"]).end().json();
    wait_until("Vector is up", || run.stderr().contains("connected"));
    let books = run.stop().json();
    assert_eq!((&books["received"], &books["delivered"]), (&sent["sent"], &sent["sent"]), "{books}");
    wait_until("Vector has printed it all", || vector.stdout().lines().count() >= 60_000);
    for line in vector.stop().stdout.lines() {
        let event: Json = serde_json::from_str(line).unwrap();
        assert_eq!((&event["source_type"], &event["host"]), (&"socket".into(), &"127.0.0.1".into()));
    }
}
