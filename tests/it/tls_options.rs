//! TLS as a person meets it: flags, what is said of wrong ones, log lines, metrics.

use std::process::Command;
use std::time::Duration;

use chrono::{Datelike, TimeDelta, Utc};
use sluicegate::books::Holder;

use crate::support::process::{Process, binary};
use crate::support::tls::{Authority, Files, Pair};
use crate::support::{free_tcp, free_udp, program, require};

/// What `receive` and `run` are given to trust each other.
struct Both {
    files: Files,
    server: Vec<String>,
    client: Vec<String>,
}

fn both(server: &Pair, client: &Pair, ca: &Authority) -> Both {
    let files = Files::new();
    let put = |name: &str, text: &str| files.put(name, text).display().to_string();
    let flags = |ca: &str, crt: String, key: String| {
        ["--tls-ca-file", ca, "--tls-crt-file", &crt, "--tls-key-file", &key].map(str::to_owned).to_vec()
    };
    let ca = put("ca.pem", &ca.pem());
    let server = flags(&ca, put("server.pem", &server.crt), put("server.key", &server.key));
    let client = flags(&ca, put("client.pem", &client.crt), put("client.key", &client.key));
    Both { files, server, client }
}

fn receive(address: &str, flags: &[String]) -> Process {
    let mut arguments = vec!["receive", address, "--count"];
    arguments.extend(flags.iter().map(String::as_str));
    let mut receive = Process::start(&arguments);
    receive.wait_for_log("receiving");
    receive
}

