//! The service manager hears when it is ready, reloads, lives and stops; it is played by this test.

use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::admin::counter;
use crate::support::manager;
use crate::support::process::{Process, binary};
use crate::support::{free_tcp, free_udp, wait_until};

struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Manager {
    fn bind(path: &std::path::Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        Self { socket, heard: Vec::new() }
    }

    /// Listens until a message has this line; the whole message.
    fn wait_for(&mut self, line: &str) -> String {
        let mut found = None;
        wait_until(&format!("{line} is said"), || {
            let mut buffer = [0; 4_096];
            if let Ok(length) = self.socket.recv(&mut buffer) {
                let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
                found = message.lines().any(|said| said == line).then(|| message.clone());
                self.heard.push(message);
            }
            found.is_some()
        });
        found.unwrap()
    }
}

#[test]
fn it_says_when_it_is_ready_reloads_lives_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    let (listen, vector) = (free_udp(), free_tcp());
    let file = directory.path().join("c.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let good = format!(
        "listeners = [{{ address = \"{listen}\" }}]\nvector.endpoints = [\"http://{vector}\"]\nadmin.address = \"\""
    );
    write(&good);
    let mut manager = Manager::bind(&directory.path().join("notify"));
    let mut command = Command::new(binary());
    command.args(["run", "--config", file.to_str().unwrap()]);
    command.env("NOTIFY_SOCKET", directory.path().join("notify")).env("WATCHDOG_USEC", "600000");
    let mut run = Process::spawn(command);
    let ready = manager.wait_for("READY=1");
    assert!(ready.contains(&format!("STATUS=listening on {listen}")), "{ready}");
    manager.wait_for("WATCHDOG=1");
    assert_eq!(manager.heard.iter().position(|message| message == &ready), Some(0), "nothing before it");

    for (text, log) in [(good.as_str(), "is in force"), ("nonsense = 1", "is refused")] {
        write(text);
        run.signal(Signal::HUP);
        let reloading = manager.wait_for("RELOADING=1");
        let time = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).unwrap();
        assert!(time.parse::<u64>().unwrap() > 0);
        manager.wait_for("READY=1");
        run.wait_for_log(log);
    }
    manager.heard.clear();
    manager.wait_for("WATCHDOG=1");
    run.signal(Signal::TERM);
    let stopping = manager.wait_for("STOPPING=1");
    assert!(stopping.contains("EXTEND_TIMEOUT_USEC="), "{stopping}");
    assert!(run.end().status.success());
}

/// The watchdog hangs on the workers' progress, not on the process being there.
#[test]
fn a_worker_that_is_stuck_ends_the_signs_of_life() {
    let directory = tempfile::tempdir().unwrap();
    let (listen, vector) = (free_udp(), free_tcp());
    let program = directory.path().join("slow.vrl");
    // Minutes for one event.
    let numbers = (0..1_500).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let source = format!(
        "n = 0\na = [{numbers}]\nfor_each(a) -> |_i, x| {{ for_each(a) -> |_j, y| {{ for_each(a) -> |_k, z| {{ n = x + y + z }} }} }}"
    );
    std::fs::write(&program, source).unwrap();
    let mut manager = Manager::bind(&directory.path().join("notify"));
    let mut command = Command::new(binary());
    let (listen_text, vector_text) = (listen.to_string(), format!("http://{vector}"));
    command.args(["run", "--listen", &listen_text, "--vector", &vector_text, "--workers", "1", "--admin="]);
    command.args(["--program", program.to_str().unwrap(), "--shutdown-timeout", "0.1"]);
    command.env("NOTIFY_SOCKET", directory.path().join("notify")).env("WATCHDOG_USEC", "3000000");
    let mut run = Process::spawn(command);
    manager.wait_for("READY=1");
    manager.wait_for("WATCHDOG=1");
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"one that it works on", listen).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    sender.send_to(b"one that waits", listen).unwrap();
    run.wait_for_log("no more signs of life");
    manager.wait_for("STATUS=worker 0 has not read its socket for 10 s");
    let silent = manager.heard.len();
    manager.wait_for("STATUS=worker 0 has not read its socket for 10 s");
    assert!(manager.heard[silent..].iter().all(|message| message != "WATCHDOG=1"), "{:?}", manager.heard);
    run.kill();
}

