//! SIGHUP: the right configuration in force, nothing lost, and a bad file refused.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value as Json;
use sluicegate::proto::event::event_wrapper::Event;
use sluicegate::proto::event::{EventWrapper, Log, value::Kind};

use crate::support::admin::{counter, get};
use crate::support::process::Process;
use crate::support::vector::{FakeVector, bytes};
use crate::support::{free_tcp, free_udp, wait_until};

fn configuration(vector: SocketAddr, listen: SocketAddr, more: &str) -> String {
    format!(
        "{more}\n[[listeners]]\naddress = \"{listen}\"\nworkers = 2\nreceive_buffer_bytes = \"1GiB\"\n\
         [vector]\nendpoints = [\"http://{vector}\"]\n"
    )
}

fn start(file: &Path, admin: SocketAddr) -> Process {
    let mut run = Process::start(&["run", "--config", file.to_str().unwrap(), "--admin", &admin.to_string()]);
    run.wait_for_log("admin port");
    run
}

/// Sends SIGHUP and waits until that reload has come to its end, whatever that is.
fn reload(run: &Process, admin: SocketAddr) {
    let reloads = || counter(admin, "sluicegate_config_reloads_total");
    let before = reloads();
    run.signal(Signal::HUP);
    wait_until("the reload is over", || reloads() == before + 1.0);
}

/// How many reloads: enough in CI, a thousand by hand (SLUICEGATE_RELOADS=1000).
fn reloads() -> u64 {
    std::env::var("SLUICEGATE_RELOADS").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

#[tokio::test(flavor = "multi_thread")]
async fn many_reloads_under_load_every_tenth_one_bad() {
    let directory = tempfile::tempdir().unwrap();
    let (file, program) = (directory.path().join("c.toml"), directory.path().join("p.vrl"));
    let (listen, admin) = (free_udp(), free_tcp());
    let vector = FakeVector::keeping(|event| marker(event).is_some()).await;
    let write_program = |text: &str| std::fs::write(&program, text).unwrap();
    write_program(".version = 0");
    let parse = format!("parse.program = {:?}", program.to_str().unwrap());
    std::fs::write(&file, configuration(vector.address, listen, &parse)).unwrap();
    let run = start(&file, admin);

    let ended = AtomicBool::new(false);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let in_force = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut sent = 0_u64;
            let background = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !ended.load(Relaxed) {
                for _ in 0..500 {
                    background.send_to(b"<13>load", listen).unwrap();
                }
                sent += 500;
                std::thread::sleep(Duration::from_millis(10)); // 50,000 a second
            }
            sent
        });
        let mut in_force = 0;
        for number in 1..=reloads() {
            match number % 10 {
                0 => write_program(".version = nonsense("),
                _ => {
                    write_program(&format!(".version = {number}"));
                    in_force = number;
                }
            }
            reload(&run, admin);
            sender.send_to(format!("marker {in_force}").as_bytes(), listen).unwrap();
            wait_until("the marker has arrived", || vector.logs().len() as u64 == number);
        }
        ended.store(true, Relaxed);
        let sent = load.join().unwrap() + reloads();
        wait_until("all has arrived", || vector.received().events == sent);
        in_force
    });
    for log in vector.logs() {
        let message = String::from_utf8_lossy(bytes(&log, "message")).into_owned();
        assert_eq!(message, format!("marker {}", version(&log)));
    }
    assert_ne!(in_force, 0);
    assert_eq!(
        counter(admin, "sluicegate_config_reloads_total{result=\"refused\"}"),
        (reloads() / 10) as f64
    );
    let refused = if reloads().is_multiple_of(10) { 1.0 } else { 0.0 };
    assert_eq!(counter(admin, "sluicegate_config_last_reload_refused"), refused);
    let books = run.stop().json();
    assert_eq!((&books["received"], &books["kernel_drops"]), (&books["delivered"], &Json::from(0)));
}

fn marker(event: &EventWrapper) -> Option<()> {
    let Some(Event::Log(log)) = &event.event else { return None };
    bytes(log, "message").strip_prefix(b"marker ").map(drop)
}

