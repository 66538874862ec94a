//! The shipped configurations of Vector: TOML and YAML say the same, in words that Vector knows, and what stands at their
//! heads can be typed.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use crate::support::admin::counter;
use crate::support::process::{Process, binary};
use crate::support::shell::commands_in_comments;
use crate::support::tls::Files;
use crate::support::{free_tcp, free_udp, program, repository, require, wait_until};

/// Vector's reference of the components in use (release 0.57): an option that is not there is refused by Vector.
const REFERENCE: &[(&str, &str, &[&str])] = &[
    ("sources", "vector", &["address", "keepalive", "tls"]),
    ("sources", "socket", &["address", "max_length", "mode", "receive_buffer_bytes"]),
    ("sources", "syslog", &["address", "max_length", "mode", "receive_buffer_bytes"]),
    ("sources", "exec", &["command", "include_stderr", "mode", "streaming"]),
    ("transforms", "remap", &["source"]),
    ("transforms", "route", &["reroute_unmatched", "route"]),
    ("sinks", "console", &["acknowledgements", "encoding"]),
    ("sinks", "file", &["acknowledgements", "encoding", "path"]),
    ("sinks", "elasticsearch", &["acknowledgements", "buffer", "bulk", "endpoints"]),
];

/// The options inside those options.
const INNER: &[(&str, &[&str])] = &[
    ("acknowledgements", &["enabled"]),
    ("encoding", &["codec"]),
    ("keepalive", &["max_connection_age_secs"]),
    ("tls", &["ca_file", "crt_file", "enabled", "key_file", "verify_certificate"]),
    ("streaming", &["respawn_interval_secs", "respawn_on_exit"]),
    ("bulk", &["index"]),
    ("buffer", &["max_size", "type", "when_full"]),
];

fn files(ending: &str) -> Vec<PathBuf> {
    let folder = repository("vector-config");
    let mut found: Vec<PathBuf> = [folder.clone(), folder.join("migrate")]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    found.sort();
    assert!(found.len() >= 11, "{found:?}");
    found
}

fn parsed(path: &Path) -> Json {
    let text = std::fs::read_to_string(path).unwrap();
    match path.extension().unwrap().to_str() {
        Some("toml") => serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap(),
        _ => serde_saphyr::from_str(&text).unwrap(),
    }
}

fn named(name: &str) -> Json {
    parsed(&repository("vector-config").join(name))
}

fn components<'a>(config: &'a Json, kind: &str) -> Vec<(&'a String, &'a Json)> {
    config[kind].as_object().into_iter().flatten().collect()
}

#[test]
fn toml_and_yaml_say_the_same() {
    let (toml, yaml) = (files("toml"), files("yaml"));
    assert_eq!(toml.len(), yaml.len());
    for (toml, yaml) in toml.iter().zip(&yaml) {
        assert_eq!(toml.with_extension(""), yaml.with_extension(""));
        assert_eq!(parsed(toml), parsed(yaml), "{}", toml.display());
    }
}

#[test]
fn vector_knows_every_word() {
    for path in files("toml") {
        let (config, at) = (parsed(&path), path.display());
        for key in config.as_object().unwrap().keys() {
            assert!(["data_dir", "sources", "transforms", "sinks"].contains(&key.as_str()), "{at}: {key}");
        }
        for kind in ["sources", "transforms", "sinks"] {
            for (id, component) in components(&config, kind) {
                let name = component["type"].as_str().unwrap();
                let known = REFERENCE.iter().find(|(k, n, _)| (*k, *n) == (kind, name));
                let (_, _, known) = known.unwrap_or_else(|| panic!("{at}: {kind} {name}"));
                for (option, value) in component.as_object().unwrap() {
                    assert!(
                        known.contains(&option.as_str()) || ["type", "inputs"].contains(&option.as_str()),
                        "{at}: {id}.{option}"
                    );
                    let Some((_, inner)) = INNER.iter().find(|(outer, _)| outer == option) else { continue };
                    let stranger =
                        value.as_object().unwrap().keys().find(|key| !inner.contains(&key.as_str()));
                    assert_eq!(stranger, None, "{at}: {id}.{option}");
                }
            }
        }
    }
}

