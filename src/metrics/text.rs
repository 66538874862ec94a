//! Prometheus' text format.

use std::fmt::Write;

use super::Snapshot;
use super::names::{METRICS, Metric, Source};
use crate::books::Distribution;

/// Every metric as text.
pub fn render(snapshot: &Snapshot<'_>) -> String {
    let mut out = String::with_capacity(32 << 10);
    for metric in METRICS {
        let name = metric.name;
        // Writing to a String cannot fail.
        write!(out, "# HELP {name} {}\n# TYPE {name} {}\n", metric.help, metric.kind.word()).ok();
        match metric.source {
            Source::Numbers(samples) => {
                for (values, sample) in samples(snapshot) {
                    writeln!(out, "{name}{} {sample}", labels(metric, &values)).ok();
                }
            }
            Source::Distribution(distribution) => buckets(&mut out, name, &distribution(snapshot)),
        }
    }
    out
}

fn labels(metric: &Metric, values: &[String]) -> String {
    let pair = |(name, value): (&&str, &String)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    let pairs: Vec<_> = metric.labels.iter().zip(values).map(pair).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

/// Each bucket with what is below it too, as Prometheus adds them up.
fn buckets(out: &mut String, name: &str, distribution: &Distribution) {
    let mut below = 0;
    for (bound, count) in distribution.bounds.iter().zip(&distribution.counts) {
        below += count;
        writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {below}").ok();
    }
    let count = distribution.count();
    writeln!(
        out,
        "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {}\n{name}_count {count}",
        distribution.sum
    )
    .ok();
}
