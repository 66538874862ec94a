//! Who does the work: an uneven split shows.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{BAD, DRAWN, FAINT, UNKNOWN, WARNING, bar, cut, rate, spread, title};
use crate::numbers::percent;
use crate::top::model::Model;
use crate::top::status::Worker;

pub(super) const MINIMUM: usize = 3;

/// Narrower panels leave out how full the sockets are.
const WIDE: usize = 52;

/// Narrower bars say too little.
const ENOUGH: usize = 18;

/// Narrower bars leave out how many datagrams a second that is.
const WITH_RATE: usize = 30;

/// Columns between bars that are side by side.
const GAP: usize = 2;

/// One worker's part.
struct Part {
    name: String,
    rate: Option<f64>,
    /// Of what all of them received in the last interval, or since the start when that was nothing; percent.
    share: f64,
    /// The busiest worker has 1.
    relative: f64,
    /// How full its socket is; percent.
    filled: Option<f64>,
    drops: bool,
}

pub(super) fn wants(model: &Model) -> usize {
    1 + workers(model).len().max(MINIMUM - 1)
}

pub(super) fn lines(model: &Model, width: usize, rows: usize) -> Vec<Line<'static>> {
    let parts = parts(workers(model), model);
    let mut lines = vec![title(width, &format!("Workers ({})", parts.len()), "share of received")];
    match parts.len() {
        0 => lines.push(Line::styled(UNKNOWN, FAINT)),
        many => {
            let side_by_side = many.div_ceil(rows.saturating_sub(1).max(1));
            match width.saturating_sub(GAP * (side_by_side - 1)) / side_by_side {
                room if room >= ENOUGH => lines.extend(grid(&parts, room, many.div_ceil(side_by_side))),
                _ => lines.extend(small(&parts, width, rows.saturating_sub(1))),
            }
        }
    }
    lines
}

fn workers(model: &Model) -> &[Worker] {
    model.status().map_or(&[], |status| &status.workers)
}

fn parts(workers: &[Worker], model: &Model) -> Vec<Part> {
    let rates: Vec<_> = workers.iter().map(|worker| model.worker_rate(worker, |w| w.received)).collect();
    let recent = rates.iter().flatten().any(|rate| *rate > 0.0);
    let weight = |number: usize| match recent {
        true => rates[number].unwrap_or_default(),
        false => workers[number].received as f64,
    };
    let whole: f64 = (0..workers.len()).map(weight).sum();
    let highest = (0..workers.len()).map(weight).fold(0.0, f64::max);
    let of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    let several = workers.iter().any(|worker| worker.listener != workers[0].listener);
    let part = |(number, worker): (usize, &Worker)| Part {
        name: match several {
            true => format!("{} {}", worker.listener, worker.worker),
            false => worker.worker.to_string(),
        },
        rate: rates[number],
        share: of(weight(number), whole) * 100.0,
        relative: of(weight(number), highest),
        filled: worker.socket_queue_bytes.zip(worker.buffer_bytes).map(|(held, all)| percent(held, all)),
        drops: model.worker_rate(worker, |w| w.kernel_drops).is_some_and(|rate| rate > 0.0),
    };
    workers.iter().enumerate().map(part).collect()
}

/// Bars one under the other, and side by side where there are more of them than rows.
fn grid(parts: &[Part], width: usize, rows: usize) -> Vec<Line<'static>> {
    let line_of = |row: usize| {
        let mut spans = Vec::new();
        for part in parts.iter().skip(row).step_by(rows) {
            if !spans.is_empty() {
                spans.push(Span::raw(" ".repeat(GAP)));
            }
            spans.extend(line(part, width, parts.len()).spans);
        }
        Line::from(spans)
    };
    (0..rows).map(line_of).collect()
}

fn line(part: &Part, width: usize, workers: usize) -> Line<'static> {
    let filled = match part.filled {
        Some(filled) if width >= WIDE => format!("  buffer {filled:>3.0} %"),
        _ => String::new(),
    };
    let mark = if part.drops { "▲" } else { " " };
    let mut numbers = format!("{:>5.1} %", part.share);
    if width >= WITH_RATE {
        numbers = format!("{numbers} {:>10}{filled}", rate(part.rate));
    }
    let name_width = part.name.chars().count().clamp(2, width / 3 + 2);
    let name = format!("{:>name_width$}{mark} ", cut(&part.name, name_width));
    let bar_width = width.saturating_sub(name_width + 2 + numbers.len() + 1);
    let plain = if part.drops { BAD } else { Style::new() };
    let mut spans = vec![Span::styled(name, plain)];
    spans.extend(bar(part.relative, bar_width, style(part, workers)));
    spread(width, Line::from(spans), Span::styled(numbers, plain))
}

/// A column for each worker, where there is no row for each.
fn small(parts: &[Part], width: usize, rows: usize) -> Vec<Line<'static>> {
    const HEIGHTS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let column = |part: &Part| {
        Span::styled(HEIGHTS[(part.relative * 8.0).ceil() as usize % 9], style(part, parts.len()))
    };
    let chunks = parts.chunks(width.max(1)).take(rows.saturating_sub(1).max(1));
    let mut lines: Vec<_> = chunks.map(|chunk| chunk.iter().map(column).collect::<Line>()).collect();
    let by_share = |a: &&Part, b: &&Part| a.share.total_cmp(&b.share);
    let extremes = parts.iter().min_by(by_share).zip(parts.iter().max_by(by_share));
    if let Some((least, most)) = extremes {
        let even = 100.0 / parts.len() as f64;
        let text = format!(
            "{:.1} % ({}) to {:.1} % ({}), even: {even:.1} %",
            least.share, least.name, most.share, most.name
        );
        lines.push(Line::raw(cut(&text, width)));
    }
    lines
}

/// Red where the kernel drops, yellow where a worker has more than twice its even share, or less than half of it.
fn style(part: &Part, workers: usize) -> Style {
    let even = 100.0 / workers as f64;
    match part.share {
        _ if part.drops => BAD,
        share if share > 0.0 && (share > even * 2.0 || share < even / 2.0) => WARNING,
        _ => DRAWN,
    }
}
