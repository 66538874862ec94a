//! The metrics as others take them: a real Prometheus, Vector as events, and the documentation.

use sluicegate::metrics::names::{Kind, METRICS};
use sluicegate::proto::event::event_wrapper::Event;
use sluicegate::proto::event::{Counter, Metric, metric};

use crate::support::admin::{get, samples, total};
use crate::support::process::Process;
use crate::support::prometheus::Prometheus;
use crate::support::vector::FakeVector;
use crate::support::{free_tcp, free_udp, wait_until};

#[test]
fn a_real_prometheus_sees_the_books() {
    let (listen, vector, admin) = (free_udp(), free_tcp(), free_tcp());
    let receive = Process::receive(vector, "--count");
    let mut run = Process::run(listen, vector, &["--admin", &admin.to_string(), "--parse", "syslog"]);
    run.wait_for_log("admin port");
    let Some(prometheus) = Prometheus::start(&[admin], None) else { return };
    prometheus.wait_for(1);
    Process::start(&["load", &listen.to_string(), "--count", "60000", "--rate", "20000"]).end();
    wait_until("all is delivered", || {
        prometheus.total("sluicegate_push_delivered_events_total") == Some(60_000.0)
    });
    // One more scrape, so that all its samples are of one moment after the end.
    std::thread::sleep(std::time::Duration::from_millis(600));

    let ours = samples(&get(admin, "/metrics").1);
    let of_this_run =
        |name: &str| !name.starts_with("sluicegate_host_") && name != "sluicegate_process_cpu_seconds_total";
    let mut compared = 0;
    for metric in METRICS.iter().filter(|metric| of_this_run(metric.name)) {
        let names = match metric.kind {
            Kind::Counter => vec![metric.name.to_owned()],
            Kind::Histogram => {
                ["_count", "_sum", "_bucket"].map(|end| format!("{}{end}", metric.name)).into()
            }
            Kind::Gauge => continue,
        };
        for name in names {
            assert_eq!(prometheus.total(&name), Some(total(&ours, &name)), "{name}");
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
    let books = run.stop().json();
    assert_eq!((&books["received"], &books["delivered"]), (&60_000.into(), &60_000.into()));
    prometheus.stop();
    receive.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn self_metrics_reach_vector_as_metric_events_and_the_books_balance() {
    let vector = FakeVector::keeping(|event| matches!(event.event, Some(Event::Metric(_)))).await;
    let listen = free_udp();
    let run = Process::run(listen, vector.address, &["--self-metrics", "--workers", "1"]);
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"one", listen).unwrap();
    let metric = |name: &str| {
        let is_it = |metric: &Metric| metric.name == name;
        vector.metrics().into_iter().rfind(is_it)
    };
    wait_until("the metrics have come", || metric("process_resident_memory_bytes").is_some());
    let received = metric("receive_datagrams_total").unwrap();
    assert_eq!((received.namespace.as_str(), received.kind), ("sluicegate", metric::Kind::Absolute as i32));
    let tags = [("listener".to_owned(), listen.to_string()), ("worker".to_owned(), "0".to_owned())];
    assert_eq!(received.tags_v1, tags.into());
    assert_eq!(received.value, Some(metric::Value::Counter(Counter { value: 1.0 })));
    let Some(metric::Value::AggregatedHistogram3(sizes)) = metric("batch_events").unwrap().value else {
        panic!()
    };
    assert_eq!((sizes.count, sizes.sum, sizes.buckets[0].count), (1, 1.0, 1));
    assert_eq!(sizes.buckets.last().unwrap().upper_limit, f64::INFINITY);
    let books = run.stop().json();
    let number = |key: &str| books[key].as_u64().unwrap();
    assert!(number("extra") as usize >= METRICS.len() - 2, "{books}"); // a closed set may have no member
    assert_eq!(number("received") + number("extra"), number("delivered"), "{books}");
}

#[test]
fn the_documentation_lists_every_metric_and_no_other() {
    let row = |metric: &sluicegate::metrics::names::Metric| {
        let kind = metric.kind.word();
        let labels = metric.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        format!("| `{}` | {kind} | {labels} | {} |", metric.name, metric.help)
    };
    let expected: Vec<_> = METRICS.iter().map(row).collect();
    let path = format!("{}/docs/metrics.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let is_row = |line: &&str| line.starts_with("| `sluicegate_");
    let documented: Vec<_> = text.lines().filter(is_row).map(str::to_owned).collect();
    assert_eq!(documented, expected, "the table should be:\n{}", expected.join("\n"));
    for metric in METRICS {
        assert_eq!(metric.kind == Kind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
    }
}

/// Every reason, result and the like that a running process tells stands in the documentation's row of that metric.
#[test]
fn the_documentation_lists_every_value_of_a_label() {
    let admin = free_tcp();
    let mut run = Process::run(free_udp(), free_tcp(), &["--admin", &admin.to_string()]);
    run.wait_for_log("admin port");
    let text = std::fs::read_to_string(format!("{}/docs/metrics.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut seen = 0;
    for line in get(admin, "/metrics").1.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, labels)) = line.split_once('{') else { continue };
        for label in ["reason", "result", "steering", "which", "code"] {
            let Some((_, rest)) = labels.split_once(&format!("{label}=\"")) else { continue };
            let value = rest.split('"').next().unwrap();
            let row = text.lines().find(|row| row.starts_with(&format!("| `{label}` | `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("no row of values for {label} of {name}"));
            assert!(label == "code" || row.contains(&format!("`{value}`")), "{value} in {row}");
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
    run.stop();
}
