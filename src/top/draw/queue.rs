//! What waits, what is on its way, and how long that takes.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{
    BAD, DRAWN, FAINT, STRONG, UNKNOWN, WARNING, bar, bytes, count, latency, rate, spread, title,
};
use crate::numbers::percent;
use crate::top::model::Model;
use crate::top::status::{ByReason, Quantiles, Queue, Status};
use crate::top::verdict::fill;

pub(super) const MINIMUM: usize = 5;
pub(super) const WANTS: usize = 9;

pub(super) fn lines(model: &Model, width: usize) -> Vec<Line<'static>> {
    let title = title(width, "Queue and push", "");
    let Some(status) = model.status() else {
        return vec![title, Line::styled(UNKNOWN, FAINT)];
    };
    let mut lines = vec![title];
    lines.extend(queue(status, width));
    lines.extend([
        quantiles("Push", "request to answer", status.push_latency_secs, width),
        caption("Spool", format!("{} events on disk", count(status.spooled))),
        quantiles("All", "receipt to answer", status.receive_to_ack_secs, width),
        retries(status, model),
        batches(status.batches_by_reason.as_ref()),
        caption("CPU", status.cpu_us_per_event.map_or(UNKNOWN.into(), |us| format!("{us:.2} µs an event"))),
    ]);
    lines
}

fn caption(name: &str, text: String) -> Line<'static> {
    Line::from(vec![Span::styled(format!("{name:<7}"), FAINT), Span::raw(text)])
}

fn queue(status: &Status, width: usize) -> [Line<'static>; 2] {
    let Some(queue) = &status.queue else {
        let held = format!("{} events in memory", count(status.in_memory));
        return [caption("Queue", UNKNOWN.into()), caption("", held)];
    };
    let waits = format!("{} wait, {} in flight", count(queue.waiting_events), count(queue.in_flight_events));
    [filled(queue, width), caption("", waits)]
}

fn filled(queue: &Queue, width: usize) -> Line<'static> {
    let fill = fill(Some(queue));
    let style = match fill {
        fill if fill > 0.9 => BAD,
        fill if fill > 0.5 => WARNING,
        _ => DRAWN,
    };
    let percent = Span::styled(format!("{:.0} %", fill * 100.0), if style == DRAWN { STRONG } else { style });
    let right = Line::from(vec![percent, format!(" of {}", bytes(queue.limit_bytes)).into()]);
    let bar_width = width.saturating_sub(7 + right.width() + 1);
    let mut spans = vec![Span::styled(format!("{:<7}", "Queue"), FAINT)];
    spans.extend(bar(fill, bar_width, style));
    spread(width, Line::from(spans), right)
}

fn quantiles(name: &str, what: &str, quantiles: Option<Quantiles>, width: usize) -> Line<'static> {
    let Quantiles { p50, p99 } = quantiles.unwrap_or_default();
    let mut line = caption(name, format!("p50 {:<8} p99 {:<8}", latency(p50), latency(p99)));
    if line.width() + what.len() < width {
        line.push_span(Span::styled(format!(" {what}"), FAINT));
    }
    line
}

fn retries(status: &Status, model: &Model) -> Line<'static> {
    let told = |number: Option<u64>| number.map_or(UNKNOWN.to_owned(), count);
    let now = model.rate(|status| status.retries);
    let text = format!(
        "{} ({}), duplicates ≤ {}",
        told(status.retries),
        rate(now),
        told(status.possible_duplicates)
    );
    let line = caption("Retries", format!(" {text}"));
    line.style(if now.is_some_and(|now| now > 0.0) { WARNING } else { Style::new() })
}

fn batches(by_reason: Option<&ByReason>) -> Line<'static> {
    let Some(by_reason) = by_reason else { return caption("Batches", format!(" {UNKNOWN}")) };
    let all = by_reason.values().sum();
    let mut some: Vec<_> = by_reason.iter().filter(|(_, batches)| **batches > 0).collect();
    some.sort_by_key(|(_, batches)| std::cmp::Reverse(**batches));
    let share = |(why, batches): (&String, &u64)| format!("{why} {:.0} %", percent(*batches, all));
    let shares: Vec<_> = some.into_iter().map(share).collect();
    caption("Batches", format!(" {}: {}", count(all), shares.join(", ")))
}
