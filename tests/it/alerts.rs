//! Alerts and dashboard: of metrics that exist, in PromQL that Prometheus takes, and awake when the fault is there.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value as Json, json};
use tonic::Code;

use crate::support::admin::counter;
use crate::support::process::{Process, as_nobody};
use crate::support::prometheus::Prometheus;
use crate::support::promql::{metrics_of, strangers};
use crate::support::tls::{Authority, Files};
use crate::support::vector::FakeVector;
use crate::support::{free_tcp, free_udp, program, repository, require, wait_until};

fn rules() -> Json {
    serde_saphyr::from_str(&std::fs::read_to_string(repository("monitoring/alerts.yaml")).unwrap()).unwrap()
}

fn each_rule(rules: &mut Json) -> Vec<&mut Json> {
    let groups = rules["groups"].as_array_mut().unwrap();
    groups.iter_mut().flat_map(|group| group["rules"].as_array_mut().unwrap()).collect()
}

fn dashboard() -> Json {
    serde_json::from_str(&std::fs::read_to_string(repository("monitoring/dashboard.json")).unwrap()).unwrap()
}

/// The dashboard's queries, with what Grafana would put in.
fn queries(dashboard: &Json) -> Vec<String> {
    let targets =
        dashboard["panels"].as_array().unwrap().iter().filter_map(|panel| panel["targets"].as_array());
    let put_in = |text: &str| {
        text.replace("$__rate_interval", "1m").replace("$__range", "1h").replace("$instance", ".*")
    };
    targets.flatten().map(|target| put_in(target["expr"].as_str().unwrap())).collect()
}

#[test]
fn every_name_is_a_metrics_and_every_label_its_own() {
    let (mut rules, dashboard) = (rules(), dashboard());
    let alerts = each_rule(&mut rules).into_iter().map(|rule| rule["expr"].as_str().unwrap().to_owned());
    let all: Vec<_> = alerts.chain(queries(&dashboard)).collect();
    assert!(all.len() > 60, "{}", all.len());
    for expression in &all {
        assert_eq!(strangers(expression), [""; 0], "{expression}");
        assert!(!metrics_of(expression).is_empty(), "{expression}");
    }
}

#[test]
fn promtool_takes_the_rules_and_their_tests_pass() {
    let promtool = program("promtool");
    if !require(promtool.is_some(), "promtool (.ci/tools)") {
        return;
    }
    let run = |what: &str, file: &Path| {
        let output =
            Command::new(promtool.as_ref().unwrap()).args([what, "rules"]).arg(file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    };
    run("check", &repository("monitoring/alerts.yaml"));
    run("test", &repository("monitoring/alerts-test.yaml"));
    let tests = std::fs::read_to_string(repository("monitoring/alerts-test.yaml")).unwrap();
    for rule in each_rule(&mut rules()) {
        let name = rule["alert"].as_str().unwrap();
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name} has no test");
    }
    // The dashboard's queries as rules of a file, so that promtool reads them.
    let record = |(at, query): (usize, &String)| json!({ "record": format!("query_{at}"), "expr": query });
    let recorded: Vec<_> = queries(&dashboard()).iter().enumerate().map(record).collect();
    let files = Files::new();
    let file = json!({ "groups": [{ "name": "dashboard", "rules": recorded }] });
    run("check", &files.put("queries.yaml", &file.to_string()));
}

/// Loss comes first, every layer of it, and panels have their own places.
#[test]
fn the_dashboard_begins_with_loss_by_layer() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let rows: Vec<_> = panels.iter().enumerate().filter(|(_, panel)| panel["type"] == "row").collect();
    assert!(rows[0].0 == 0 && rows[0].1["title"].as_str().unwrap().starts_with("Loss by layer"));
    let first: Vec<_> = panels[1..rows[1].0].iter().filter(|panel| panel["type"] == "stat").collect();
    let layers: Vec<_> =
        first.iter().flat_map(|panel| metrics_of(panel["targets"][0]["expr"].as_str().unwrap())).collect();
    assert_eq!(
        layers,
        [
            "sluicegate_host_softnet_dropped_total",
            "sluicegate_host_udp_memory_errors_total",
            "sluicegate_receive_kernel_drops_total",
            "sluicegate_shed_events_total",
            "sluicegate_push_rejected_events_total",
        ]
    );
    let mut taken = std::collections::BTreeSet::new();
    for panel in panels {
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{panel}");
        for (x, y) in
            (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
        {
            assert!(taken.insert((x, y)), "{} lies over another", panel["title"]);
        }
    }
}

