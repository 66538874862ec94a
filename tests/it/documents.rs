//! What the documents show is what works: every command is typed, every configuration read.

use std::process::{Command, Stdio};

use serde_json::Value as Json;

use crate::support::documents::{blocks, documents, text_of as file};
use crate::support::manifests::{relative, rendered};
use crate::support::process::Process;
use crate::support::shell::Shell;
use crate::support::tls::Files;
use crate::support::{free_tcp, free_udp, wait_until};

/// In a shell whose `sluicegate` reads its arguments and whose other programs are known to be harmless.
#[test]
fn every_command_can_be_typed() {
    let Some(shell) = Shell::new() else { return };
    let mut typed = 0;
    for path in documents() {
        for block in blocks(&file(&path), "sh") {
            shell.run(&block).unwrap_or_else(|error| panic!("{path}:\n{block}\n{error}"));
            typed += 1;
        }
    }
    assert!(typed > 15, "{typed}");
    for wrong in [
        "sluicegate run --no-such",
        "sluicegate load 127.0.0.1:1 --rate fast",
        "frobnicate",
        "sluicegate run |",
    ] {
        assert!(shell.run(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn every_configuration_is_read() {
    let etc = Files::etc();
    let mut read = 0;
    for path in documents() {
        for block in blocks(&file(&path), "toml") {
            let table: toml::Table =
                block.parse().unwrap_or_else(|error| panic!("{path}:\n{block}\n{error}"));
            read += 1;
            if table.contains_key("sources") || table.contains_key("sinks") {
                let components =
                    table.values().filter_map(toml::Value::as_table).flat_map(|kind| kind.values());
                assert!(
                    components.map(|component| &component["type"]).all(toml::Value::is_str),
                    "{path}:\n{block}"
                );
                continue;
            }
            let config =
                etc.put("config.toml", &block.replace("/etc/sluicegate", etc.path().to_str().unwrap()));
            let mut arguments = vec!["config", "--config", config.to_str().unwrap()];
            if !table.contains_key("listeners") {
                arguments.extend(["--listen", "[::]:5514"]);
            }
            if table.get("vector").is_none_or(|vector| vector.get("endpoints").is_none()) {
                arguments.extend(["--vector", "http://127.0.0.1:6000"]);
            }
            let ended = Process::start(&arguments).end();
            assert!(ended.status.success(), "{path}:\n{block}\n{}", ended.stderr);
        }
        for block in blocks(&file(&path), "yaml") {
            let value: Json = serde_saphyr::from_str(&block).unwrap();
            assert_eq!(value["kind"], "Kustomization", "{path}:\n{block}");
            let own = Files::new();
            let shipped = relative(own.path(), ".").display().to_string();
            own.put("kustomization.yaml", &block.replace("../../k8s", shipped.trim_end_matches("/.")));
            let Some((text, _)) = rendered(own.path()) else { return };
            assert!(text.contains("image: ghcr.io/me/sluicegate:0.1.0"), "{text}");
            read += 1;
        }
    }
    assert!(read >= 5, "{read}");
}

#[test]
fn the_message_in_the_documents_comes_out_as_they_say() {
    let Some(shell) = Shell::new() else { return };
    let commands = blocks(&file("docs/parsing.md"), "sh");
    let event: Json = serde_json::from_str(&shell.run(&commands[0]).unwrap()).unwrap();
    assert_eq!((&event["header"], &event["severity"]), (&"1042".into(), &"notice".into()), "{event}");
    assert_eq!(event["parse_error"], "timestamp");
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
