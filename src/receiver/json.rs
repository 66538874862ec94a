//! Events as JSON objects, as Vector's `json` codec writes them.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value as Json, json};

use crate::proto::event::aggregated_histogram3::Bucket;
use crate::proto::event::event_wrapper::Event;
use crate::proto::event::value::Kind;
use crate::proto::event::{EventWrapper, Metric, Value, metric};

/// One event as JSON. Bytes that are no UTF-8 are shown with replacement characters.
pub fn event_to_json(wrapper: &EventWrapper) -> Json {
    match &wrapper.event {
        Some(Event::Log(log)) => match &log.value {
            Some(value) => value_to_json(value),
            None => fields_to_json(&log.fields),
        },
        Some(Event::Trace(trace)) => fields_to_json(&trace.fields),
        Some(Event::Metric(metric)) => metric_to_json(metric),
        None => Json::Null,
    }
}

fn metric_to_json(metric: &Metric) -> Json {
    let kind = if metric.kind == metric::Kind::Absolute as i32 { "absolute" } else { "incremental" };
    let tags = if metric.tags_v1.is_empty() { Json::Null } else { json!(metric.tags_v1) };
    let mut out = json!({
        "name": metric.name,
        "namespace": metric.namespace,
        "tags": tags,
        "timestamp": metric.timestamp.as_ref().map(time_to_json),
        "kind": kind,
    });
    let (name, value) = match &metric.value {
        Some(metric::Value::Counter(counter)) => ("counter", json!({ "value": counter.value })),
        Some(metric::Value::Gauge(gauge)) => ("gauge", json!({ "value": gauge.value })),
        Some(metric::Value::AggregatedHistogram3(histogram)) => {
            let bucket = |b: &Bucket| json!({ "upper_limit": b.upper_limit, "count": b.count });
            let buckets: Vec<_> = histogram.buckets.iter().map(bucket).collect();
            let value = json!({ "buckets": buckets, "count": histogram.count, "sum": histogram.sum });
            ("aggregated_histogram", value)
        }
        None => return out,
    };
    out[name] = value;
    out
}

fn fields_to_json<'a>(fields: impl IntoIterator<Item = (&'a String, &'a Value)>) -> Json {
    Json::Object(
        fields.into_iter().map(|(key, value)| (key.clone(), value_to_json(value))).collect::<Map<_, _>>(),
    )
}

fn value_to_json(value: &Value) -> Json {
    match &value.kind {
        None | Some(Kind::Null(_)) => Json::Null,
        Some(Kind::RawBytes(bytes)) => String::from_utf8_lossy(bytes).into(),
        Some(Kind::Integer(integer)) => (*integer).into(),
        Some(Kind::Float(float)) => (*float).into(),
        Some(Kind::Boolean(boolean)) => (*boolean).into(),
        Some(Kind::Timestamp(time)) => time_to_json(time),
        Some(Kind::Map(map)) => fields_to_json(&map.fields),
        Some(Kind::Array(array)) => array.items.iter().map(value_to_json).collect(),
    }
}

fn time_to_json(time: &prost_types::Timestamp) -> Json {
    DateTime::from_timestamp(time.seconds, time.nanos.unsigned_abs())
        .map_or(Json::Null, |time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::event::Log;

    #[test]
    fn a_log_reads_as_in_vector() {
        let value = |kind| Value { kind: Some(kind) };
        let time = prost_types::Timestamp { seconds: 1_796_000_000, nanos: 5_000_000 };
        let fields = [
            ("message".to_owned(), value(Kind::RawBytes(b"caf\xe9"[..].into()))),
            ("port".to_owned(), value(Kind::Integer(514))),
            ("timestamp".to_owned(), value(Kind::Timestamp(time))),
        ];
        let log = Log { fields: fields.into(), value: None };
        let wrapper = EventWrapper { event: Some(Event::Log(log)) };
        assert_eq!(
            event_to_json(&wrapper).to_string(),
            r#"{"message":"caf�","port":514,"timestamp":"2026-11-30T00:53:20.005Z"}"#
        );
    }
}
