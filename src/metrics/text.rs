//! Prometheus' text format.

use std::fmt::Write;

use super::Snapshot;
use super::names::{Kind, METRICS};

/// Every metric as text.
pub fn render(snapshot: &Snapshot<'_>) -> String {
    let mut out = String::with_capacity(16 << 10);
    for metric in METRICS {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let name = metric.name;
        // Writing to a String cannot fail.
        write!(out, "# HELP {name} {}\n# TYPE {name} {kind}\n", metric.help).ok();
        for (values, sample) in (metric.samples)(snapshot) {
            let labels: Vec<_> = metric
                .labels
                .iter()
                .zip(&values)
                .map(|(name, value)| format!("{name}=\"{value}\""))
                .collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            writeln!(out, "{name}{labels} {sample}").ok();
        }
    }
    out
}
