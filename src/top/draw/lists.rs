//! Endpoints, parse failures and senders: lists that are cut where room ends.

use ratatui::text::{Line, Span};

use super::text::{BAD, FAINT, GOOD, UNKNOWN, WARNING, count, rate, spread, title};
use crate::numbers::percent;
use crate::top::model::Model;
use crate::top::screen::Order;
use crate::top::status::{Endpoint, Sender};

/// Narrower panels leave out failures.
const WIDE: usize = 60;

/// Senders that are worth a row.
const SENDERS: usize = 20;

/// As many as fit, and how many are left.
fn some(mut lines: Vec<Line<'static>>, rows: usize) -> Vec<Line<'static>> {
    if lines.len() > rows && rows > 0 {
        let left = lines.len() - rows + 1;
        lines.truncate(rows - 1);
        lines.push(Line::styled(format!("… {left} more"), FAINT));
    }
    lines
}

pub(super) fn endpoints(model: &Model, width: usize, rows: usize) -> Vec<Line<'static>> {
    let mut lines = vec![title(width, "Vector", "connections  delivered")];
    let told = model.status().and_then(|status| status.endpoints.as_ref());
    match told {
        None => lines.push(Line::styled(UNKNOWN, FAINT)),
        Some(all) => {
            let endpoints = all.iter().flat_map(|endpoint| self::endpoint(endpoint, model, width));
            lines.extend(some(endpoints.collect(), rows.saturating_sub(1)));
        }
    }
    lines
}

/// Its state, and what the last failure was while it is not connected.
fn endpoint(endpoint: &Endpoint, model: &Model, width: usize) -> Vec<Line<'static>> {
    let style = match endpoint.state.as_str() {
        "connected" if endpoint.connected >= endpoint.connections => GOOD,
        "connected" | "connecting" => WARNING,
        _ => BAD,
    };
    let name = endpoint.endpoint.trim_start_matches("http://").trim_end_matches('/');
    let failures = match width >= WIDE {
        true => format!("{} failures  ", count(endpoint.failures)),
        false => String::new(),
    };
    let state = Span::styled(format!("{} ", endpoint.state), style);
    let numbers = format!(
        "{}/{} {:>10}",
        endpoint.connected,
        endpoint.connections,
        rate(model.endpoint_rate(endpoint))
    );
    let mut lines =
        vec![spread(width, name.to_owned(), Line::from(vec![failures.into(), state, numbers.into()]))];
    if let Some(error) = endpoint.last_error.as_ref().filter(|_| endpoint.state != "connected") {
        lines.push(spread(width, Span::styled(format!("  {error}"), style), ""));
    }
    lines
}

pub(super) fn endpoints_wanted(model: &Model) -> usize {
    let told = model.status().and_then(|status| status.endpoints.as_ref());
    1 + told.map_or(1, |all| all.iter().map(endpoint_rows).sum())
}

fn endpoint_rows(endpoint: &Endpoint) -> usize {
    1 + usize::from(endpoint.last_error.is_some() && endpoint.state != "connected")
}

pub(super) fn parse_failures(model: &Model, width: usize, rows: usize) -> Vec<Line<'static>> {
    let mut lines = vec![title(width, "Parse failures", "total       now")];
    let Some(status) = model.status() else {
        lines.push(Line::styled(UNKNOWN, FAINT));
        return lines;
    };
    let mut reasons: Vec<_> = status.parse_failures_by_reason.iter().filter(|(_, n)| **n > 0).collect();
    reasons.sort_by_key(|(_, failures)| std::cmp::Reverse(**failures));
    let line = |(reason, failures): (&String, &u64)| {
        let now = rate(model.rate(|status| status.parse_failures_by_reason.get(reason).copied()));
        spread(width, reason.clone(), format!("{:>8} {now:>9}", count(*failures)))
    };
    match reasons.is_empty() {
        true => lines.push(Line::styled("none", FAINT)),
        false => lines.extend(some(reasons.into_iter().map(line).collect(), rows.saturating_sub(1))),
    }
    lines
}

pub(super) fn parse_failures_wanted(model: &Model) -> usize {
    let reasons = model.status().into_iter().flat_map(|status| status.parse_failures_by_reason.values());
    1 + reasons.filter(|failures| **failures > 0).count().max(1)
}

pub(super) fn senders(order: Order, model: &Model, width: usize, rows: usize) -> Vec<Line<'static>> {
    let mut lines = vec![title(width, &format!("Top senders by {}", order.name()), "share")];
    let told = model.latest().and_then(|snapshot| snapshot.senders.as_ref().zip(Some(&snapshot.status)));
    let Some((senders, status)) = told else {
        lines.push(Line::styled(UNKNOWN, FAINT));
        return lines;
    };
    let whole = match order {
        Order::Messages => status.received,
        Order::Bytes => status.received_bytes,
        Order::ParseFailures => status.parse_failures,
    };
    let line = |sender: &Sender| {
        let about = if sender.error > 0 { "~" } else { "" };
        let share = percent(sender.count, whole).min(100.0);
        let number = format!("{about}{}", count(sender.count));
        spread(width, sender.sender.clone(), format!("{number:>12} {share:>6.1} %"))
    };
    let shown = order.of(senders).iter().take(rows.saturating_sub(1));
    lines.extend(shown.map(line));
    if order.of(senders).is_empty() {
        lines.push(Line::styled("none", FAINT));
    }
    lines
}

pub(super) fn senders_wanted(order: Order, model: &Model) -> usize {
    let told = model.latest().and_then(|snapshot| snapshot.senders.as_ref());
    1 + told.map_or(1, |senders| order.of(senders).len().clamp(1, SENDERS))
}
