//! `check` finds what is wrong, and what it says mends it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use rustls::version::TLS13;
use serde_json::Value as Json;

use crate::support::process::{Ended, Process, as_nobody, binary};
use crate::support::seccomp::forbid_steering;
use crate::support::tls::{Authority, Files, TlsFront, server};
use crate::support::vector::{FakeVector, Wire, in_front_of};
use crate::support::{free_tcp, free_udp, program, require};

/// What a host of any size grants.
const MODEST: [&str; 4] =
    ["check", "--workers=1", "--receive-buffer-bytes=64KiB", "--buffer-max-bytes=16MiB"];

fn arguments(listen: SocketAddr, vector: SocketAddr, more: &[&str]) -> Vec<String> {
    let ends = [format!("--listen={listen}"), format!("--vector=http://{vector}")];
    let admin = (!more.contains(&"--admin")).then_some("--admin=");
    let all = MODEST.into_iter().chain(admin).chain(more.iter().copied());
    all.map(str::to_owned).chain(ends).collect()
}

fn check(listen: SocketAddr, vector: SocketAddr, more: &[&str]) -> Ended {
    let mut command = Command::new(binary());
    command.args(arguments(listen, vector, more));
    Process::spawn(command).end()
}

/// The findings by this name of a run with `--json`.
fn findings(ended: &Ended, id: &str) -> Vec<Json> {
    let report = ended.json();
    let all = report["findings"].as_array().unwrap();
    let count = |level| all.iter().filter(|finding| finding["level"] == level).count();
    assert_eq!((&report["fails"], &report["warnings"]), (&count("fail").into(), &count("warn").into()));
    for finding in all {
        let mends = finding["mend"].as_array().unwrap();
        assert_eq!(mends.is_empty(), finding["level"] == "ok", "{finding}");
    }
    all.iter().filter(|finding| finding["id"] == id).cloned().collect()
}

fn finding(ended: &Ended, id: &str) -> Json {
    let found = findings(ended, id);
    let [finding] = &found[..] else { panic!("not one {id}: {}\n{}", ended.stdout, ended.stderr) };
    finding.clone()
}

fn level(ended: &Ended, id: &str) -> String {
    finding(ended, id)["level"].as_str().unwrap().to_owned()
}

fn mend(finding: &Json, at: usize) -> &str {
    finding["mend"][at].as_str().unwrap()
}

