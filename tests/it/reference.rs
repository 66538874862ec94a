//! The documents against the program: options, metrics, alerts, figures, and each other.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;
use sluicegate::config::keys::{KEYS, Kind};
use sluicegate::config::{Config, Draft, Endpoint, Listener};
use sluicegate::metrics::names::METRICS;
use sluicegate::pipeline::is_live;

use crate::support::documents::{documents, headings, inline, links, text_of};
use crate::support::process::Process;
use crate::support::{free_udp, repository};

/// The rows of a reference of every option, by sections of the file.
fn configuration_tables() -> String {
    let defaults = Draft::shown_defaults();
    let mut out = String::new();
    let mut section = None;
    let section_of = |path: &'static str| path.rsplit_once('.').map_or("", |(section, _)| section);
    // A section's rows together, wherever its keys are in the code.
    let first = |name: &str| KEYS.iter().position(|key| section_of(key.path) == name);
    let mut keys: Vec<_> = KEYS.iter().collect();
    keys.sort_by_key(|key| first(section_of(key.path)));
    for key in keys {
        let (name, leaf) = key.path.rsplit_once('.').unwrap_or(("", key.path));
        if section != Some(name) {
            let title = match name {
                "" => "Of the process".to_owned(),
                "listeners[]" => "`[[listeners]]`".to_owned(),
                name => format!("`[{name}]`"),
            };
            let head = "| option | flag, variable | default | | |\n|---|---|---|---|---|\n";
            out.push_str(&format!("\n### {title}\n\n{head}"));
            section = Some(name);
        }
        let variable = format!("SLUICEGATE_{}", key.flag.to_uppercase().replace('-', "_"));
        let default = match (key.flag, (key.show)(&defaults, 0)) {
            ("listen" | "vector", _) => "to be said".to_owned(),
            ("workers", _) => "the usable cores".to_owned(),
            (_, Json::String(text)) if text.is_empty() => String::new(),
            (_, Json::String(text)) => format!("`{text}`"),
            (_, Json::Object(fields)) if fields.is_empty() => String::new(),
            (_, other) => format!("`{other}`"),
        };
        let help = match key.kind {
            Kind::Choice(words) => format!("{} ({})", key.help, words.map_to_code()),
            _ => key.help.to_owned(),
        };
        let reload = if is_live(key.path) { "reload" } else { "" };
        out.push_str(&format!(
            "| `{leaf}` | `--{}`, `{variable}` | {default} | {help} | {reload} |\n",
            key.flag
        ));
    }
    out
}

trait Words {
    fn map_to_code(&self) -> String;
}

impl Words for [&str] {
    fn map_to_code(&self) -> String {
        self.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    }
}

#[test]
fn the_configuration_reference_has_every_option_and_no_other() {
    let path = repository("docs/configuration.md");
    let (text, expected) = (text_of("docs/configuration.md"), configuration_tables());
    let start = text.find("\n### ").unwrap_or(text.len());
    if std::env::var_os("REWRITE_DOCS").is_some() {
        std::fs::write(&path, text.split_at(start).0.to_owned() + &expected).unwrap();
    }
    let text = text_of("docs/configuration.md");
    assert!(
        text.ends_with(&expected),
        "REWRITE_DOCS=1 cargo test configuration_reference writes:\n{expected}"
    );
}

#[test]
fn every_link_leads_somewhere() {
    for path in documents() {
        let folder = Path::new(&path).parent().unwrap().to_owned();
        for link in links(&text_of(&path)) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { folder.join(file).display().to_string() };
            assert!(repository(&target).exists(), "{path}: {link}");
            if !heading.is_empty() {
                assert!(headings(&text_of(&target)).contains(&heading.to_owned()), "{path}: {link}");
            }
        }
    }
}

#[test]
fn the_readme_leads_to_every_document() {
    let readme = text_of("README.md");
    let linked = links(&readme);
    for path in documents().iter().filter(|path| *path != "README.md") {
        assert!(linked.contains(&path.as_str()), "{path}");
    }
    assert!(readme.lines().count() < 130, "short");
}

/// What documents call a metric is one, and what they call a flag is one of some command.
#[test]
fn names_in_the_documents_exist() {
    let commands = ["run", "check", "top", "parse", "demo", "load", "receive", "config", "bench"];
    let helps: String =
        commands.iter().map(|command| Process::start(&[command, "--help"]).end().stdout).collect();
    let flags: BTreeSet<&str> = helps.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    for path in documents() {
        let text = text_of(&path);
        for code in inline(&text) {
            for word in code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                let known = METRICS.iter().any(|metric| metric.name == word) || word == "sluicegate_check";
                assert!(known || !word.starts_with("sluicegate_"), "{path}: {word}");
            }
            let of_another =
                ["cargo", "docker", "kubectl", "--network"].iter().any(|other| code.starts_with(other));
            for flag in code.split(' ').filter(|word| word.starts_with("--") && !of_another) {
                let name = flag.split(['=', '[']).next().unwrap();
                assert!(flags.contains(name), "{path}: {flag}");
            }
        }
    }
}

#[test]
fn each_alert_has_a_section_on_what_to_do() {
    let rules: Json = serde_saphyr::from_str(&text_of("monitoring/alerts.yaml")).unwrap();
    let rules =
        rules["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    let alerts: Vec<_> = rules.map(|rule| rule["alert"].as_str().unwrap().to_owned()).collect();
    let text = text_of("docs/operating.md");
    let sections: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("### ")).map(str::to_owned).collect();
    assert_eq!(sections, alerts);
}

/// The rows of sizing.md are what its formulas make of bench/HISTORY.md's figures.
#[test]
fn the_sizing_tables_add_up() {
    let (text, history) = (text_of("docs/sizing.md"), text_of("bench/HISTORY.md"));
    for figure in [
        "two 2.17",
        "2.70 against 2.47 raw",
        "387,500/s",
        "1,187,439 events (1.4 GB)",
        "54 MB at the most",
        "1,758",
    ] {
        assert!(history.contains(figure), "{figure}");
    }
    for (rate, shown) in [(35_000.0, "35,000"), (75_000.0, "75,000"), (100_000.0, "100,000")] {
        let (raw, parsed) = (rate * 2.2e-6, rate * 2.7e-6);
        let event = 1_200.0;
        let sockets = f64::from(2 << 26) / 2_304.0 / rate;
        let (queue, disk) =
            (f64::from(1 << 28) / event / rate, 10.0 * f64::from(1 << 30) / event / rate / 60.0);
        let row = format!(
            "| {shown} | {raw:.2} cores | {parsed:.2} cores | {:.0} MB/s | {sockets:.1} s | {queue:.1} s | {disk:.1} min |",
            rate * event / 1e6
        );
        assert!(text.contains(&row), "{row}");
    }
    for (workers, endpoints) in [(2, 1), (8, 1), (8, 3)] {
        let mut config = Config {
            listeners: vec![Listener { workers, ..Listener::new(free_udp()) }],
            ..Config::default()
        };
        let endpoint = Endpoint { tls: false, host: "vector".into(), port: 6_000 };
        config.vector.endpoints = vec![endpoint; endpoints];
        let sockets = 2 * config.listeners[0].receive_buffer_bytes;
        let most = config.memory_ceiling() + sockets + (64 << 20);
        let row = format!("| {workers} | {endpoints} | {:.0} MiB |", most as f64 / f64::from(1 << 20));
        assert!(text.contains(&row), "{row}");
    }
}
