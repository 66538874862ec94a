//! The configuration file: TOML and YAML, variables, flags and environment over it, every mistake at once.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::support::process::{Ended, Process, binary};

fn write(name: &str, text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

fn config(arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(binary());
    command.arg("config").args(arguments).envs(variables.iter().copied());
    Process::spawn(command).end()
}

fn shown(arguments: &[&str], variables: &[(&str, &str)]) -> toml::Table {
    let ended = config(arguments, variables);
    assert!(ended.status.success(), "{}", ended.stderr);
    ended.stdout.parse().unwrap()
}

const TOML: &str = r#"
[[listeners]]
address = "[::]:5514"
workers = 3
receive_buffer_bytes = "8MiB"

[[listeners]]
address = "127.0.0.1:5515"
steering = "flow"

[parse]
mode = "syslog"
timezone = "Europe/Berlin"
fields = { node = "${NODE:-n0}", site = "lab" }

[batch]
timeout_secs = 0.5

[vector]
endpoints = ["http://a:6000", "http://b"]

[vector.request]
timeout_secs = "2m"
"#;

const YAML: &str = r#"
listeners:
  - address: "[::]:5514"
    workers: 3
    receive_buffer_bytes: 8388608
  - address: 127.0.0.1:5515
    steering: flow
parse:
  mode: syslog
  timezone: Europe/Berlin
  fields: { node: "${NODE:-n0}", site: lab }
batch:
  timeout_secs: 500ms
vector:
  endpoints: [http://a:6000, http://b]
  request:
    timeout_secs: 120
"#;

#[test]
fn toml_and_yaml_say_the_same_and_what_is_shown_is_read_back() {
    let (_a, toml_file) = write("c.toml", TOML);
    let (_b, yaml_file) = write("c.yaml", YAML);
    let from_toml = shown(&["--config", toml_file.to_str().unwrap()], &[]);
    assert_eq!(from_toml, shown(&["--config", yaml_file.to_str().unwrap()], &[]));
    let listeners = from_toml["listeners"].as_array().unwrap();
    assert_eq!(listeners[0]["workers"].as_integer(), Some(3));
    assert_eq!(listeners[1]["steering"].as_str(), Some("flow"));
    assert_eq!(from_toml["parse"]["fields"]["node"].as_str(), Some("n0"));
    assert_eq!(from_toml["vector"]["endpoints"][1].as_str(), Some("http://b:6000"));

    let text = config(&["--config", toml_file.to_str().unwrap()], &[]).stdout;
    let (_c, again) = write("again.toml", &text);
    assert_eq!(config(&["--config", again.to_str().unwrap()], &[]).stdout, text);
}

#[test]
fn flags_go_over_variables_and_those_over_the_file() {
    let (_a, file) = write("c.toml", TOML);
    let file = ["--config", file.to_str().unwrap()];
    let variables = [("SLUICEGATE_BATCH_MAX_EVENTS", "7"), ("SLUICEGATE_STREAMS", "5"), ("NODE", "n9")];
    let both = shown(&[&file[..], &["--streams", "9", "--workers", "6"]].concat(), &variables);
    assert_eq!(both["batch"]["max_events"].as_integer(), Some(7));
    assert_eq!(both["vector"]["streams"].as_integer(), Some(9));
    assert_eq!(both["parse"]["fields"]["node"].as_str(), Some("n9"));
    assert_eq!(both["listeners"].as_array().unwrap().len(), 2);
    assert!(both["listeners"].as_array().unwrap().iter().all(|l| l["workers"].as_integer() == Some(6)));
    let other = shown(
        &[&file[..], &["--listen", "127.0.0.1:1514"]].concat(),
        &[("SLUICEGATE_VECTOR", "http://x, http://y:1")],
    );
    assert_eq!(other["listeners"].as_array().unwrap().len(), 1);
    assert_eq!(other["listeners"][0]["address"].as_str(), Some("127.0.0.1:1514"));
    assert_eq!(other["vector"]["endpoints"].as_array().unwrap().len(), 2);
}

#[test]
fn ten_mistakes_are_ten_findings_each_with_its_place_and_a_hint() {
    let (_a, file) = write(
        "c.toml",
        r#"
        shutdwon = { timeout_secs = 1 }
        [[listeners]]
        address = "localhost"
        workes = 4
        steering = "random"
        [parse]
        program = "/nonexistent.vrl"
        timezone = "Mars/Olympus"
        [batch]
        max_bytes = "lots"
        max_events = 0
        [buffer]
        when_full = "explode"
        [vector]
        endpoints = ["${NO_SUCH_VARIABLE}"]
        "#,
    );
    let ended = config(&["--config", file.to_str().unwrap()], &[]);
    assert_eq!(ended.status.code(), Some(2));
    for (place, hint) in [
        ("shutdwon", "perhaps `shutdown`"),
        ("listeners[0].address (--listen)", "0.0.0.0:5514"),
        ("listeners[0].workes", "perhaps `listeners[].workers`"),
        ("listeners[0].steering (--steering)", "spread, flow, cpu"),
        ("parse.program (--program)", "/nonexistent.vrl"),
        ("parse.timezone (--timezone)", "Europe/Berlin"),
        ("batch.max_bytes (--batch-max-bytes)", "64MiB"),
        ("batch.max_events (--batch-max-events)", "1 to 1000000"),
        ("buffer.when_full (--when-full)", "block, drop_newest"),
        ("vector.endpoints (--vector)", "NO_SUCH_VARIABLE"),
    ] {
        let line = ended.stderr.lines().find(|line| line.trim_start().starts_with(&format!("{place}:")));
        assert!(line.is_some_and(|line| line.contains(hint)), "{place} {hint}\n{}", ended.stderr);
    }
    assert!(ended.stderr.contains("10 things to mend"), "{}", ended.stderr);
}

#[test]
fn files_that_are_none() {
    for (name, text, says) in [
        ("c.toml", "[listeners", "c.toml"),
        ("c.yaml", "a: [", "c.yaml"),
        ("c.ini", "", ".toml, .yaml or .yml"),
        ("c.toml", "listeners = 5", "[[listeners]]"),
        ("c.toml", "[batch]\nmax_bytes = [1]", "batch.max_bytes"),
        ("c.toml", "batch = 5", "batch"),
    ] {
        let (_a, file) = write(name, text);
        let ended =
            config(&["--config", file.to_str().unwrap(), "--listen", "[::]:1", "--vector", "http://v"], &[]);
        assert_eq!(ended.status.code(), Some(2), "{text}");
        assert!(ended.stderr.contains(says), "{text}: {}", ended.stderr);
    }
    let ended = config(&["--config", "/nonexistent/c.toml"], &[]);
    assert!(ended.stderr.contains("/nonexistent/c.toml"), "{}", ended.stderr);
}

#[test]
fn the_schema_knows_every_key() {
    let ended = config(&["--schema"], &[]);
    let schema: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    for key in sluicegate::config::keys::KEYS {
        let place = key.path.replace("[].", "/items/properties/").replace('.', "/properties/");
        let found = schema.pointer(&format!("/properties/{place}"));
        assert_eq!(found.and_then(|found| found["description"].as_str()), Some(key.help), "{place}");
    }
}

#[test]
fn a_sidecar_runs_from_a_file() {
    use crate::support::{free_tcp, free_udp};
    let (listen, vector) = (free_udp(), free_tcp());
    let text = format!(
        "[[listeners]]\naddress = \"{listen}\"\nworkers = 2\n[vector]\nendpoints = [\"http://{vector}\"]\n"
    );
    let (_a, file) = write("c.toml", &text);
    let receive = Process::receive(vector, "--count");
    let mut run = Process::start(&["run", "--config", file.to_str().unwrap()]);
    run.wait_for_log("listening");
    Process::start(&["load", &listen.to_string(), "--count", "1000", "--rate", "10000"]).end();
    assert_eq!(run.stop().json()["delivered"], 1_000);
    assert_eq!(receive.stop().json()["unique"], 1_000);
}