#[test]
fn all_is_well_with_our_own_receiver_and_one_event_is_sent_when_asked() {
    let (listen, vector) = (free_udp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let quiet = check(listen, vector, &["--json"]);
    assert_eq!(quiet.status.code(), Some(0), "{}{}", quiet.stdout, quiet.stderr);
    for id in ["config", "cores", "memory", "port", "steering", "receive_buffer", "admin"] {
        assert_eq!(level(&quiet, id), "ok", "{id}");
    }
    assert_eq!(finding(&quiet, "endpoint.health")["found"], "HealthCheck answered: SERVING");
    assert!(findings(&quiet, "endpoint.send").is_empty());

    let loud = check(listen, vector, &["--send"]);
    assert_eq!(loud.status.code(), Some(0), "{}{}", loud.stdout, loud.stderr);
    assert!(
        loud.stdout.contains("one event sent, message \"sluicegate check\"; acknowledged"),
        "{}",
        loud.stdout
    );
    assert!(loud.stdout.contains("It would run well here"), "{}", loud.stdout);
    assert_eq!(receive.stop().json()["events"], 1);
}

#[test]
fn a_person_and_a_program_are_told_the_same() {
    let (listen, vector) = (free_udp(), free_tcp());
    let _taken = UdpSocket::bind(listen).unwrap();
    let (human, json) = (check(listen, vector, &[]), check(listen, vector, &["--json"]));
    assert_eq!((human.status.code(), json.status.code()), (Some(1), Some(1)));
    assert!(human.stderr.contains("would not run well here: 2 things to mend"), "{}", human.stderr);
    let shown: Vec<_> = human
        .stdout
        .lines()
        .filter_map(|line| {
            line.strip_prefix("fail  ").or(line.strip_prefix("warn  ")).or(line.strip_prefix("ok    "))
        })
        .collect();
    let report = json.json();
    let told = report["findings"].as_array().unwrap();
    assert_eq!(shown.len(), told.len(), "{}", human.stdout);
    for (line, finding) in shown.iter().zip(told) {
        let text = |key: &str| finding[key].as_str().unwrap();
        let title = format!("{} {}", text("id").replace(['_', '.'], " "), text("subject"));
        assert!(line.starts_with(title.trim_end()), "{line}\n{finding}");
        // The host's counters may move between the two runs.
        let moves = ["udp_", "softnet_", "nic_"].iter().any(|prefix| text("id").starts_with(prefix));
        assert!(moves || line.ends_with(text("means")), "{line}\n{finding}");
    }
    assert!(!human.stdout.contains('\x1b'), "colours are for terminals");
    assert!(human.stdout.contains("\n      mend: "), "{}", human.stdout);
}

#[test]
fn the_documentation_lists_every_finding_and_no_other() {
    let path = format!("{}/docs/check.md", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).unwrap();
    let documented: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(documented, sluicegate::check::IDS, "in this order");
    let receiver = free_tcp();
    let _receive = Process::receive(receiver, "--count");
    let ended =
        check(free_udp(), receiver, &["--send", "--json", "--vector", "http://no-such-name.invalid:6000"]);
    for finding in ended.json()["findings"].as_array().unwrap() {
        assert!(documented.contains(&finding["id"].as_str().unwrap()), "{finding}");
    }
}

/// Puts a kernel setting back.
struct Setting(PathBuf, String);

impl Setting {
    fn remember(path: &str) -> Self {
        Self(path.into(), fs::read_to_string(path).unwrap())
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        fs::write(&self.0, &self.1).ok();
    }
}

#[test]
fn too_small_a_buffer_is_found_and_each_mend_mends_it() {
    let (listen, vector) = (free_udp(), free_tcp());
    let _receive = Process::receive(vector, "--count");
    let path = "/proc/sys/net/core/rmem_max";
    let granted: usize = fs::read_to_string(path).unwrap().trim().parse().unwrap();
    // A little beyond the limit, so that the mend changes next to nothing for others on the machine.
    let as_nobody_with = |bytes: usize| {
        let more = [format!("--receive-buffer-bytes={bytes}"), "--json".to_owned()];
        let mut all = arguments(listen, vector, &[]);
        all.retain(|text| !text.starts_with("--receive-buffer-bytes"));
        let all: Vec<_> = all.iter().chain(&more).map(String::as_str).collect();
        let (command, directory) = as_nobody(&all)?;
        let ended = Process::spawn(command).end();
        drop(directory);
        Some(ended)
    };
    let Some(far) = as_nobody_with(granted * 4) else { return };
    assert_eq!((level(&far, "receive_buffer").as_str(), far.status.code()), ("fail", Some(1)));

    let asked = granted + (64 << 10);
    let near = finding(&as_nobody_with(asked).unwrap(), "receive_buffer");
    assert_eq!(near["level"], "warn");
    let less: usize = mend(&near, 2).rsplit_once("--receive-buffer-bytes ").unwrap().1.parse().unwrap();
    let content = as_nobody_with(less).unwrap();
    assert_eq!((level(&content, "receive_buffer").as_str(), content.status.code()), ("ok", Some(0)));

    let _before = Setting::remember(path);
    let carried_out =
        Command::new("sh").args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin {}", mend(&near, 0))]).status();
    if !require(carried_out.is_ok_and(|status| status.success()), "a kernel whose rmem_max can be set") {
        return;
    }
    let mended = as_nobody_with(asked).unwrap();
    assert_eq!((level(&mended, "receive_buffer").as_str(), mended.status.code()), ("ok", Some(0)));
}

#[test]
fn a_taken_port_is_found_with_its_holder_until_it_is_free() {
    let (listen, vector) = (free_udp(), free_tcp());
    let _receive = Process::receive(vector, "--count");
    let taken = UdpSocket::bind(listen).unwrap();
    let ended = check(listen, vector, &["--json"]);
    let port = finding(&ended, "port");
    let pid = std::process::id();
    assert_eq!((port["level"].as_str(), ended.status.code()), (Some("fail"), Some(1)));
    assert!(port["found"].as_str().unwrap().contains(&format!("(pid {pid})")), "{port}");
    assert_eq!(mend(&port, 0), format!("kill {pid}"));
    drop(taken);
    let also = format!("--listen=0.0.0.0:{}", listen.port());
    let ended = check(listen, vector, &[&also, "--json"]);
    let levels: Vec<_> = findings(&ended, "port").iter().map(|found| found["level"].clone()).collect();
    assert_eq!(levels, ["ok", "fail"], "two listeners that want the same: {}", ended.stdout);
    let ended = check(listen, vector, &["--json"]);
    assert_eq!((level(&ended, "port").as_str(), ended.status.code()), ("ok", Some(0)));
}

#[test]
fn a_running_sluicegate_is_a_warning_and_loses_nothing_by_it() {
    let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp().to_string());
    let receive = Process::receive(vector, "--count");
    let mut run = Process::run(
        listen,
        vector,
        &["--admin", &admin, "--workers", "2", "--receive-buffer-bytes", "64MiB"],
    );
    run.wait_for_log("admin port");
    let load = Process::start(&[
        "load",
        &listen.to_string(),
        "--count",
        "20000",
        "--rate",
        "20000",
        "--size",
        "200",
    ]);
    for _ in 0..10 {
        let ended = check(listen, vector, &["--admin", &admin, "--json"]);
        assert_eq!((level(&ended, "port").as_str(), level(&ended, "admin").as_str()), ("warn", "warn"));
        assert!(finding(&ended, "port")["found"].as_str().unwrap().contains("a running sluicegate"));
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stdout);
    }
    assert_eq!(load.end().json()["sent"], 20_000);
    let books = run.stop().json();
    assert_eq!((&books["delivered"], &books["kernel_drops"]), (&20_000.into(), &0.into()), "{books}");
    receive.stop();
}

