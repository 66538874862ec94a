//! A new process takes the sockets of the running one: nothing is lost, whatever goes wrong on either side.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use socket2::{Domain, SockAddr, Socket, Type};
use tempfile::TempDir;

use crate::support::admin::{counter, get};
use crate::support::process::{Ended, Process, as_nobody, binary};
use crate::support::{free_tcp, free_udp, is_root, program, require, wait_until};

/// Take-overs in a row; more by hand (SLUICEGATE_TAKEOVERS=100).
fn takeovers() -> usize {
    std::env::var("SLUICEGATE_TAKEOVERS").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

struct Site {
    directory: TempDir,
    listen: SocketAddr,
    vector: SocketAddr,
    admin: SocketAddr,
}

impl Site {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            listen: free_udp(),
            vector: free_tcp(),
            admin: free_tcp(),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("takeover")
    }

    fn command(&self, more: &[&str]) -> Vec<String> {
        let path = self.path().display().to_string();
        let (listen, vector) = (self.listen.to_string(), format!("http://{}", self.vector));
        let admin = self.admin.to_string();
        let mut arguments = vec!["run", "--listen", &listen, "--vector", &vector, "--admin", &admin];
        arguments.extend(["--takeover-path", &path]);
        if !more.contains(&"--receive-buffer-bytes") {
            arguments.extend(["--receive-buffer-bytes", "1GiB"]);
        }
        arguments.extend(more);
        arguments.into_iter().map(str::to_owned).collect()
    }

    /// A process that serves.
    fn start(&self, more: &[&str]) -> Process {
        let arguments = self.command(more);
        let mut run = Process::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        run.wait_for_log("sluicegate runs");
        wait_until("it can be succeeded", || self.path().exists());
        run
    }

    /// A process that takes over from the one that serves; it may fail to.
    fn succeed(&self, more: &[&str]) -> Process {
        let path = self.path().display().to_string();
        let arguments = self.command(&[&["--takeover", &path], more].concat());
        Process::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn received(&self) -> f64 {
        counter(self.admin, "sluicegate_receive_datagrams_total")
    }

    /// What each worker has received.
    fn shares(&self) -> Vec<u64> {
        let status: Json = serde_json::from_str(&get(self.admin, "/status").1).unwrap();
        status["workers"].as_array().unwrap().iter().map(|worker| number(worker, "received")).collect()
    }

    fn send(&self, message: &str) {
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(message.as_bytes(), self.listen).unwrap();
    }

    /// A caller that says this first.
    fn call(&self, first: &Json) -> Caller {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        socket.connect(&SockAddr::unix(self.path()).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        socket.send(first.to_string().as_bytes()).unwrap();
        Caller(socket)
    }
}

struct Caller(Socket);

impl Caller {
    fn hear(&self) -> Json {
        let mut buffer = vec![0; 100_000];
        let length = std::io::Read::read(&mut &self.0, &mut buffer).unwrap();
        serde_json::from_slice(&buffer[..length]).unwrap_or(Json::Null)
    }
}

fn hello(version: u32) -> Json {
    json!({ "hello": { "version": version, "program": "a test", "listeners": [] } })
}

fn number(books: &Json, key: &str) -> u64 {
    books[key].as_u64().unwrap_or_else(|| panic!("{key}: {books}"))
}

fn clean(ended: &Ended) -> Json {
    assert!(ended.status.success(), "{}", ended.stderr);
    let books = ended.json();
    assert_eq!(number(&books, "received"), number(&books, "delivered"), "{books}");
    books
}

fn load(site: &Site, rate: u32, seconds: u32) -> Process {
    let (rate, seconds) = (rate.to_string(), seconds.to_string());
    let target = site.listen.to_string();
    Process::start(&["load", &target, "--rate", &rate, "--seconds", &seconds, "--size", "200"])
}

#[test]
fn takeovers_in_a_row_under_load_lose_nothing_and_share_evenly() {
    let site = Site::new();
    let receive = Process::receive(site.vector, "--count");
    // Another number of workers now and then: sockets join, none is closed.
    let workers = ["2", "2", "4", "2"];
    let mut running = site.start(&["--workers", workers[0]]);
    let sending = load(&site, 50_000, 600); // until it is stopped
    let mut books = Vec::new();
    for round in 1..=takeovers() {
        wait_until("it receives", || site.received() > 10_000.0);
        let mut next = site.succeed(&["--workers", workers[round % workers.len()]]);
        next.wait_for_log("taken over");
        let ended = std::mem::replace(&mut running, next).end();
        books.push(clean(&ended));
        let before = site.shares();
        wait_until("it has read enough to tell", || {
            site.shares().iter().sum::<u64>() > before.iter().sum::<u64>() + 20_000
        });
        let read: Vec<_> = site.shares().iter().zip(&before).map(|(after, before)| after - before).collect();
        let (least, most) = (read.iter().min().unwrap(), read.iter().max().unwrap());
        assert!(most < &(2 * least), "spread as before: {read:?}");
    }
    let sent = sending.stop().json();
    wait_until("the last one has it all", || {
        let before: u64 = books.iter().map(|books| number(books, "received")).sum();
        site.received() + before as f64 == number(&sent, "sent") as f64
    });
    books.push(clean(&running.stop()));
    let arrived = receive.stop().json();
    let drops: u64 = books.iter().map(|books| number(books, "kernel_drops")).sum();
    assert_eq!(drops, 0, "{books:?}");
    assert_eq!(number(&arrived, "unique"), number(&sent, "sent"), "{arrived}");
    assert_eq!(number(&arrived, "duplicates"), 0, "{arrived}");
}

/// The new process reads when the old one reads no more, and sends when that has ended.
#[test]
fn where_order_is_kept_it_is_kept_over_a_takeover() {
    let site = Site::new();
    let ordered = ["--steering", "flow", "--ordered", "--workers", "2"];
    let mut running = site.start(&ordered);
    let target = site.listen.to_string();
    let load = ["load", &target, "--rate", "20000", "--seconds", "5", "--size", "200", "--flows", "20"];
    let sending = Process::start(&load);
    wait_until("it receives", || site.received() > 5_000.0);
    // Vector comes up late: what the old process has is older than what the new one reads meanwhile.
    let mut next = site.succeed(&ordered);
    next.wait_for_log("taken over");
    wait_until("the new one receives", || site.received() > 5_000.0);
    let receive = Process::receive(site.vector, "--count");
    let mut books = vec![clean(&std::mem::replace(&mut running, next).end())];
    let sent = number(&sending.end().json(), "sent");
    let before = number(&books[0], "received") as f64;
    wait_until("the rest is delivered", || {
        counter(site.admin, "sluicegate_push_delivered_events_total") + before == sent as f64
    });
    books.push(clean(&running.stop()));
    let arrived = receive.stop().json();
    assert_eq!((number(&arrived, "unique"), number(&arrived, "out_of_order")), (sent, 0), "{arrived}");
}

/// The same with a disk that the new process has only when the old one has ended: what is there is older than what the new one has.
#[test]
fn where_order_is_kept_what_overflowed_comes_before_what_the_next_process_reads() {
    let site = Site::new();
    let data = site.directory.path().display().to_string();
    let ordered =
        ["--steering", "flow", "--ordered", "--workers", "2", "--when-full", "overflow", "--data-dir", &data];
    let ordered = [&ordered[..], &["--buffer-max-bytes", "300KB", "--shutdown-timeout", "1"]].concat();
    let mut running = site.start(&ordered);
    let target = site.listen.to_string();
    let load = ["load", &target, "--rate", "10000", "--seconds", "5", "--size", "200", "--flows", "20"];
    let sending = Process::start(&load);
    wait_until("it receives", || site.received() > 10_000.0);
    let mut next = site.succeed(&ordered);
    next.wait_for_log("taken over");
    let old = std::mem::replace(&mut running, next).end().json();
    let left = number(&old, "spooled");
    assert!(left > 0 && number(&old, "shed") == 0, "{old}");
    wait_until("the new one receives", || site.received() > 5_000.0);
    let receive = Process::receive(site.vector, "--count");
    let sent = number(&sending.end().json(), "sent");
    wait_until("all is delivered", || {
        let delivered = counter(site.admin, "sluicegate_push_delivered_events_total");
        delivered + number(&old, "delivered") as f64 == sent as f64
    });
    let new = running.stop().json();
    assert_eq!(number(&new, "recovered"), left, "{new}");
    let arrived = receive.stop().json();
    assert_eq!((number(&arrived, "unique"), number(&arrived, "out_of_order")), (sent, 0), "{arrived}");
}

/// The queue is full, workers wait for room, the kernel's buffers fill: the old process keeps what it has until Vector is back.
#[test]
fn with_vector_down_and_the_queue_full_nothing_is_lost_but_what_the_kernel_counts() {
    let site = Site::new();
    let small = ["--buffer-max-bytes", "500KB", "--receive-buffer-bytes", "1MiB", "--workers", "2"];
    let old = site.start(&small);
    let drops = || counter(site.admin, "sluicegate_receive_kernel_drops_total");
    let sending = load(&site, 20_000, 6);
    wait_until("the kernel drops", || drops() > 0.0);
    let mut new = site.succeed(&small);
    new.wait_for_log("taken over");
    wait_until("the new one receives", || site.received() > 0.0);
    let sent = number(&sending.end().json(), "sent");
    assert!(old.is_running(), "it has what Vector has not");
    let receive = Process::receive(site.vector, "--count");
    let old = clean(&old.end());
    wait_until("the new one has delivered it all", || {
        let delivered = counter(site.admin, "sluicegate_push_delivered_events_total");
        delivered > 0.0 && site.received() == delivered
    });
    let new = clean(&new.stop());
    let total = |key: &str| number(&old, key) + number(&new, key);
    assert_eq!(total("received") + total("kernel_drops"), sent, "{old}\n{new}");
    assert_eq!(number(&receive.stop().json(), "unique"), total("received"));
}

#[test]
fn what_overflowed_to_disk_goes_to_the_successor_when_it_may() {
    let site = Site::new();
    let data = site.directory.path().display().to_string();
    let overflow = ["--when-full", "overflow", "--data-dir", &data, "--buffer-max-bytes", "300KB"];
    let overflow = [&overflow[..], &["--shutdown-timeout", "1"]].concat();
    let old = site.start(&overflow);
    let sent = number(&load(&site, 20_000, 1).end().json(), "sent");
    wait_until("it received all", || site.received() == sent as f64);
    let mut new = site.succeed(&overflow);
    new.wait_for_log("taken over");
    site.send("after it");
    let ended = old.end();
    assert!(ended.status.success(), "{}", ended.stderr);
    let old = ended.json();
    assert_eq!((number(&old, "spooled"), number(&old, "shed")), (sent, 0), "{old}");
    let receive = Process::receive(site.vector, "--count");
    wait_until("the new one has delivered it all", || {
        counter(site.admin, "sluicegate_push_delivered_events_total") == (sent + 1) as f64
    });
    let new = new.stop().json();
    assert_eq!((number(&new, "received"), number(&new, "recovered")), (1, sent), "{new}");
    assert_eq!(number(&receive.stop().json(), "unique"), sent);
}

#[test]
fn a_successor_that_cannot_start_changes_nothing() {
    let site = Site::new();
    let receive = Process::receive(site.vector, "--json");
    let mut old = site.start(&["--workers", "2"]);

    let bad = site.succeed(&["--workers", "0"]).end();
    assert_eq!(bad.status.code(), Some(2), "{}", bad.stderr);
    assert!(!old.stderr().contains("successor"), "it was never asked: {}", old.stderr());

    let unbound = site.succeed(&["--listen", "192.0.2.1:5514"]).end();
    assert_eq!(unbound.status.code(), Some(1), "{}", unbound.stderr);
    old.wait_for_log("the take-over failed; this process goes on");

    // Killed with the sockets in its hands.
    let caller = site.call(&hello(1));
    let offer = caller.hear();
    assert_eq!(offer["offer"]["groups"][0]["sockets"], 2, "{offer}");
    let second = site.call(&hello(1)).hear();
    assert!(second["refused"]["why"].as_str().unwrap().contains("another take-over"), "{second}");
    drop(caller);

    wait_until("it can be asked again", || site.call(&hello(1)).hear()["offer"].is_object());
    let other_version = site.call(&hello(9)).hear();
    assert!(other_version["refused"]["why"].as_str().unwrap().contains("version 9"), "{other_version}");
    let nonsense = site.call(&json!("nonsense")).hear();
    assert!(nonsense["refused"].is_object(), "{nonsense}");

    // A second process without take-over is none.
    let arguments = site.command(&[]);
    let second = Process::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).end();
    assert_eq!(second.status.code(), Some(1));

    for n in 0..200 {
        site.send(&format!("after all that {n}"));
    }
    wait_until("all came", || site.received() == 200.0);
    let books = clean(&old.stop());
    let shares = books["workers"].as_array().unwrap();
    assert!(shares.iter().all(|worker| number(worker, "received") > 50), "spread as before: {books}");
    let left: Vec<_> = std::fs::read_dir(site.directory.path()).unwrap().collect();
    assert!(left.is_empty(), "neither the running one nor those that failed leave a name: {left:?}");
    receive.stop();
}

#[test]
fn only_its_own_user_and_root_may_take_over() {
    let site = Site::new();
    let old = site.start(&[]);
    let mode = std::fs::metadata(site.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let path = site.path().display().to_string();
    let arguments = site.command(&["--takeover", &path]);
    let Some((nobody, _copy)) = as_nobody(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) else {
        return;
    };
    // Let it through to the socket: it is refused there, too.
    std::fs::set_permissions(site.directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::set_permissions(site.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let ended = Process::spawn(nobody).end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("belongs to user 65534") || ended.stderr.contains("cannot"),
        "{}",
        ended.stderr
    );
    assert!(old.is_running());
    assert!(!Path::new(&path).is_symlink());
    old.stop();
    assert!(!site.path().exists(), "a process that ends takes its name with it");
}

/// A process each of whose threads takes 3 s for its n-th message of the take-over: what is done meanwhile is done in the middle.
fn slowed(arguments: &[String], message: u32) -> Option<Process> {
    let strace = program("strace");
    if !require(strace.is_some() && is_root(), "strace and root, to hold a process up in the middle") {
        return None;
    }
    let mut command = Command::new(strace.unwrap());
    let delay = format!("inject=sendmsg:delay_enter=3s:when={message}");
    command
        .args(["-f", "-qqq", "-o", "/dev/null", "-e", "trace=sendmsg", "-e", &delay])
        .arg(binary())
        .args(arguments);
    Some(Process::spawn(command))
}

/// SIGKILL to a process that strace runs.
fn kill_traced(strace: Process) -> String {
    let path = format!("/proc/{0}/task/{0}/children", strace.id());
    let children = std::fs::read_to_string(path).unwrap();
    let child =
        children.split_whitespace().next().unwrap_or_else(|| panic!("it has ended: {}", strace.stderr()));
    let child = child.parse().unwrap();
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    strace.end().stderr
}

/// The new process is killed when it has the sockets, all is prepared, more of them too, and it is about to say that it is ready.
#[test]
fn the_new_process_killed_in_the_middle_has_read_nothing() {
    let site = Site::new();
    let receive = Process::receive(site.vector, "--count");
    let mut old = site.start(&["--workers", "2"]);
    let sending = load(&site, 20_000, 600);
    wait_until("it receives", || site.received() > 1_000.0);
    let path = site.path().display().to_string();
    let arguments = site.command(&["--takeover", &path, "--workers", "4", "--steering", "flow"]);
    let Some(mut new) = slowed(&arguments, 1) else { return };
    new.wait_for_log("sluicegate runs");
    old.wait_for_log("a successor asks for the sockets");
    kill_traced(new);
    old.wait_for_log("the take-over failed; this process goes on");
    let before = site.received();
    wait_until("it goes on", || site.received() > before + 10_000.0);
    let sent = number(&sending.stop().json(), "sent");
    wait_until("it has the rest", || site.received() == sent as f64);
    let books = clean(&old.stop());
    assert_eq!((number(&books, "received"), number(&books, "kernel_drops")), (sent, 0), "{books}");
    let arrived = receive.stop().json();
    assert_eq!(number(&arrived, "unique"), sent, "{arrived}");
}

/// The new process fails when the first listener's sockets are prepared and the second one's cannot be had; under load.
#[test]
fn a_successor_that_fails_half_way_takes_nothing_with_it() {
    let site = Site::new();
    let receive = Process::receive(site.vector, "--count");
    let mut old = site.start(&["--workers", "2"]);
    let sending = load(&site, 20_000, 600);
    wait_until("it receives", || site.received() > 1_000.0);
    for number in 1..=5 {
        let failed = site.succeed(&["--workers", "4", "--listen", "192.0.2.1:5514"]).end();
        assert_eq!(failed.status.code(), Some(1), "{}", failed.stderr);
        wait_until("it is noticed", || old.stderr().matches("the take-over failed").count() == number);
    }
    old.wait_for_log("the take-over failed; this process goes on");
    let sent = number(&sending.stop().json(), "sent");
    wait_until("it has the rest", || site.received() == sent as f64);
    let books = clean(&old.stop());
    assert_eq!((number(&books, "received"), number(&books, "kernel_drops")), (sent, 0), "{books}");
    assert_eq!(number(&receive.stop().json(), "unique"), sent);
}

/// The old process is killed at each of its messages: before it has offered anything, before the sockets, before it lets go.
#[test]
fn the_old_process_killed_at_each_step_leaves_one_that_reads() {
    for (message, step) in [(1, "offer"), (2, "sockets"), (1, "released")] {
        let site = Site::new();
        let receive = Process::receive(site.vector, "--count");
        let Some(mut old) = slowed(&site.command(&["--workers", "2"]), message) else { return };
        old.wait_for_log("sluicegate runs");
        wait_until("it can be succeeded", || site.path().exists());
        let sending = load(&site, 20_000, 600);
        wait_until("it receives", || site.received() > 1_000.0);
        let mut new = site.succeed(&["--workers", "2"]);
        old.wait_for_log("a successor asks for the sockets");
        if step == "released" {
            new.wait_for_log("sluicegate runs");
        }
        std::thread::sleep(Duration::from_millis(300));
        kill_traced(old);
        new.wait_for_log("sluicegate runs");
        let received = || TcpStream::connect(site.admin).map_or(0.0, |_| site.received());
        wait_until("the new one reads", || {
            assert!(new.is_running(), "{step}: {}", new.stderr());
            received() > 0.0
        });
        let before = received();
        wait_until("and goes on", || received() > before + 10_000.0);
        sending.stop();
        clean(&new.stop());
        receive.stop();
    }
}

/// A name in the network namespace instead of a path, and a process that does not end by itself: what pods on a node's network need.
/// The new one is in a process namespace of its own, as another pod is.
#[test]
fn by_name_between_containers_the_old_process_stays_until_it_is_told_to_stop() {
    let name = format!("@sluicegate/test/{}", free_udp().port());
    let site = Site::new();
    let receive = Process::receive(site.vector, "--count");
    let named = ["--takeover", &name, "--takeover-path", &name, "--takeover-stay", "--workers", "2"];
    let mut arguments = site.command(&named);
    let own_path = arguments.iter().position(|argument| argument == "--takeover-path").unwrap();
    arguments.drain(own_path..own_path + 2);
    let start = |before: &[&str]| {
        let mut words = before.iter().copied().chain(arguments.iter().map(String::as_str));
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        let mut process = Process::spawn(command);
        process.wait_for_log("sluicegate runs");
        process
    };
    let program = binary().display().to_string();
    let mut first = start(&[&program]);
    assert!(first.stderr().contains("nobody to take over from"), "{}", first.stderr());
    site.send("one");
    wait_until("it is read", || site.received() == 1.0);

    let contained = ["unshare", "--pid", "--fork", "--kill-child", &program];
    let mut second = if require(is_root(), "root, for a process namespace") {
        start(&contained)
    } else {
        start(&[&program])
    };
    second.wait_for_log("taken over");
    first.wait_for_log("staying until told to stop");
    site.send("two");
    wait_until("the second reads", || site.received() == 1.0);
    assert!(first.is_running());
    assert_eq!(number(&clean(&first.stop()), "received"), 1);

    // It has the name, too.
    let mut third = start(&[&program]);
    third.wait_for_log("taken over");
    second.wait_for_log("staying until told to stop");
    site.send("three");
    wait_until("the third reads", || site.received() == 1.0);
    clean(&third.stop());
    // Its successor is gone: it ends, so that whoever supervises it starts it again.
    let ended = second.end();
    assert!(ended.stderr.contains("the successor has ended"), "{}", ended.stderr);
    clean(&ended);
    assert_eq!(number(&receive.stop().json(), "events"), 3);
}

/// SIGTERM while a successor has the sockets and does not read: they are not closed to new datagrams under its hands.
#[test]
fn a_stop_waits_for_what_becomes_of_a_takeover() {
    let site = Site::new();
    let receive = Process::receive(site.vector, "--count");
    let old = site.start(&[]);
    let caller = site.call(&hello(1));
    assert!(caller.hear()["offer"].is_object());
    old.signal(Signal::TERM);
    site.send("before");
    wait_until("it is read", || site.received() == 1.0);
    caller.0.send(json!({ "reading": { "groups": [0] } }).to_string().as_bytes()).unwrap();
    let mut heard = caller.hear();
    while heard.get("part").is_some() {
        heard = caller.hear();
    }
    assert!(heard["released"]["drops"][0].is_array(), "{heard}");
    clean(&old.end());
    receive.stop();
}

#[test]
fn the_admin_port_goes_along_and_one_that_has_nobody_to_ask_starts_anew() {
    let site = Site::new();
    let mut first = site.succeed(&[]);
    first.wait_for_log("nobody to take over from");
    wait_until("it serves", || site.path().exists());
    let mut next = site.succeed(&[]);
    for _ in 0..200 {
        assert_eq!(get(site.admin, "/livez").0, 200, "there is always somebody");
    }
    next.wait_for_log("taken over");
    assert_eq!(get(site.admin, "/readyz").0, 200);
    assert!(first.end().status.success());
    assert_eq!(get(site.admin, "/readyz").0, 200);
    next.stop();
}