/// What a component reads exists, and what sluicegate delivers ends in sinks that acknowledge it.
#[test]
fn events_get_from_the_source_to_sinks_that_acknowledge() {
    for path in files("toml") {
        let (config, at) = (parsed(&path), path.display());
        let mut outputs: BTreeSet<String> = BTreeSet::new();
        for kind in ["sources", "transforms"] {
            for (id, component) in components(&config, kind) {
                match component["route"].as_object() {
                    Some(routes) => outputs.extend(routes.keys().map(|route| format!("{id}.{route}"))),
                    None => drop(outputs.insert(id.clone())),
                }
            }
        }
        let mut read = BTreeSet::new();
        for kind in ["transforms", "sinks"] {
            for (id, component) in components(&config, kind) {
                for input in component["inputs"].as_array().unwrap() {
                    let input = input.as_str().unwrap().to_owned();
                    assert!(outputs.contains(&input), "{at}: {id} reads {input}");
                    read.insert(input);
                }
            }
        }
        assert_eq!(read, outputs, "{at}: an output that nobody reads");
        let before = path.to_str().unwrap().contains("-before");
        let sources = components(&config, "sources");
        let ours = sources.iter().filter(|(_, source)| source["type"] == "vector").count();
        assert_eq!(ours, usize::from(!before), "{at}");
        for (id, sink) in components(&config, "sinks") {
            if sink["inputs"] != json!(["sluicegate_log"]) {
                assert_eq!(sink["acknowledgements"]["enabled"], true, "{at}: {id}");
            }
        }
    }
}

/// Only the way in changes; what reads from it stays, under the same names.
#[test]
fn a_migration_replaces_the_source_alone() {
    for name in ["socket", "syslog", "rsyslog"] {
        let (mut before, mut after) =
            (named(&format!("migrate/{name}-before.toml")), named(&format!("migrate/{name}-after.toml")));
        assert_eq!(
            after["sources"],
            json!({ "firewalls": { "type": "vector", "address": "127.0.0.1:6000" } })
        );
        if name == "rsyslog" {
            before["transforms"].as_object_mut().unwrap().remove("firewalls").unwrap();
        }
        before["sources"] = Json::Null;
        after["sources"] = Json::Null;
        assert_eq!(before, after, "{name}");
    }
}

/// The VRL inside is VRL: the compiler that sluicegate and Vector share takes it.
#[test]
fn programs_and_conditions_compile() {
    let event = "<13>Oct 11 22:14:15 fw1 app[7]: hello";
    for path in files("toml") {
        let config = parsed(&path);
        let mode = if path.ends_with("rsyslog-before.toml") { "none" } else { "syslog" };
        for (id, transform) in components(&config, "transforms") {
            let conditions = transform["route"].as_object().into_iter().flat_map(|routes| routes.values());
            let programs = conditions.map(|condition| format!(".holds = ({})", condition.as_str().unwrap()));
            let programs: Vec<_> = programs.chain(transform["source"].as_str().map(str::to_owned)).collect();
            assert!(!programs.is_empty(), "{}: {id}", path.display());
            for program in programs {
                let made = through(&program, mode, event);
                assert!(made.get("parse_error").is_none(), "{}: {id}: {made}", path.display());
            }
        }
    }
}