#[test]
fn a_dead_endpoint_is_found_until_vector_is_started() {
    let (listen, vector) = (free_udp(), free_tcp());
    let ended = check(listen, vector, &["--json", "--send"]);
    let connect = finding(&ended, "endpoint.connect");
    assert_eq!((connect["level"].as_str(), ended.status.code()), (Some("fail"), Some(1)));
    assert!(mend(&connect, 0).contains(&format!("0.0.0.0:{}", vector.port())), "{connect}");
    assert!(findings(&ended, "endpoint.send").is_empty(), "nothing was sent");
    let _receive = Process::receive(vector, "--count");
    assert_eq!(check(listen, vector, &["--json", "--send"]).status.code(), Some(0));

    let ended = check(listen, vector, &["--vector", "http://no-such-name.invalid:6000", "--json"]);
    let levels: Vec<_> =
        findings(&ended, "endpoint.resolve").iter().map(|found| found["level"].clone()).collect();
    assert_eq!((levels, ended.status.code()), (vec!["fail".into()], Some(1)));
}

/// Answers every connection in HTTP/1.1.
fn web_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.read_exact(&mut [0; 24]).ok(); // the preface (RFC 9113, 3.4)
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").ok();
            // A close with something unread would be a reset, and the answer perhaps lost with it.
            stream.shutdown(std::net::Shutdown::Write).ok();
            std::io::copy(&mut stream, &mut std::io::sink()).ok();
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_vector_is_found() {
    let vector = FakeVector::start().await;
    let (admin, run_listen) = (free_tcp(), free_udp());
    let mut grpc_without_vector = Process::run(run_listen, vector.address, &["--admin", &admin.to_string()]);
    grpc_without_vector.wait_for_log("admin port");
    let closing = in_front_of(vector.address, Wire::Eof(1), u64::MAX).await.address;
    let silent = in_front_of(vector.address, Wire::Silence, u64::MAX).await.address;
    for (address, says) in [
        (web_server(), "is this the address of a `vector` source"),
        (closing, ""),
        (silent, "no answer within 3 s"),
        (admin, "Unimplemented"),
    ] {
        let ended = tokio::task::spawn_blocking(move || check(free_udp(), address, &["--json", "--send"]))
            .await
            .unwrap();
        let health = finding(&ended, "endpoint.health");
        assert_eq!((health["level"].as_str(), ended.status.code()), (Some("fail"), Some(1)), "{health}");
        assert!(health["found"].as_str().unwrap().contains(says), "{health}");
        assert!(findings(&ended, "endpoint.send").is_empty());
    }
    assert!(vector.logs().is_empty());
    assert!(grpc_without_vector.stop().status.success());
}

