//! Each sender's events reach Vector in order, whatever happens on the way.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use sluicegate::config::{Config, Steering, WhenFull};
use sluicegate::load::Load;
use sluicegate::pipeline::Pipeline;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tonic::Code;

use crate::support::process::Process;
use crate::support::scenario::{self, load, send};
use crate::support::vector::FakeVector;
use crate::support::{free_tcp, free_udp, wait_until};

/// A Vector that dies over and over: connections to it end at any instant, an acknowledgement's too, and for a while there is
/// none at all.
async fn dying(vector: SocketAddr, seed: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let life = Duration::from_millis(random.u64(1..400));
            if random.u8(..8) == 0 {
                drop(stream);
                tokio::time::sleep(life).await;
                continue;
            }
            tokio::spawn(async move {
                let mut behind = TcpStream::connect(vector).await.unwrap();
                tokio::time::timeout(life, copy_bidirectional(&mut stream, &mut behind)).await.ok();
            });
        }
    });
    address
}

fn ordered(vector: SocketAddr) -> Config {
    let mut config = scenario::config(vector);
    config.listeners[0].workers = 4;
    config.listeners[0].steering = Steering::Flow;
    config.vector.ordered = true;
    config
}

fn seed() -> u64 {
    let seed = std::env::var("SLUICEGATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("SLUICEGATE_SEED={seed}");
    seed
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_flows_arrive_in_order_from_memory_and_from_disk() {
    for overflows in [false, true] {
        let random = Mutex::new(fastrand::Rng::with_seed(seed()));
        let vector = FakeVector::answering(move |_, _| match random.lock().unwrap().u8(..10) {
            0 => Code::Unavailable,
            1 => Code::Internal,
            2 => Code::ResourceExhausted,
            _ => Code::Ok,
        })
        .await;
        let mut config = ordered(dying(vector.address, seed()).await);
        let directory = tempfile::tempdir().unwrap();
        if overflows {
            config.buffer.when_full = WhenFull::Overflow;
            config.buffer.max_bytes = 200_000;
            config.data_dir = directory.path().to_owned();
        }
        let pipeline = Pipeline::start(&config).unwrap();
        let target = pipeline.addresses().next().unwrap();
        let sending = tokio::spawn(send(Load { flows: 50, ..load(target, 20_000, 3.0) }));
        if overflows {
            wait_until("some is on disk", || pipeline.report().spooled > 0);
        }
        let sent = sending.await.unwrap();
        wait_until("all is delivered", || pipeline.report().delivered == sent.sent);
        let report = pipeline.stop(Duration::from_secs(60), pending()).await;
        assert!(report.balances() && report.retries > 0, "{report:?}");
        assert_eq!((report.received, report.delivered), (sent.sent, sent.sent), "{report:?}");
        let busy = report.workers.iter().filter(|worker| worker.received > 0).count();
        assert!(busy > 1, "the flows have more than one lane");
        let numbers = vector.received().numbers.unwrap();
        assert_eq!((numbers.unique, numbers.out_of_order), (sent.sent, 0), "{numbers:?}");
    }
}

/// What a stop puts to disk from memory is older than what was there before.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_start_goes_on_in_order_with_what_a_stop_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let overflowing = |vector| {
        let mut config = ordered(vector);
        config.buffer.when_full = WhenFull::Overflow;
        config.buffer.max_bytes = 200_000;
        config.data_dir = directory.path().to_owned();
        config
    };
    let pipeline = Pipeline::start(&overflowing(free_tcp())).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let sent = send(Load { flows: 50, ..load(target, 10_000, 1.0) }).await;
    wait_until("all is received", || pipeline.report().received == sent.sent);
    let stopped = pipeline.stop(Duration::from_millis(300), pending()).await;
    assert_eq!((stopped.spooled, stopped.shed), (sent.sent, 0), "{stopped:?}");

    let vector = FakeVector::answering(|_, _| Code::Ok).await;
    let pipeline = Pipeline::start(&overflowing(vector.address)).unwrap();
    wait_until("all is delivered", || pipeline.report().delivered == sent.sent);
    pipeline.stop(Duration::from_secs(60), pending()).await;
    let numbers = vector.received().numbers.unwrap();
    assert_eq!((numbers.unique, numbers.out_of_order), (sent.sent, 0), "{numbers:?}");
}

#[test]
fn what_cannot_be_in_order_is_refused() {
    let listen = free_udp().to_string();
    let ended = Process::start(&[
        "run",
        "--ordered",
        "--listen",
        &listen,
        "--vector",
        "http://127.0.0.1:1",
        "--vector",
        "http://127.0.0.1:2",
    ])
    .end();
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    for said in ["listeners[0].steering (--steering): vector.ordered needs `flow`", "needs one endpoint"] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}