/// Restarts in a row; more by hand (SLUICEGATE_RESTARTS=100).
fn restarts() -> u32 {
    std::env::var("SLUICEGATE_RESTARTS").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

#[test]
fn a_socket_is_kept_no_longer_than_its_address_is_in_the_configuration() {
    let (before, after, vector) = (free_udp(), free_udp(), free_tcp());
    let mut manager = manager::Manager::new(before, 0, 8);
    let url = format!("http://{vector}");
    let mut start = |address: std::net::SocketAddr| {
        let address = address.to_string();
        let run =
            manager.start(&["run", "--listen", &address, "--vector", &url, "--workers", "2", "--admin="]);
        assert!(run.stop().status.success());
        let kept =
            |port: u16| manager.store.iter().filter(|(name, _)| name.ends_with(&format!("_{port}"))).count();
        (kept(before.port()), kept(after.port()))
    };
    assert_eq!(start(before), (2, 0));
    assert_eq!(start(after), (0, 2));
}

/// Two sockets of the unit and two that the process opens beside them; or all of them the unit's, and no store.
#[test]
fn restarts_with_sockets_that_the_manager_keeps_lose_nothing() {
    for (of_unit, room) in [(2, 8), (4, 0)] {
        let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp());
        let admin_address = admin.to_string();
        let mut manager = manager::Manager::new(listen, of_unit, room);
        let receive = Process::receive(vector, "--count");
        let (address, url) = (listen.to_string(), format!("http://{vector}"));
        let arguments = [
            "run",
            "--listen",
            &address,
            "--vector",
            &url,
            "--workers",
            "4",
            "--receive-buffer-bytes",
            "1GiB",
            "--admin",
            &admin_address,
        ];
        let mut run = manager.start(&arguments);
        assert_eq!(manager.store.len(), if room > 0 { 2 } else { 0 });
        let seconds = (2 * restarts()).to_string();
        let load = ["load", &address, "--rate", "20000", "--seconds", &seconds, "--size", "200"];
        let sending = Process::start(&load);
        let mut books = Vec::new();
        for _ in 0..restarts() {
            std::thread::sleep(Duration::from_millis(700));
            books.push(run.stop().json());
            std::thread::sleep(Duration::from_millis(100)); // nobody reads
            run = manager.start(&arguments);
        }
        let sent = sending.end().json()["sent"].as_u64().unwrap();
        let before: u64 = books.iter().map(|books| books["received"].as_u64().unwrap()).sum();
        wait_until("the last one has the rest", || {
            counter(admin, "sluicegate_receive_datagrams_total") + before as f64 == sent as f64
        });
        books.push(run.stop().json());
        let total = |key: &str| books.iter().map(|books| books[key].as_u64().unwrap()).sum::<u64>();
        assert_eq!((total("kernel_drops"), total("shed")), (0, 0), "{books:?}");
        assert_eq!((total("received"), total("delivered")), (sent, sent), "{books:?}");
        let arrived = receive.stop().json();
        assert_eq!((&arrived["unique"], &arrived["duplicates"]), (&sent.into(), &0.into()), "{arrived}");
        for books in &books {
            let shares: Vec<_> = books["workers"].as_array().unwrap().iter().collect();
            let share = |worker: &&serde_json::Value| worker["received"].as_u64().unwrap();
            let (least, most) =
                (shares.iter().map(share).min().unwrap(), shares.iter().map(share).max().unwrap());
            assert_eq!(shares.len(), 4);
            assert!(most < 3 * least + 500, "{least} {most}");
        }
    }
}