/// What a VRL program makes of one message.
fn through(vrl: &str, mode: &str, message: &str) -> Json {
    let files = Files::new();
    let program = files.put("program.vrl", vrl);
    let mut child = Command::new(binary())
        .args(["parse", "--parse", mode, "--program", program.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{vrl}\n{}", String::from_utf8_lossy(&output.stdout)))
}

/// The commands at the heads, with `config` in the place of `run`, so that every option is read and checked.
#[test]
fn the_command_at_the_head_can_be_typed() {
    let etc = Files::etc();
    for path in files("toml").into_iter().chain(files("yaml")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let commands = commands_in_comments(&text);
        let expected = !path.to_str().unwrap().contains("-before")
            && !["vector", "exec"].map(Some).contains(&path.file_stem().unwrap().to_str());
        assert_eq!(commands.len(), usize::from(expected), "{}", path.display());
        for command in commands {
            let command = command.replace("/etc/sluicegate", etc.path().to_str().unwrap());
            assert!(command.starts_with("sluicegate run "), "{command}");
            let shown = Command::new("sh")
                .args([
                    "-c",
                    &command.replacen("sluicegate run", &format!("{} config", binary().display()), 1),
                ])
                .output()
                .unwrap();
            let error = String::from_utf8_lossy(&shown.stderr);
            assert!(shown.status.success(), "{}: {command}\n{error}", path.display());
        }
    }
}

/// The plugin style without a Vector: the command that Vector would start, stopped as Vector stops it, and started again.
#[test]
fn vectors_exec_source_can_start_stop_and_restart_it() {
    let config = named("exec.toml");
    let source = &config["sources"]["sluicegate_process"];
    assert_eq!(
        (&source["mode"], &source["streaming"]["respawn_on_exit"]),
        (&"streaming".into(), &true.into())
    );
    let (listen, vector, admin, files) = (free_udp(), free_tcp(), free_tcp(), Files::new());
    let arguments: Vec<String> = source["command"].as_array().unwrap()[1..]
        .iter()
        .map(|argument| match argument.as_str().unwrap() {
            "[::]:5514" => listen.to_string(),
            "http://127.0.0.1:6000" => format!("http://{vector}"),
            "/var/lib/vector/sluicegate" => files.path().display().to_string(),
            other => other.to_owned(),
        })
        .chain(["--admin".to_owned(), admin.to_string()])
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut first = Process::start(&arguments);
    first.wait_for_log("listening");
    let sent = Process::start(&["load", &listen.to_string(), "--count", "5000", "--rate", "5000"]).end();
    assert_eq!(sent.json()["sent"], 5_000);
    let ended = first.stop(); // Vector's `vector` source is gone first: nobody acknowledges
    let books = ended.json();
    assert_eq!((&books["received"], &books["spooled"]), (&5_000.into(), &5_000.into()), "{books}");
    let program = config["transforms"]["sluicegate_log"]["source"].as_str().unwrap();
    let lines: Vec<&str> = ended.stderr.lines().chain(ended.stdout.lines()).collect();
    for line in [lines[0], lines[lines.len() - 1]] {
        assert!(through(program, "none", line)["sluicegate"].is_object(), "{line}");
    }
    assert_eq!(through(program, "none", "no JSON")["sluicegate"]["message"], "no JSON");

    let receive = Process::receive(vector, "--count");
    let mut second = Process::start(&arguments);
    second.wait_for_log("admin port");
    wait_until("what waited has been sent", || {
        counter(admin, "sluicegate_push_delivered_events_total") == 5_000.0
    });
    let books = second.stop().json();
    assert_eq!((&books["recovered"], &books["delivered"]), (&5_000.into(), &5_000.into()), "{books}");
    let received = receive.stop().json();
    assert_eq!((&received["unique"], &received["missing"]), (&5_000.into(), &0.into()), "{received}");
}

/// The rsyslog that is migrated from; Debian 12's takes one target for an action, so it is shown one.
#[test]
fn rsyslog_takes_the_file_to_migrate_from() {
    let rsyslogd = program("rsyslogd");
    if !require(rsyslogd.is_some(), "rsyslogd") {
        return;
    }
    let text = std::fs::read_to_string(repository("vector-config/migrate/rsyslog-before.conf")).unwrap();
    let first = |list: &str| list.split(',').next().unwrap().to_owned();
    let single: Vec<String> = text
        .split('[')
        .map(|part| part.split_once(']').map_or_else(|| part.into(), |(list, rest)| first(list) + rest))
        .collect();
    let files = Files::new();
    let path = files.put("rsyslog.conf", &single.concat());
    let output = Command::new(rsyslogd.unwrap()).arg("-N1").arg("-f").arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// With VECTOR_BIN naming a Vector, it takes every file.
#[test]
fn a_real_vector_validates_them() {
    let Some(vector) = std::env::var_os("VECTOR_BIN") else {
        eprintln!("passed over: VECTOR_BIN names no Vector");
        return;
    };
    for path in files("toml").into_iter().chain(files("yaml")) {
        let output =
            Command::new(&vector).args(["validate", "--no-environment"]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
