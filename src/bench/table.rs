//! Runs as a table for people and as CSV for everything else.

use std::fmt::Write;

use super::plan::median;
use super::{Machine, Offer, Outcome};
use crate::numbers::grouped;

/// The machine, the offer, and the columns of [`row`].
pub fn heading(machine: &Machine, offer: &Offer) -> String {
    format!(
        "{} × {}, Linux {}, rmem_max {}\noffered {} a second of {} bytes for {} s, {} flow(s), {} workers\n\n{}",
        machine.cores,
        machine.cpu,
        machine.kernel,
        grouped(machine.rmem_max),
        grouped(offer.rate),
        offer.size,
        offer.seconds,
        offer.flows,
        offer.workers,
        line(["pipeline", "sent", "rate", "lost", "load µs", "forward µs", "sink µs", "RSS KiB", "faults/s"])
    )
}

/// A run.
pub fn row(outcome: &Outcome) -> String {
    let forwarder = &outcome.forwarder;
    line([
        &outcome.pipeline,
        &outcome.sent.to_string(),
        &format!("{:.0}", outcome.rate),
        &outcome.lost().to_string(),
        &format!("{:.2}", outcome.load_us),
        &format!("{:.2}", forwarder.cpu_us),
        &outcome.sink.map_or_else(|| "–".to_owned(), |sink| format!("{:.2}", sink.cpu_us)),
        &forwarder.peak_rss_kib.to_string(),
        &format!("{:.0}", forwarder.page_faults_per_second),
    ])
}

fn line(columns: [&str; 9]) -> String {
    let [pipeline, sent, rate, lost, load, forward, sink, rss, faults] = columns;
    format!("{pipeline:<32}{sent:>10}{rate:>9}{lost:>9}{load:>9}{forward:>11}{sink:>9}{rss:>10}{faults:>10}")
}

/// The medians of each kind of run, with their spread, and what the forwarder costs beside receiving alone.
pub fn summary(outcomes: &[Outcome]) -> String {
    let kind = |outcome: &Outcome| (outcome.pipeline.clone(), outcome.offered, outcome.workers);
    let mut kinds: Vec<_> = outcomes.iter().map(kind).collect();
    let mut seen = std::collections::HashSet::new();
    kinds.retain(|kind| seen.insert(kind.clone()));
    let mut text = String::from("\nmedians, and how far single runs were from them\n");
    for of_kind in kinds {
        let runs: Vec<_> = outcomes.iter().filter(|outcome| kind(outcome) == of_kind).collect();
        let (pipeline, offered, workers) = &of_kind;
        let middle = |value: &dyn Fn(&Outcome) -> f64| {
            median(runs.iter().map(|outcome| value(outcome)).collect()).unwrap_or_default()
        };
        let (forward, spread) = middle(&|outcome| outcome.forwarder.cpu_us);
        let (whole, _) = middle(&Outcome::cpu_us);
        let (lost, _) = middle(&|outcome| 100.0 * outcome.lost() as f64 / outcome.sent.max(1) as f64);
        let floor = median(
            outcomes
                .iter()
                .filter(|floor| {
                    floor.sink.is_none() && (floor.offered, floor.workers) == (*offered, *workers)
                })
                .map(|floor| floor.forwarder.cpu_us)
                .collect(),
        );
        // A sweep measures each at other rates.
        let times = floor
            .map_or_else(String::new, |(floor, _)| format!("({:.2} × receiving alone)  ", forward / floor));
        // A String takes everything.
        writeln!(
            text,
            "{pipeline:<32} {:>8}/s  {workers:>2} workers  lost {lost:.2} %  forward {forward:.2} µs ± {:.0} % \
             {times}all but the load {whole:.2} µs",
            grouped(*offered),
            100.0 * spread,
        )
        .ok();
    }
    text
}

/// Every run, a line each.
pub fn csv(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "pipeline,offered,workers,sent,rate,arrived,lost,kernel_drops,load_us,forwarder_us,forwarder_rss_kib,\
         forwarder_faults_per_second,sink_us,sink_rss_kib\n",
    );
    for outcome in outcomes {
        let (forwarder, sink) = (&outcome.forwarder, outcome.sink.as_ref());
        let optional = |value: Option<String>| value.unwrap_or_default();
        let columns = [
            outcome.pipeline.clone(),
            outcome.offered.to_string(),
            outcome.workers.to_string(),
            outcome.sent.to_string(),
            format!("{:.0}", outcome.rate),
            outcome.arrived.to_string(),
            outcome.lost().to_string(),
            optional(outcome.kernel_drops.map(|drops| drops.to_string())),
            format!("{:.3}", outcome.load_us),
            format!("{:.3}", forwarder.cpu_us),
            forwarder.peak_rss_kib.to_string(),
            format!("{:.0}", forwarder.page_faults_per_second),
            optional(sink.map(|sink| format!("{:.3}", sink.cpu_us))),
            optional(sink.map(|sink| sink.peak_rss_kib.to_string())),
        ];
        text.push_str(&columns.join(","));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Cost;

    fn outcome(pipeline: &str, cpu_us: f64, sink: Option<f64>) -> Outcome {
        let cost = |cpu_us| Cost { cpu_us, peak_rss_kib: 20_000, page_faults_per_second: 50.0 };
        Outcome {
            pipeline: pipeline.to_owned(),
            offered: 1_000,
            workers: 2,
            sent: 1_000,
            rate: 999.6,
            arrived: 990,
            kernel_drops: None,
            load_us: 1.5,
            forwarder: cost(cpu_us),
            sink: sink.map(cost),
        }
    }

    #[test]
    fn medians_are_held_to_receiving_alone() {
        let mut outcomes = vec![outcome("load → discard", 2.0, None)];
        outcomes
            .extend([3.0, 5.0, 4.0].map(|cpu| outcome("load → sluicegate → count-events", cpu, Some(1.0))));
        let text = summary(&outcomes);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(
            text.contains(
                "lost 1.00 %  forward 4.00 µs ± 25 % (2.00 × receiving alone)  all but the load 5.00 µs"
            ),
            "{text}"
        );
        let csv = csv(&outcomes);
        let columns = |line: &str| line.split(',').count();
        assert!(csv.lines().all(|line| columns(line) == 14), "{csv}");
        assert!(csv.contains("load → discard,1000,2,1000,1000,990,10,,1.500,2.000,20000,50,,\n"), "{csv}");
    }
}
