//! Loss, place by place.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{BAD, FAINT, UNKNOWN, WARNING, count, rate, spread, title};
use crate::top::loss::{Loss, Place, places};
use crate::top::model::Model;

/// Places without the reasons for what is shed.
const PLACES: usize = 6;

/// Narrower panels need the room for numbers.
const WIDE: usize = 46;

pub(super) const MINIMUM: usize = 1 + PLACES;

pub(super) fn wants(model: &Model) -> usize {
    let reasons = model.status().into_iter().flat_map(|status| status.shed_by_reason.values());
    MINIMUM + reasons.filter(|events| **events > 0).count() + 1
}

pub(super) fn lines(model: &Model, width: usize, rows: usize) -> Vec<Line<'static>> {
    let places = chosen(places(model), rows.saturating_sub(MINIMUM));
    let mut lines = vec![title(width, "Loss along the path", "total       now")];
    lines.extend(places.iter().map(|loss| line(loss, width)));
    lines.push(Line::styled("* the whole host's, since it started", FAINT));
    lines
}

/// All places, but only reasons that there were, and of those as many as there is room for: those that grow, then those
/// with the most.
fn chosen(places: Vec<Loss>, room: usize) -> Vec<Loss> {
    let is_reason = |loss: &Loss| matches!(loss.place, Place::ShedBecause(_));
    let there_were = |loss: &&Loss| is_reason(loss) && loss.total > Some(0);
    let mut reasons: Vec<_> = places.iter().filter(there_were).cloned().collect();
    reasons.sort_by_key(|loss| std::cmp::Reverse((loss.grows(), loss.total)));
    reasons.truncate(room);
    places.into_iter().filter(|loss| !is_reason(loss) || reasons.contains(loss)).collect()
}

fn line(loss: &Loss, width: usize) -> Line<'static> {
    let name = match &loss.place {
        Place::Softnet => "NIC, softnet",
        Place::Socket if width >= WIDE => "Socket, kernel drops",
        Place::Socket => "Socket drops",
        Place::AllSockets => "  UdpRcvbufErrors",
        Place::UdpMemory => "  UdpMemErrors",
        Place::Shed => "Shed by us",
        Place::ShedBecause(reason) => &format!("  {reason}"),
        Place::Rejected => "Rejected by Vector",
    };
    let star = if loss.place.is_hosts() { " *" } else { "" };
    let total = loss.total.map_or_else(|| UNKNOWN.to_owned(), count);
    let now = if loss.grows() { format!("▲ {}", rate(loss.rate)) } else { rate(loss.rate) };
    let numbers = Span::raw(format!("{total:>8} {now:>9}"));
    spread(width, format!("{name}{star}"), numbers).style(style(loss))
}

/// Red while it grows, yellow when it has grown since our start. What the host lost before is no news.
fn style(loss: &Loss) -> Style {
    match loss.total {
        _ if loss.grows() => BAD,
        None => FAINT,
        Some(0) => Style::new(),
        Some(_) if loss.place.is_hosts() => Style::new(),
        Some(_) => WARNING,
    }
}
