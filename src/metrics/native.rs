//! The metrics as Vector's own metric events, for sites without Prometheus.

use prost::Message;

use super::Snapshot;
use super::names::{Kind, METRICS, Metric, Source};
use crate::books::Distribution;
use crate::datagram::Timestamp;
use crate::proto::event::aggregated_histogram3::Bucket;
use crate::proto::event::event_wrapper::Event;
use crate::proto::event::metric::{self, Value};
use crate::proto::event::{AggregatedHistogram3, Counter, EventWrapper, Gauge};
use crate::proto::vector::PushEventsRequest;

/// Vector puts it before a metric's name, with `_` between.
const NAMESPACE: &str = "sluicegate";

/// Every metric as events of a request, and how many there are.
pub fn encode(snapshot: &Snapshot<'_>, now: Timestamp) -> (Vec<u8>, u64) {
    let mut events = Vec::new();
    for metric in METRICS {
        match metric.source {
            Source::Numbers(samples) => events.extend(
                samples(snapshot)
                    .into_iter()
                    .map(|(labels, value)| event(metric, labels, number(metric, value), now)),
            ),
            Source::Distribution(distribution) => {
                events.push(event(metric, Vec::new(), histogram(&distribution(snapshot)), now));
            }
        }
    }
    let count = events.len() as u64;
    (PushEventsRequest { events }.encode_to_vec(), count)
}

fn number(metric: &Metric, value: f64) -> Value {
    match metric.kind {
        Kind::Counter => Value::Counter(Counter { value }),
        Kind::Gauge | Kind::Histogram => Value::Gauge(Gauge { value }),
    }
}

fn histogram(distribution: &Distribution) -> Value {
    let bounds = distribution.bounds.iter().copied().chain([f64::INFINITY]);
    let buckets =
        bounds.zip(&distribution.counts).map(|(upper_limit, count)| Bucket { upper_limit, count: *count });
    Value::AggregatedHistogram3(AggregatedHistogram3 {
        buckets: buckets.collect(),
        count: distribution.count(),
        sum: distribution.sum,
    })
}

fn event(metric: &Metric, labels: Vec<String>, value: Value, now: Timestamp) -> EventWrapper {
    let tags = metric.labels.iter().map(|label| (*label).to_owned()).zip(labels);
    let metric = crate::proto::event::Metric {
        name: metric.name.trim_start_matches("sluicegate_").to_owned(),
        namespace: NAMESPACE.to_owned(),
        timestamp: Some(prost_types::Timestamp { seconds: now.seconds, nanos: now.nanos as i32 }),
        tags_v1: tags.collect(),
        kind: metric::Kind::Absolute.into(),
        value: Some(value),
    };
    EventWrapper { event: Some(Event::Metric(metric)) }
}
