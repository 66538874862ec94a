//! PromQL, taken apart far enough to hold its names to the table of metrics.

use std::collections::BTreeSet;

use sluicegate::metrics::names::{Kind, METRICS, Metric};

/// What an expression names that does not exist: metrics, and labels that its metrics do not have.
pub fn strangers(expression: &str) -> Vec<String> {
    let words = words(expression);
    let mut found = Vec::new();
    let mut labels: BTreeSet<&str> = ["instance", "job"].into();
    for (_, metric, end) in metrics_in(&words) {
        labels.extend(metric.labels);
        if end == "_bucket" {
            labels.insert("le");
        }
    }
    for word in words.iter().filter(|word| word.starts_with("sluicegate_")) {
        if metric(word).is_none() {
            found.push(format!("no metric {word}"));
        }
    }
    for (at, metric, end) in metrics_in(&words) {
        for label in selector(&words[at + 1..]) {
            let of_histogram = label == "le" && end == "_bucket";
            if !metric.labels.contains(&label) && !of_histogram && label != "instance" {
                found.push(format!("{} has no label {label}", words[at]));
            }
        }
    }
    for (at, word) in words.iter().enumerate() {
        if ["by", "on", "without", "ignoring", "group_left", "group_right"].contains(word) {
            for label in inside(&words[at + 1..], "(", ")") {
                if !labels.contains(label) {
                    found.push(format!("nothing in it has a label {label}"));
                }
            }
        }
    }
    found
}

/// The names of metrics in an expression, without the ends of a histogram's.
pub fn metrics_of(expression: &str) -> Vec<&'static str> {
    metrics_in(&words(expression)).map(|(_, metric, _)| metric.name).collect()
}

fn metrics_in<'a>(words: &'a [&str]) -> impl Iterator<Item = (usize, &'static Metric, &'a str)> {
    words.iter().enumerate().filter_map(|(at, word)| {
        let (metric, end) = metric(word)?;
        Some((at, metric, end))
    })
}

fn metric(word: &str) -> Option<(&'static Metric, &str)> {
    METRICS.iter().find_map(|metric| {
        let end = word.strip_prefix(metric.name)?;
        let right = match metric.kind {
            Kind::Histogram => ["_bucket", "_sum", "_count"].contains(&end),
            _ => end.is_empty(),
        };
        right.then_some((metric, end))
    })
}

/// The labels in the braces that follow at once, if they do.
fn selector<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    let all = inside(rest, "{", "}");
    all.iter().enumerate().filter(|(at, _)| at % 2 == 0).map(|(_, label)| *label).collect()
}

/// The words and texts between two brackets that follow at once.
fn inside<'a>(rest: &[&'a str], open: &str, close: &str) -> Vec<&'a str> {
    if rest.first() != Some(&open) {
        return Vec::new();
    }
    let word = |word: &&&str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '"' || c == '_');
    rest.iter().take_while(|word| **word != close).filter(word).copied().collect()
}

/// Names, texts in quotes, and each other character by itself.
fn words(expression: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => rest.match_indices('"').nth(1).unwrap().0 + 1,
            c if c.is_ascii_alphabetic() || c == '_' => {
                rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

#[test]
fn what_does_not_exist_is_seen() {
    let right = r#"sum by (instance, le) (rate(sluicegate_batch_bytes_bucket{instance=~"a"}[5m]))"#;
    assert_eq!(strangers(right), [""; 0]);
    let wrong = r#"sum by (reason) (rate(sluicegate_receive_bytes_total{worker="0",reason!="x"}[5m])) / sluicegate_no"#;
    assert_eq!(
        strangers(wrong),
        [
            "no metric sluicegate_no",
            "sluicegate_receive_bytes_total has no label reason",
            "nothing in it has a label reason",
        ]
    );
    assert_eq!(
        strangers("sluicegate_batch_bytes"),
        ["no metric sluicegate_batch_bytes"],
        "a histogram has parts"
    );
    assert_eq!(metrics_of(right), ["sluicegate_batch_bytes"]);
}