#[test]
fn every_mistake_of_the_configuration_is_a_finding() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("enrich.vrl");
    fs::write(&program, ".a = 1 +\n").unwrap();
    let (listen, vector) = (free_udp(), free_tcp());
    let program_flag = format!("--program={}", program.display());
    let ended = check(listen, vector, &[&program_flag, "--batch-max-events", "0", "--json"]);
    assert_eq!(ended.status.code(), Some(2));
    let found = findings(&ended, "config");
    let subjects: Vec<_> = found.iter().map(|finding| finding["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["parse.program", "batch.max_events"]);
    assert!(found[0]["found"].as_str().unwrap().contains("does not compile"), "{}", found[0]);
    assert!(mend(&found[1], 0).contains("--batch-max-events"), "{}", found[1]);
    assert!(ended.stderr.contains("2 things to mend in the configuration"), "{}", ended.stderr);

    fs::write(&program, ".a = 1\n").unwrap();
    let _receive = Process::receive(vector, "--count");
    let mended = check(listen, vector, &[&program_flag, "--json"]);
    assert_eq!(mended.status.code(), Some(0), "{}", mended.stdout);
    assert!(finding(&mended, "config")["found"].as_str().unwrap().contains("enrich.vrl compiles"));
}

#[test]
fn forbidden_steering_is_found_until_one_is_content_with_flow() {
    let (listen, vector) = (free_udp(), free_tcp());
    let _receive = Process::receive(vector, "--count");
    let forbidden = |more: &[&str]| {
        let mut command = Command::new(binary());
        let mut all = arguments(listen, vector, &[more, &["--json"]].concat());
        all.retain(|text| !text.starts_with("--workers=1"));
        command.args(all).arg("--workers=2");
        forbid_steering(&mut command);
        Process::spawn(command).end()
    };
    let ended = forbidden(&[]);
    let steering = finding(&ended, "steering");
    assert_eq!((steering["level"].as_str(), ended.status.code()), (Some("fail"), Some(1)));
    assert!(
        mend(&steering, 0).contains("seccomp") && mend(&steering, 1).ends_with("--steering flow"),
        "{steering}"
    );
    assert_eq!(level(&forbidden(&["--steering", "flow"]), "steering"), "ok");
}

#[test]
fn a_privileged_port_is_found_and_the_mend_mends_it() {
    let listen = "127.0.0.1:514".parse().unwrap();
    let all = arguments(listen, free_tcp(), &["--json"]);
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let Some((nobody, _directory)) = as_nobody(&all) else { return };
    let denied = finding(&Process::spawn(nobody).end(), "port");
    assert_eq!(denied["level"], "fail");
    // The setting belongs to a network namespace: only one of its own is changed.
    let Some((nobody, _directory)) = as_nobody(&all) else { return };
    if !require(program("unshare").is_some() && program("sysctl").is_some(), "unshare and sysctl") {
        return;
    }
    let mut command = Command::new("unshare");
    let script =
        format!("PATH=$PATH:/usr/sbin:/sbin; ip link set lo up; {} >&2; exec \"$@\"", mend(&denied, 0));
    command.args(["--net", "sh", "-c", &script, "sh"]).arg(nobody.get_program()).args(nobody.get_args());
    let mended = Process::spawn(command).end();
    assert_eq!(level(&mended, "port"), "ok", "{}", mended.stderr);
}

/// A bad certificate is found, and what is said mends it: the right CA.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_over_tls() {
    let (files, right, wrong) = (Files::new(), Authority::new("right CA"), Authority::new("wrong CA"));
    let vector = FakeVector::start().await;
    let front = TlsFront::start(vector.address, server(&right.sign(&["127.0.0.1"]), None, &[&TLS13])).await;
    let check_with = |ca: &Authority| {
        let file = files.put("ca.pem", &ca.pem());
        let arguments = [
            format!("--listen={}", free_udp()),
            format!("--vector=https://{}", front.address),
            format!("--tls-ca-file={}", file.display()),
            "--admin=".to_owned(),
            "--json".to_owned(),
        ];
        let mut command = Command::new(binary());
        command.args(MODEST).args(arguments);
        Process::spawn(command).end()
    };
    let bad = check_with(&wrong);
    assert_eq!(bad.status.code(), Some(1));
    let found = finding(&bad, "endpoint.tls");
    assert!(found["found"].as_str().unwrap().contains("vector.tls.ca_file"), "{found}");
    assert!(findings(&bad, "endpoint.health").is_empty());
    let well = check_with(&right);
    assert_eq!((level(&well, "endpoint.tls"), level(&well, "endpoint.health")), ("ok".into(), "ok".into()));
    assert!(finding(&well, "endpoint.tls")["found"].as_str().unwrap().starts_with("TLSv1_3, "));
}
