//! Everything goes wrong, at random and at once: the books balance to the last message.
//!
//! Ten seconds by default; `SLUICEGATE_SOAK_SECS` for more, `SLUICEGATE_SOAK_SEED` for the same once more.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use fastrand::Rng;
use serde_json::Value as Json;
use tokio::time::{Instant, sleep};
use tonic::Code;

use crate::support::admin::get;
use crate::support::chaos::{Chaos, Way};
use crate::support::process::{Process, binary};
use crate::support::vector::FakeVector;
use crate::support::{free_tcp, free_udp, is_root, program, require, wait_until};

/// Where its spool is: a small tmpfs that only it sees.
const DISK: &str = "16m";

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// What can be done to it.
struct World {
    rng: Rng,
    ways: Vec<Chaos>,
    /// Of a hundred requests, how many are answered with a failure.
    failing: Arc<AtomicU8>,
    /// A file that fills its disk.
    junk: PathBuf,
}

impl World {
    /// Does one thing, and says what.
    fn act(&mut self) -> String {
        let number = self.rng.usize(..self.ways.len());
        let way = &self.ways[number];
        match self.rng.u8(..10) {
            0..3 => {
                let to = [Way::Open, Way::Silent, Way::Closed][self.rng.usize(..3)];
                way.set(to);
                format!("way {number} is {to:?}")
            }
            3 => {
                way.cut();
                format!("way {number} is cut")
            }
            4 => {
                self.ways.iter().for_each(|way| way.set(Way::Closed));
                "all ways are closed".to_owned()
            }
            5 => {
                let percent = [0, 5, 30, 100][self.rng.usize(..4)];
                self.failing.store(percent, Relaxed);
                format!("{percent} % of answers are failures")
            }
            6 => {
                // As much as fits: the disk is full then.
                fs::write(&self.junk, vec![0; 64 << 20]).ok();
                "the disk is full".to_owned()
            }
            7 => {
                fs::remove_file(&self.junk).ok();
                "the disk has room".to_owned()
            }
            _ => {
                self.heal();
                "all is well".to_owned()
            }
        }
    }

    fn heal(&self) {
        self.ways.iter().for_each(|way| way.set(Way::Open));
        self.failing.store(0, Relaxed);
        fs::remove_file(&self.junk).ok();
    }
}

/// A Vector that fails as often as it is told to, with any status.
async fn vector(failing: Arc<AtomicU8>, seed: u64) -> FakeVector {
    let rng = std::sync::Mutex::new(Rng::with_seed(seed));
    FakeVector::answering(move |_, _| {
        let mut rng = rng.lock().unwrap();
        match rng.u8(..100) < failing.load(Relaxed) {
            true => Code::from(rng.i32(1..17)),
            false => Code::Ok,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_books_balance_whatever_happens() {
    if !require(is_root() && program("unshare").is_some(), "root and unshare, for a small disk") {
        return;
    }
    let seed = from_environment("SLUICEGATE_SOAK_SEED", fastrand::u64(..));
    let seconds = from_environment("SLUICEGATE_SOAK_SECS", 10);
    println!("SLUICEGATE_SOAK_SEED={seed} SLUICEGATE_SOAK_SECS={seconds}");
    let mut rng = Rng::with_seed(seed);
    let failing = Arc::new(AtomicU8::new(0));
    let vector = vector(Arc::clone(&failing), rng.u64(..)).await;
    let mut ways = Vec::new();
    for _ in 0..3 {
        ways.push(Chaos::start(vector.address).await);
    }
    let (listen, admin) = (free_udp(), free_tcp());
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().to_str().unwrap().to_owned();
    let mut command = Command::new("unshare");
    let script = format!("mount -t tmpfs -o size={DISK} none {at} && exec \"$@\"");
    command.args(["--mount", "sh", "-c", &script, "sh"]).arg(binary());
    command.args(["run", "--listen", &listen.to_string(), "--admin", &admin.to_string(), "--workers", "2"]);
    for way in &ways {
        command.args(["--vector", &format!("http://{}", way.address)]);
    }
    command.args(["--when-full", "overflow", "--data-dir", &at, "--buffer-max-bytes", "1MiB"]);
    command.args(["--dead-letter-path", &format!("{at}/letters"), "--dead-letter-max-bytes", "256KiB"]);
    command.args([
        "--request-timeout",
        "700ms",
        "--retry-initial-backoff",
        "10ms",
        "--batch-max-events",
        "200",
    ]);
    command.args(["--compression", ["none", "gzip", "zstd"][rng.usize(..3)]]);
    command.args(["--on-rejected", ["drop", "split"][rng.usize(..2)]]);
    command.args(["--receive-buffer-bytes", "256MiB", "--shutdown-timeout", "100s"]);
    let mut run = Process::spawn(command);
    run.wait_for_log("admin port");

    let junk = PathBuf::from(format!("/proc/{}/root{at}/junk", run.id()));
    let mut world = World { rng, ways, failing, junk };
    let target = listen.to_string();
    let length = seconds.to_string();
    let load = Process::start(&["load", &target, "--rate", "20000", "--seconds", &length, "--size", "300"]);
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        println!("{}", world.act());
        sleep(Duration::from_millis(world.rng.u64(20..800))).await;
    }
    world.heal();
    let sent = load.end().json()["sent"].as_u64().unwrap();
    let status = || serde_json::from_str::<Json>(&get(admin, "/status").1).unwrap();
    tokio::task::block_in_place(|| {
        wait_until("all is settled", || status()["in_memory"] == 0 && status()["spooled"] == 0);
    });
    let ended = run.stop();
    let books = ended.json();
    println!("{books}");
    let number = |key: &str| books[key].as_u64().unwrap();
    let received = number("received");
    assert_eq!(received + number("kernel_drops"), sent);
    assert_eq!(received, number("delivered") + number("rejected") + number("shed"));
    let numbers = vector.received().numbers.unwrap();
    // What is counted as delivered is there; what is not there is counted as something else.
    assert!(numbers.unique >= number("delivered"), "{numbers:?}");
    assert!(received - numbers.unique <= number("rejected") + number("shed"), "{numbers:?}");
    assert!(numbers.duplicates <= number("possible_duplicates"), "{numbers:?}");
    assert!(number("delivered") > 0, "{}", ended.stderr);
}