#[test]
fn run_and_receive_speak_mutual_tls_and_tell_when_certificates_expire() {
    let soon = (Utc::now() + TimeDelta::days(5)).date_naive();
    let day = (soon.year(), soon.month() as u8, soon.day() as u8);
    let ca = Authority::new("our CA");
    let both = both(&ca.sign_until(&["127.0.0.1"], day), &ca.sign(&["client"]), &ca);
    let (listen, vector, admin) = (free_udp().to_string(), free_tcp().to_string(), free_tcp());
    let receive = receive(&vector, &both.server);
    let (url, admin_text) = (format!("https://{vector}"), admin.to_string());
    let mut arguments = vec!["run", "--listen", &listen, "--vector", &url, "--admin", &admin_text];
    arguments.extend(both.client.iter().map(String::as_str));
    let mut run = Process::start(&arguments);
    run.wait_for_log("connected");
    let metrics = crate::support::admin::get(admin, "/metrics").1;
    let expiry = |which: &str| {
        let name = format!("sluicegate_push_certificate_expiry_seconds{{which=\"{which}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse::<f64>().unwrap()
    };
    let midnight = soon.and_hms_opt(0, 0, 0).unwrap().and_utc();
    assert_eq!(expiry(Holder::Server.name()), midnight.timestamp() as f64);
    assert!(expiry(Holder::Client.name()) > 6e10, "in the year 4000");
    let log = run.stderr();
    let warnings: Vec<_> = log.lines().filter(|line| line.contains("expires within 14 days")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("server"), "one for both connections: {log}");
    Process::start(&["load", &listen, "--count", "1000", "--rate", "10000"]).end();
    assert_eq!(run.stop().json()["delivered"], 1_000);
    assert_eq!(receive.stop().json()["unique"], 1_000);
    drop(both.files);
}

#[test]
fn each_outage_is_one_line_and_an_unverified_connection_is_warned_of() {
    let ca = Authority::new("our CA");
    let both = both(&ca.sign(&["127.0.0.1"]), &ca.sign(&["client"]), &ca);
    let (listen, vector) = (free_udp().to_string(), free_tcp().to_string());
    let receive = receive(&vector, &both.server);
    let url = format!("https://{vector}");
    let arguments = [
        "run",
        "--listen",
        &listen,
        "--vector",
        &url,
        "--admin",
        "",
        "--tls-verify-certificate=false",
        "--connections",
        "1",
        "--retry-initial-backoff",
        "0.01",
        "--shutdown-timeout",
        "1",
    ];
    let mut run = Process::start(&arguments);
    run.wait_for_log("anybody may pretend to be Vector");
    run.wait_for_log("cannot connect");
    Process::start(&["load", &listen, "--count", "100", "--rate", "10000"]).end();
    std::thread::sleep(Duration::from_millis(500));
    let log = run.stderr();
    assert_eq!(log.matches("cannot connect").count(), 1, "{log}");
    assert!(log.contains("set vector.tls.crt_file") && !log.contains("connected"), "{log}");
    let books = run.stop().json();
    assert_eq!((&books["received"], &books["shed"]), (&100.into(), &100.into()), "{books}");
    assert_eq!(receive.stop().json()["events"], 0);
}

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn what_does_not_fit_together_is_all_said_at_once() {
    let (files, ca) = (Files::new(), Authority::new("our CA"));
    let (one, other) = (ca.sign(&["a"]), ca.sign(&["a"]));
    let put = |name: &str, text: &str| files.put(name, text).display().to_string();
    let (crt, key) = (put("a.pem", &one.crt), put("b.key", &other.key));
    let shown = |vector: &str, flags: &[&str]| {
        let ended =
            Process::start(&[&["config", "--listen", "127.0.0.1:5514", "--vector", vector], flags].concat())
                .end();
        assert_eq!(ended.status.code(), Some(2), "{flags:?}");
        ended.stderr
    };
    let text = shown(
        "https://v:6000",
        &[
            "--tls-ca-file",
            "/no/ca.pem",
            "--tls-crt-file",
            &crt,
            "--tls-key-file",
            &key,
            "--tls-server-name",
            "a b",
        ],
    );
    says(&text, &["3 things to mend", "vector.tls.ca_file (--tls-ca-file): cannot read /no/ca.pem"]);
    says(
        &text,
        &["vector.tls.key_file (--tls-key-file): the private key in", "is not that of the certificate"],
    );
    says(&text, &["vector.tls.server_name (--tls-server-name): `a b` is neither"]);
    let text = shown("https://v", &["--tls-ca-file", &key, "--tls-crt-file", &crt]);
    says(&text, &["b.key has no certificate in PEM", "(--tls-key-file)", "without its private key"]);
    let text = shown("https://v", &["--tls-ca-file", &crt, "--tls-key-file", &key]);
    says(&text, &["(--tls-crt-file)", "without its certificate"]);
    let encrypted =
        put("c.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let text =
        shown("https://v", &["--tls-ca-file", &crt, "--tls-crt-file", &crt, "--tls-key-file", &encrypted]);
    says(&text, &["is encrypted: decrypt it"]);
    let text = shown("http://v", &["--tls-ca-file", &crt, "--tls-verify-hostname=false"]);
    says(&text, &["2 things to mend", "vector.tls.ca_file (--tls-ca-file): every endpoint is http"]);
    says(&text, &["vector.tls.verify_hostname"]);
    let mut none = Command::new(binary());
    none.args(["config", "--listen", "127.0.0.1:5514", "--vector", "https://v"]).env("SSL_CERT_FILE", &key);
    none.env_remove("SSL_CERT_DIR");
    let text = Process::spawn(none).end().stderr;
    says(&text, &["vector.tls.ca_file", "this system has no root certificates"]);
    let ended =
        Process::start(&["receive", "127.0.0.1:0", "--tls-crt-file", &crt, "--tls-key-file", &key]).end();
    assert_eq!(ended.status.code(), Some(2));
    says(&ended.stderr, &["is not that of the certificate"]);
}

/// `docs/tls.md` ends with commands to try: they do what they say, on other ports.
#[test]
fn the_commands_of_the_documentation_work() {
    if !require(program("openssl").is_some(), "openssl") {
        return;
    }
    let text = include_str!("../../docs/tls.md");
    let shown = text.split_once("```sh\n").unwrap().1.split_once("```").unwrap().0.replace("\\\n", " ");
    let (files, vector, listen) = (Files::new(), free_tcp().to_string(), free_udp().to_string());
    let here = |command: &str| {
        let command = command.replace("127.0.0.1:6000", &vector).replace("127.0.0.1:5514", &listen);
        let mut shell = Command::new("sh");
        let own = binary().parent().unwrap().display().to_string();
        shell.args(["-c", &format!("PATH={own}:$PATH; exec {command}")]).current_dir(files.path());
        shell.env("SLUICEGATE_ADMIN", "");
        Process::spawn(shell)
    };
    let mut commands = shown.lines();
    assert!(here(commands.next().unwrap()).end().status.success());
    let mut receive = here(commands.next().unwrap());
    receive.wait_for_log("receiving");
    let mut run = here(commands.next().unwrap());
    run.wait_for_log("connected");
    Process::start(&["load", &listen, "--count", "100", "--rate", "10000"]).end();
    assert_eq!(run.stop().json()["delivered"], 100);
    receive.stop();
}
