//! As many threads as the load needs: one reads all sockets while it can, and the others come when it cannot.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::admin::{counter, get};
use crate::support::process::Process;
use crate::support::{free_tcp, free_udp, is_root, program, require, wait_until};

struct Site {
    run: Process,
    listen: SocketAddr,
    admin: SocketAddr,
}

/// Four workers.
fn start(vector: SocketAddr, more: &[&str]) -> Site {
    let (listen, admin) = (free_udp(), free_tcp());
    let address = admin.to_string();
    let options = [&["--admin", &address, "--workers", "4"], more].concat();
    let mut run = Process::run(listen, vector, &options);
    run.wait_for_log("admin port");
    Site { run, listen, admin }
}

impl Site {
    fn threads(&self) -> f64 {
        counter(self.admin, "sluicegate_receive_threads")
    }

    /// Datagrams received by each worker.
    fn received(&self) -> Vec<f64> {
        let name = |worker| {
            let listener = self.listen;
            format!("sluicegate_receive_datagrams_total{{listener=\"{listener}\",worker=\"{worker}\"}}")
        };
        (0..4).map(|worker| counter(self.admin, &name(worker))).collect()
    }

    fn load(&self, rate: &str, seconds: &str) -> Process {
        Process::start(&["load", &self.listen.to_string(), "--rate", rate, "--seconds", seconds])
    }

    /// The id of a thread, as strace wants it.
    fn id_of(&self, thread: &str) -> String {
        let tasks = format!("/proc/{}/task", self.run.id());
        let is_it =
            |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == thread);
        let mut tasks = std::fs::read_dir(tasks).unwrap().map(|task| task.unwrap().path());
        let task = tasks.find(|task| is_it(task)).unwrap_or_else(|| panic!("no thread {thread}"));
        task.file_name().unwrap().to_string_lossy().into_owned()
    }

    /// With or without traffic: where the machine held the first thread up, the others have come, and are sent home again.
    fn until_one_reads(&self) {
        wait_until("one thread reads", || self.threads() == 1.0);
    }
}

#[test]
fn one_thread_reads_all_sockets_and_their_shares_are_even() {
    let vector = free_tcp();
    let receive = Process::receive(vector, "--count");
    let site = start(vector, &[]);
    assert_eq!(site.load("5000", "4").end().json()["sent"], 20_000);
    site.until_one_reads();
    let books = site.run.stop().json();
    assert_eq!((&books["delivered"], &books["kernel_drops"]), (&20_000.into(), &0.into()), "{books}");
    for worker in books["workers"].as_array().unwrap() {
        assert!((4_000..=6_000).contains(&worker["received"].as_u64().unwrap()), "{books}");
    }
    assert_eq!(receive.stop().json()["unique"], 20_000);
}

/// With `block` the thread that reads for all waits for room, maybe with another's batch, and so does whose it is: neither is
/// stuck, which is what `/livez` would say after 10 s.
#[test]
fn a_full_queue_is_no_reason_to_be_killed() {
    let site = start(free_tcp(), &["--buffer-max-bytes", "100KB", "--batch-timeout", "0.05"]);
    site.load("20000", "1").end();
    wait_until("all are called", || site.threads() == 4.0);
    std::thread::sleep(Duration::from_secs(11));
    assert_eq!(get(site.admin, "/livez"), (200, "ok\n".into()));
    let before = site.received();
    site.load("1000", "1").end();
    assert_eq!(site.received(), before, "back-pressure reaches the sockets");
}

/// The thread that reads for all is held up, as by a hypervisor: it is passed over, and the others read all sockets but the one
/// that it was at.
#[test]
fn when_the_one_is_held_up_the_others_read() {
    let strace = program("strace");
    if !require(strace.is_some() && is_root(), "strace and root, to hold a thread up") {
        return;
    }
    let vector = free_tcp();
    let receive = Process::receive(vector, "--count");
    let site = start(vector, &["--receive-buffer-bytes", "256MiB"]);
    let load = site.load("2000", "20");
    wait_until("all have datagrams", || site.received().iter().all(|received| *received > 0.0));
    site.until_one_reads();
    let mut hold = Command::new(strace.unwrap());
    let delay = "inject=recvmmsg:delay_enter=5s:when=1";
    hold.args([
        "-qqq",
        "-o",
        "/dev/null",
        "-e",
        "trace=recvmmsg",
        "-e",
        delay,
        "-p",
        &site.id_of("receive-0"),
    ]);
    let hold = Process::spawn(hold);
    let mut before = site.received();
    let since = |before: &[f64], least: f64| {
        let after = site.received();
        after.iter().zip(before).filter(|(after, before)| *after - *before >= least).count()
    };
    wait_until("one socket is not read", || {
        before = site.received();
        std::thread::sleep(Duration::from_millis(300));
        since(&before, 1.0) == 3
    });
    let before = site.received();
    wait_until("the others go on, and it comes back", || since(&before, 500.0) == 4);
    assert_eq!(load.end().json()["sent"], 40_000);
    hold.stop();
    let books = site.run.stop().json();
    assert_eq!(books["kernel_drops"], 0, "{books}");
    assert_eq!(books["delivered"], books["received"], "{books}");
    assert_eq!(receive.stop().json()["unique"], 40_000);
}
