//! The first lines, who it is and the one thing to know, and the last ones, the keys.

use std::time::Duration;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::text::{BAD, FAINT, GOOD, STRONG, UNKNOWN, WARNING, age, spread, wrap};
use crate::top::screen::Screen;
use crate::top::verdict::{Severity, judge};

pub(super) fn lines(screen: &Screen, width: usize) -> Vec<Line<'static>> {
    let model = screen.model();
    let status = model.status();
    let version = status.and_then(|status| status.version.as_ref());
    let version = version.map_or_else(String::new, |version| format!(" {version}"));
    let uptime = status.and_then(|status| status.uptime_secs);
    let uptime = uptime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).map(age);
    let restarts = match model.restarts {
        0 => String::new(),
        1 => ", started again once".to_owned(),
        times => format!(", started again {times} times"),
    };
    let who = Line::from(vec![
        Span::styled("sluicegate", STRONG),
        format!("{version}  {}  up {}{restarts}", model.address, uptime.as_deref().unwrap_or(UNKNOWN)).into(),
    ]);
    let mut lines = vec![spread(width, who, state(screen))];
    let verdict = judge(model);
    let style = match verdict.severity {
        Severity::Good => GOOD,
        Severity::Unknown => Style::new(),
        Severity::Warning => WARNING,
        Severity::Bad => BAD,
    };
    lines.extend(wrap(&verdict.text, width).into_iter().map(|line| Line::styled(line, style)));
    lines
}

/// What the probes are told; the verdict has the reasons.
fn state(screen: &Screen) -> Line<'static> {
    let mut spans = Vec::new();
    if screen.is_paused() {
        spans.extend([Span::styled("PAUSED", WARNING.add_modifier(Modifier::REVERSED)), "  ".into()]);
    }
    let model = screen.model();
    match model.latest() {
        _ if model.trouble().is_some() => spans.push(Span::styled("UNREACHABLE", BAD)),
        None => spans.push(UNKNOWN.into()),
        Some(snapshot) => {
            let live = if snapshot.live.is_ok() { ("live", GOOD) } else { ("NOT LIVE", BAD) };
            let ready = if snapshot.ready.is_ok() { ("ready", GOOD) } else { ("NOT READY", WARNING) };
            spans.extend([Span::styled(live.0, live.1), "  ".into(), Span::styled(ready.0, ready.1)]);
        }
    }
    Line::from(spans)
}

/// The keys, and what the marks mean if that is asked for.
pub(super) fn foot(screen: &Screen, width: usize) -> Vec<Line<'static>> {
    const MARKS: &str = "▲ and red: it grows. Yellow: it has grown since the start, or is uneven. *: the whole \
                         host's. ~: at most so many, the sender may have sent less. Workers' bars are against the busiest \
                         one. now, /s: over the last interval.";
    let mut lines = Vec::new();
    if screen.help {
        lines.extend(wrap(MARKS, width).into_iter().map(|line| Line::styled(line, FAINT)));
    }
    let keys = format!("q quit  p pause  s senders by {}  ? marks", screen.order.next().name());
    let interval = format!("every {}", humantime::format_duration(screen.model().interval));
    lines.push(spread(width, keys, interval).style(FAINT));
    lines
}
