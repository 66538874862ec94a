//! One flow through a pipeline in this process, towards a Vector that may misbehave.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sluicegate::books::Report;
use sluicegate::config::{Batch, Config, Endpoint, Listener, Vector};
use sluicegate::load::{Load, Sent, Until};
use sluicegate::pipeline::Pipeline;

use super::free_udp;

/// A buffer that holds whatever a test sends: what is lost then is lost by sluicegate.
pub const ROOMY: usize = 1 << 30;

pub fn config(vector: SocketAddr) -> Config {
    let endpoint = Endpoint { tls: false, host: vector.ip().to_string(), port: vector.port() };
    Config {
        listeners: vec![Listener { workers: 2, receive_buffer_bytes: ROOMY, ..Listener::new(free_udp()) }],
        batch: Batch { max_bytes: 64 << 10, ..Batch::default() },
        vector: Vector {
            endpoints: vec![endpoint],
            request_timeout: Duration::from_secs(60),
            retry_initial_backoff: Duration::from_millis(10),
            ..Vector::default()
        },
        shutdown_timeout: Duration::from_secs(100),
        ..Config::default()
    }
}

pub fn load(target: SocketAddr, rate: u64, seconds: f64) -> Load {
    Load {
        target,
        rate: Some(rate as f64),
        until: Until::Elapsed(Duration::from_secs_f64(seconds)),
        size: 300,
        flows: 1,
        seed: 7,
        corpus: None,
        segment: true,
    }
}

pub async fn send(load: Load) -> Sent {
    tokio::task::spawn_blocking(move || load.run(&AtomicBool::new(false)).unwrap()).await.unwrap()
}

/// 20,000 messages a second for two seconds; then a stop that waits for every acknowledgement.
pub async fn flow_through(config: Config) -> (Sent, Report) {
    let pipeline = Pipeline::start(&config).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let sent = send(load(target, 20_000, 2.0)).await;
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    println!("{sent:?}\n{report:?}");
    assert_eq!(report.kernel_drops, 0, "the buffer holds it all");
    assert_eq!(report.received, sent.sent);
    assert!(report.balances() && report.in_memory == 0, "{report:?}");
    (sent, report)
}
