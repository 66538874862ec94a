//! The admin port: metrics that equal the books, and health that tells the truth.

use std::net::SocketAddr;

use serde_json::{Value as Json, json};

use crate::support::admin::{get, samples, total};
use crate::support::grpc::call;
use crate::support::process::Process;
use crate::support::{free_tcp, free_udp, wait_until};

fn run(listen: SocketAddr, vector: SocketAddr, admin: SocketAddr, more: &[&str]) -> Process {
    let admin = admin.to_string();
    let mut run = Process::run(listen, vector, &[&["--admin", &admin, "--workers", "2"], more].concat());
    run.wait_for_log("admin port");
    run
}

#[test]
fn every_counter_equals_the_books() {
    let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let run = run(listen, vector, admin, &["--parse", "syslog"]);
    Process::start(&["load", &listen.to_string(), "--count", "20000", "--rate", "20000", "--size", "300"])
        .end();
    let metrics = || samples(&get(admin, "/metrics").1);
    wait_until("all is delivered", || {
        total(&metrics(), "sluicegate_push_delivered_events_total") == 20_000.0
    });
    let metrics = metrics();
    let status: Json = serde_json::from_str(&get(admin, "/status").1).unwrap();
    let top: Json = serde_json::from_str(&get(admin, "/top").1).unwrap();
    let books = run.stop().json();
    for (name, key) in [
        ("sluicegate_receive_datagrams_total", "received"),
        ("sluicegate_receive_bytes_total", "received_bytes"),
        ("sluicegate_receive_kernel_drops_total", "kernel_drops"),
        ("sluicegate_receive_empty_datagrams_total", "empty"),
        ("sluicegate_receive_errors_total", "receive_errors"),
        ("sluicegate_parse_failures_total", "parse_failures"),
        ("sluicegate_batch_closed_total", "batches"),
        ("sluicegate_shed_events_total", "shed"),
        ("sluicegate_push_delivered_events_total", "delivered"),
        ("sluicegate_push_rejected_events_total", "rejected"),
        ("sluicegate_push_requests_total", "requests"),
        ("sluicegate_push_retries_total", "retries"),
    ] {
        assert_eq!(total(&metrics, name), books[key].as_f64().unwrap(), "{name}");
        assert_eq!(status[key], books[key], "{key}");
    }
    let worker = format!("sluicegate_receive_datagrams_total{{listener=\"{listen}\",worker=\"0\"}}");
    assert_eq!(metrics[&worker], books["workers"][0]["received"].as_f64().unwrap());
    assert!(
        metrics[&format!("sluicegate_receive_steering_info{{listener=\"{listen}\",steering=\"spread\"}}")]
            == 1.0
    );
    assert!(total(&metrics, "sluicegate_process_resident_memory_bytes") > 1e6);
    for (name, value) in [
        ("sluicegate_batch_events_count", &books["batches"]),
        ("sluicegate_batch_events_sum", &books["received"]),
        ("sluicegate_batch_bytes_count", &books["batches"]),
        ("sluicegate_push_latency_seconds_count", &books["requests"]),
        ("sluicegate_push_receive_to_acknowledgement_seconds_count", &books["requests"]),
        ("sluicegate_push_endpoint_delivered_events_total", &books["delivered"]),
    ] {
        assert_eq!(total(&metrics, name), value.as_f64().unwrap(), "{name}");
    }
    let infinite = "sluicegate_batch_bytes_bucket{le=\"+Inf\"}";
    assert_eq!(metrics[infinite], books["batches"].as_f64().unwrap());
    let endpoint = &status["endpoints"][0];
    assert_eq!((&endpoint["state"], &endpoint["connected"]), (&"connected".into(), &2.into()), "{endpoint}");
    assert!(status["push_latency_secs"]["p50"].as_f64() <= status["push_latency_secs"]["p99"].as_f64());
    let heavy = json!({ "sender": "127.0.0.1", "count": 20_000, "error": 0 });
    assert_eq!(top["by_messages"], json!([heavy]));
    assert_eq!(top["by_bytes"][0]["count"], books["received_bytes"]);
    receive.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_is_about_the_queue_and_live_about_the_workers() {
    let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp());
    let run = run(listen, vector, admin, &["--buffer-max-bytes", "300KB", "--shutdown-timeout", "3"]);
    let health = async |service: &str| {
        let message = [&[0x0A, service.len() as u8], service.as_bytes()].concat();
        let (reply, status) = call(admin, "/grpc.health.v1.Health/Check", &message).await;
        assert_eq!(status, "0");
        reply == b"\x08\x01"[..]
    };
    // Vector is down, and that is no reason to send a probe away.
    assert_eq!((get(admin, "/readyz"), get(admin, "/livez").0), ((200, "ok\n".to_owned()), 200));
    Process::start(&["load", &listen.to_string(), "--count", "2000", "--rate", "20000"]).end();
    wait_until("the queue is over its mark", || get(admin, "/readyz").0 == 503);
    let (_, why) = get(admin, "/readyz");
    assert!(why.contains("the queue is") && why.contains("% full"), "{why}");
    assert_eq!(get(admin, "/livez").0, 200, "back-pressure is no fault of the workers");
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await; // gRPC health looks once a second
    assert_eq!((health("readiness").await, health("liveness").await, health("").await), (false, true, false));

    let receive = Process::receive(vector, "--count");
    wait_until("the queue has emptied", || get(admin, "/readyz").0 == 200);
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert!(health("readiness").await && health("liveness").await && health("").await);
    let (_, status) = call(admin, "/grpc.health.v1.Health/Check", b"\x0A\x05other").await;
    assert_eq!(status, "5");
    let config: toml::Table = get(admin, "/config").1.parse().unwrap();
    assert_eq!(config["buffer"]["max_bytes"].as_integer(), Some(300_000));
    assert_eq!(get(admin, "/nothing").0, 404);
    assert_eq!(run.stop().json()["delivered"], 2_000);
    receive.stop();
}

#[test]
fn a_taken_admin_port_is_an_error_only_where_it_was_asked_for() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = taken.local_addr().unwrap().to_string();
    let (listen, vector) = (free_udp().to_string(), format!("http://{}", free_tcp()));
    let ended = Process::start(&["run", "--listen", &listen, "--vector", &vector, "--admin", &admin]).end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("--admin ''"), "{}", ended.stderr);
    let run = Process::run(free_udp(), free_tcp(), &["--admin", ""]);
    assert!(!run.stderr().contains("admin port"));
    assert!(run.stop().status.success());
}

/// Connections that only sit there are few, and let go: datagrams and pushing need file descriptors too.
#[test]
fn idle_clients_do_not_use_up_the_process() {
    let (listen, admin) = (free_udp(), free_tcp());
    let run = run(listen, free_tcp(), admin, &[]);
    let idle: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(admin).unwrap();
            std::io::Write::write_all(&mut stream, b"GET /metr").unwrap();
            stream
        })
        .collect();
    wait_until("it answers all the same", || get(admin, "/livez").0 == 200);
    assert!(run.open_files() < 120, "{}", run.open_files());
    drop(idle);
    run.stop();
}