fn version(log: &Log) -> i64 {
    match log.fields["version"].kind {
        Some(Kind::Integer(version)) => version,
        ref other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_fields_and_the_log_level_change_while_vector_is_down() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let (listen, admin, dead) = (free_udp(), free_tcp(), free_tcp());
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write(&configuration(dead, listen, "parse.fields = { site = \"old\" }"));
    let mut run = start(&file, admin);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"before", listen).unwrap();
    wait_until("it was received", || counter(admin, "sluicegate_receive_datagrams_total") == 1.0);

    let vector = FakeVector::start().await;
    write(&configuration(
        vector.address,
        listen,
        "parse.fields = { site = \"new\" }\nbuffer.max_bytes = \"1MiB\"",
    ));
    reload(&run, admin);
    run.wait_for_log("buffer.max_bytes");
    sender.send_to(b"after", listen).unwrap();
    wait_until("both have arrived", || vector.received().events == 2);
    let site = |message: &[u8]| {
        let logs = vector.logs();
        let log = logs.iter().find(|log| bytes(log, "message") == message).unwrap();
        String::from_utf8(bytes(log, "site").to_vec()).unwrap()
    };
    assert_eq!((site(b"before"), site(b"after")), ("old".to_owned(), "new".to_owned()));
    let shown: toml::Table = get(admin, "/config").1.parse().unwrap();
    assert_eq!(shown["vector"]["endpoints"][0].as_str(), Some(&*format!("http://{}", vector.address)));
    assert_eq!(shown["buffer"]["max_bytes"].as_str(), Some("256MiB"), "needs a restart");
    let status: Json = serde_json::from_str(&get(admin, "/status").1).unwrap();
    assert_eq!(
        (&status["endpoints"][0]["state"], &status["endpoints"][0]["delivered"]),
        (&"connected".into(), &2.into())
    );

    write(&configuration(vector.address, listen, "log.level = \"error\""));
    reload(&run, admin);
    write("listeners = 7\nvector.endpoint = \"x\"");
    reload(&run, admin);
    run.wait_for_log("vector.endpoints"); // what the unknown key should be
    assert_eq!(counter(admin, "sluicegate_config_last_reload_refused"), 1.0);
    let lines = run.stderr().lines().count();
    assert_eq!(get(admin, "/livez").0, 200);
    let ended = run.stop();
    assert_eq!(ended.json()["delivered"], 2);
    assert_eq!(ended.stderr.lines().count(), lines, "nothing below `error` is logged: {}", ended.stderr);
}

/// The formatter is replaced while HTTP/2 is at work, which opens spans at this level.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_format_changes_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let (listen, admin) = (free_udp(), free_tcp());
    let vector = FakeVector::keeping(|_| false).await;
    let write = |format: &str| {
        let log = format!("log = {{ level = \"debug\", format = \"{format}\" }}");
        std::fs::write(&file, configuration(vector.address, listen, &log)).unwrap();
    };
    write("text");
    let run = start(&file, admin);
    let load =
        Process::start(&["load", &listen.to_string(), "--rate", "8000", "--seconds", "2", "--size", "200"]);
    for format in ["json", "text"].repeat(5) {
        write(format);
        reload(&run, admin);
        std::thread::sleep(Duration::from_millis(100));
    }
    let sent = load.end().json()["sent"].clone();
    let ended = run.stop();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let books = ended.json();
    assert_eq!((&books["received"], &books["delivered"]), (&sent, &sent), "{books}");
}

/// A configuration on a file system that hangs: a FIFO that nobody writes to.
#[test]
fn a_stop_does_not_wait_for_a_reload_that_hangs() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    let (listen, admin) = (free_udp(), free_tcp());
    std::fs::write(&file, configuration(free_tcp(), listen, "shutdown.timeout_secs = 1")).unwrap();
    let mut run = start(&file, admin);
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    run.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(500)); // two at once may be one
    run.signal(Signal::HUP);
    run.wait_for_log("still reading");
    let ended = run.stop();
    assert!(ended.status.success(), "{}", ended.stderr);
}
