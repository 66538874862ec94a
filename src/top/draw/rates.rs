//! Rates, with sparks of the last minutes.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{RenderDirection, Sparkline, Widget};

use super::text::{DRAWN, FAINT, STRONG, UNKNOWN, bytes, count, rate};
use super::{put, split};
use crate::top::history::{self, Rates};
use crate::top::model::Model;
use crate::top::status::Status;

/// Columns of the name and the rate, and of the total.
const LEFT: u16 = 23;
const RIGHT: u16 = 14;

/// Sparks in fewer columns say nothing.
const SPARKS: u16 = 8;

/// One of the lines.
struct Shown {
    name: &'static str,
    value: fn(&Rates) -> f64,
    rate: fn(Rates) -> String,
    total: fn(&Status) -> String,
}

const SHOWN: [Shown; 3] = [
    Shown {
        name: "Received",
        value: |rates| rates.received,
        rate: |rates| rate(Some(rates.received)),
        total: |status| count(status.received),
    },
    Shown {
        name: "Delivered",
        value: |rates| rates.delivered,
        rate: |rates| rate(Some(rates.delivered)),
        total: |status| count(status.delivered),
    },
    Shown {
        name: "Bytes",
        value: |rates| rates.bytes,
        rate: |rates| format!("{}/s", bytes(rates.bytes.round() as u64)),
        total: |status| bytes(status.received_bytes),
    },
];

/// Draws them into the first rows of an area of a screen of this height, and returns what is left.
pub(super) fn draw(model: &Model, screen_height: u16, area: Rect, buffer: &mut Buffer) -> Rect {
    let rows = match screen_height {
        ..36 => 1,
        36..50 => 2,
        _ => 3,
    };
    let (sparks, reach) = sparks(area, model);
    let mut rest = area;
    for (number, shown) in SHOWN.iter().enumerate() {
        let (own, below) = split(rest, rows);
        put(numbers(shown, model, (number == 0).then_some(reach)), own, buffer);
        put(vec![total(shown, model)], right(own, sparks), buffer);
        draw_sparks(shown, model, Rect { y: own.y, height: own.height, ..sparks }, buffer);
        rest = below;
    }
    rest
}

/// Where sparks go, and how far back they reach.
fn sparks(area: Rect, model: &Model) -> (Rect, Duration) {
    let width = area.width.saturating_sub(LEFT + RIGHT);
    let width = if width < SPARKS { 0 } else { width };
    let sparks = Rect { x: area.x + LEFT.min(area.width), width, ..area };
    (sparks, history::reach(usize::from(width), model.interval))
}

fn right(own: Rect, sparks: Rect) -> Rect {
    let x = sparks.right();
    Rect { x, width: own.right().saturating_sub(x), ..own }
}

fn numbers(shown: &Shown, model: &Model, reach: Option<Duration>) -> Vec<Line<'static>> {
    let now = model.rates().map_or_else(|| UNKNOWN.to_owned(), shown.rate);
    let first =
        Line::from(vec![Span::raw(format!("{:<9}", shown.name)), Span::styled(format!("{now:>13}"), STRONG)]);
    let minutes = |reach: Duration| format!("the last {:.1} min", reach.as_secs_f64() / 60.0);
    let second = reach.map(|reach| Line::styled(format!("{:>22}", minutes(reach)), FAINT));
    [first].into_iter().chain(second).collect()
}

fn total(shown: &Shown, model: &Model) -> Line<'static> {
    let total = model.status().map_or_else(|| UNKNOWN.to_owned(), shown.total);
    Line::from(vec![Span::styled(" Σ", FAINT), Span::raw(format!("{total:>12}"))])
}

/// Received and delivered have one scale, so that a difference shows; what was held up and is delivered all at once does
/// not dwarf the rest.
fn draw_sparks(shown: &Shown, model: &Model, area: Rect, buffer: &mut Buffer) {
    let columns =
        |value: fn(&Rates) -> f64| model.history.columns(usize::from(area.width), model.interval, value);
    let highest = |value| columns(value).into_iter().flatten().max().filter(|highest| *highest > 0);
    let common = if shown.name == "Bytes" { None } else { highest(|rates| rates.received) };
    let scale = common.or_else(|| highest(shown.value)).unwrap_or(1);
    Sparkline::default()
        .data(columns(shown.value))
        .direction(RenderDirection::RightToLeft)
        .max(scale)
        .absent_value_symbol("╌")
        .absent_value_style(FAINT)
        .style(DRAWN)
        .render(area.intersection(buffer.area), buffer);
}