/// A sluicegate with an admin port.
fn gate(listen: SocketAddr, vector: SocketAddr, more: &[&str]) -> (Process, SocketAddr) {
    let admin = free_tcp();
    let options = ["--admin", &admin.to_string(), "--workers", "2", "--shutdown-timeout", "0.1"];
    let mut run = Process::run(listen, vector, &[&options, more].concat());
    run.wait_for_log("admin port");
    (run, admin)
}

fn load(target: SocketAddr, count: u32, rate: u32) {
    let (count, rate) = (count.to_string(), rate.to_string());
    Process::start(&["load", &target.to_string(), "--count", &count, "--rate", &rate]).end();
}

/// Every panel has something to show where all is well, but for certificates where there is no TLS.
#[test]
fn a_real_prometheus_answers_the_dashboard() {
    let (listen, vector) = (free_udp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let (run, admin) = gate(listen, vector, &["--parse", "syslog"]);
    let Some(prometheus) = Prometheus::start(&[admin], None) else { return };
    prometheus.wait_for(1);
    load(listen, 20_000, 10_000);
    wait_until("all is delivered", || {
        prometheus.total("sluicegate_push_delivered_events_total") == Some(20_000.0)
    });
    for query in queries(&dashboard()) {
        wait_until(&format!("there is an answer to {query}"), || {
            let answer = prometheus.query(&query).unwrap_or_else(|| panic!("refused: {query}"));
            !answer.is_empty() || query.contains("certificate")
        });
    }
    prometheus.stop();
    run.stop();
    receive.stop();
}

/// The rules as they are, but for their patience: a test cannot wait for minutes and days.
fn impatient() -> Json {
    let mut rules = rules();
    for rule in each_rule(&mut rules) {
        rule.as_object_mut().unwrap().remove("for");
        let expression = rule["expr"].as_str().unwrap().to_owned();
        let shorter =
            [("[10m]", "[2s]"), ("offset 10m", "offset 2s"), ("[30m]", "[2s]"), ("offset 1d", "offset 4s")];
        let shorter = shorter.iter().fold(expression, |text, (long, short)| text.replace(long, short));
        rule["expr"] = json!(shorter);
    }
    rules
}

/// Faults made on purpose, each alert awake for the instance that has it, and none for the one that is well. Not made:
/// errors of a socket, and those of the whole machine (`udp_mem`, packets before any socket).
#[tokio::test(flavor = "multi_thread")]
async fn each_alert_fires_on_the_fault_that_it_is_for() {
    let files = Files::new();
    let rules = files.put("rules.yaml", &impatient().to_string());
    let Some(lonely) = Prometheus::start(&[free_tcp()], Some(&rules)) else { return };
    let firing = |prometheus: &Prometheus, name: &str, at: Option<SocketAddr>| {
        let alerts = prometheus.api("alerts").unwrap();
        let at = at.map(|at| json!(at.to_string())).unwrap_or_default();
        alerts["alerts"].as_array().unwrap().iter().any(|alert| {
            (&alert["labels"]["alertname"], &alert["labels"]["instance"], &alert["state"])
                == (&json!(name), &at, &json!("firing"))
        })
    };
    wait_until("nothing is scraped", || firing(&lonely, "SluicegateAbsent", None));
    lonely.stop();

    // A Vector that is well, one that refuses for good, one that always says "later", and none.
    let (well, refuses, later, nobody) = (
        FakeVector::answering(|_, _| Code::Ok).await,
        FakeVector::answering(|_, _| Code::DataLoss).await,
        FakeVector::answering(|_, _| Code::Unavailable).await,
        free_tcp(),
    );
    let small = ["--buffer-max-bytes", "300KB", "--receive-buffer-bytes", "128KiB", "--parse", "none"];
    let spool = files.path().join("spool").display().to_string();
    let disk = ["--when-full", "overflow", "--data-dir", &spool, "--buffer-max-disk-bytes", "1MiB"];
    let file = files.put("reload.toml", "");
    let at_file = ["--config", file.to_str().unwrap()];
    let (silent, changing) = (free_udp(), free_udp());
    let listens: Vec<_> = (0..4).map(|_| free_udp()).collect();
    let (_blocked, blocked) = gate(listens[0], nobody, &small);
    let (_full, full) = gate(listens[1], nobody, &[&small[..2], &disk].concat());
    let (refused, rejecting) = gate(listens[2], refuses.address, &at_file);
    let (_waiting, waiting) = gate(listens[3], later.address, &["--retry-initial-backoff", "0.05"]);
    let other = format!("http://{nobody}");
    let (_half, half) = gate(silent, well.address, &["--vector", &other]);
    let (_parsing, parsing) = gate(changing, well.address, &["--parse", "syslog"]);
    let (_quiet, quiet) = gate(free_udp(), well.address, &[]);
    let (_expiring, expiring) = with_a_certificate_of_seven_days(&files);
    let clamped = clamped(well.address);
    let mut scraped = vec![blocked, full, rejecting, waiting, half, parsing, quiet, expiring];
    scraped.extend(clamped.as_ref().map(|(_, admin)| *admin));
    let prometheus = Prometheus::start(&scraped, Some(&rules)).unwrap();
    prometheus.wait_for(scraped.len());

    load(silent, 3_000, 1_000);
    load(changing, 5_000, 1_000); // RFC 3164, as `load` makes it
    for (listen, count) in
        [(listens[0], 20_000), (listens[1], 20_000), (listens[2], 1_000), (listens[3], 1_000)]
    {
        load(listen, count, 20_000);
    }
    files.put("reload.toml", "workers = \"many\"");
    refused.signal(Signal::HUP);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut expected = vec![
        ("SluicegateKernelDrops", blocked),
        ("SluicegateQueueFull", blocked),
        ("SluicegateNoVector", blocked),
        ("SluicegateShed", full),
        ("SluicegateSpoolFull", full),
        ("SluicegateRejected", rejecting),
        ("SluicegateReloadRefused", rejecting),
        ("SluicegateNotAcknowledged", waiting),
        ("SluicegateDuplicates", waiting),
        ("SluicegateEndpointDown", half),
        ("SluicegateNothingReceived", half),
        ("SluicegateParseFailures", parsing),
        ("SluicegateCertificateExpires", expiring),
    ];
    expected.extend(clamped.as_ref().map(|(_, admin)| ("SluicegateBufferClamped", *admin)));
    for (name, at) in expected {
        wait_until(&format!("{name} fires"), || {
            sender.send_to(b"no syslog at all", changing).unwrap();
            firing(&prometheus, name, Some(at))
        });
        assert!(!firing(&prometheus, name, Some(quiet)), "{name} fires where all is well");
    }
    let alerts = prometheus.api("alerts").unwrap();
    assert!(!alerts.to_string().contains(&quiet.to_string()), "{alerts}");
    assert!(counter(blocked, "sluicegate_receive_kernel_drops_total") > 0.0);
    prometheus.stop();
}

/// Towards a `receive` whose certificate has a week to live.
fn with_a_certificate_of_seven_days(files: &Files) -> (Vec<Process>, SocketAddr) {
    use chrono::Datelike;
    let (authority, day) = (Authority::new("CA"), chrono::Utc::now() + chrono::TimeDelta::days(7));
    let pair = authority.sign_until(&["127.0.0.1"], (day.year(), day.month() as u8, day.day() as u8));
    let at = |name, text| files.put(name, text).display().to_string();
    let (ca, crt, key) = (at("ca.pem", &authority.pem()), at("crt.pem", &pair.crt), at("key.pem", &pair.key));
    let (listen, vector, admin) = (free_udp().to_string(), free_tcp(), free_tcp());
    let mut receive =
        Process::start(&["receive", &vector.to_string(), "--tls-crt-file", &crt, "--tls-key-file", &key]);
    receive.wait_for_log("receiving");
    let (url, address) = (format!("https://{vector}"), admin.to_string());
    let run = ["run", "--listen", &listen, "--vector", &url, "--tls-ca-file", &ca, "--admin", &address];
    (vec![receive, Process::start(&run)], admin)
}

/// One that asks for more buffer than an ordinary user is granted; none where this process cannot become one.
fn clamped(vector: SocketAddr) -> Option<((Process, tempfile::TempDir), SocketAddr)> {
    let (listen, url, admin) = (free_udp().to_string(), format!("http://{vector}"), free_tcp());
    let address = admin.to_string();
    let options = ["run", "--listen", &listen, "--vector", &url, "--admin", &address];
    let (command, directory) = as_nobody(&[&options[..], &["--receive-buffer-bytes", "2GiB"]].concat())?;
    let mut run = Process::spawn(command);
    run.wait_for_log("admin port");
    Some(((run, directory), admin))
}
