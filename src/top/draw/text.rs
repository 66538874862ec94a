//! Lines of text, cut and padded to a width, and numbers as they stand in them.

use std::time::Duration;

use bytesize::ByteSize;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::numbers::grouped;

/// What is worth a look.
pub(super) const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
/// What may become so.
pub(super) const WARNING: Style = Style::new().fg(Color::Yellow);
/// What is as it should be.
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
/// Bars and sparks.
pub(super) const DRAWN: Style = Style::new().fg(Color::Cyan);
/// Captions, and what is not known any more.
pub(super) const FAINT: Style = Style::new().fg(Color::DarkGray);
/// Titles.
pub(super) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// What is not told.
pub(super) const UNKNOWN: &str = "-";

/// A count, exact as long as it fits a column.
pub(super) fn count(number: u64) -> String {
    match number {
        0..1_000_000_000 => grouped(number),
        _ => format!("{:.2} G", number as f64 / 1e9),
    }
}

/// Something a second.
pub(super) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => UNKNOWN.to_owned(),
        Some(rate) if rate >= 9.95 => format!("{}/s", count(rate.round() as u64)),
        Some(rate) if rate >= 0.05 => format!("{rate:.1}/s"),
        Some(rate) if rate > 0.0 => "<0.1/s".to_owned(),
        Some(_) => "0/s".to_owned(),
    }
}

/// Bytes with a unit.
pub(super) fn bytes(number: u64) -> String {
    ByteSize(number).to_string()
}

/// A short time.
pub(super) fn latency(seconds: Option<f64>) -> String {
    match seconds {
        None => UNKNOWN.to_owned(),
        Some(seconds) if seconds >= 1.0 => format!("{seconds:.2} s"),
        Some(seconds) if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{:.0} µs", seconds * 1e6),
    }
}

/// A long time.
pub(super) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match days {
        0 => format!("{hours:02}:{minutes:02}:{:02}", seconds % 60),
        _ => format!("{days}d {hours:02}:{minutes:02}"),
    }
}

/// A bar, `fraction` of `width` long, and the rest of it.
pub(super) fn bar(fraction: f64, width: usize, style: Style) -> [Span<'static>; 2] {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = ((fraction.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize).min(width * 8);
    let (full, part) = (eighths / 8, eighths % 8);
    let drawn = format!("{}{}", "█".repeat(full), EIGHTHS[part]);
    let rest = "·".repeat(width - full - usize::from(part > 0));
    [Span::styled(drawn, style), Span::styled(rest, FAINT)]
}

/// The first `width` characters, the last of them a sign when something is missing.
pub(super) fn cut(text: &str, width: usize) -> String {
    match text.chars().count() {
        length if length <= width => text.to_owned(),
        _ if width == 0 => String::new(),
        _ => text.chars().take(width - 1).chain(['…']).collect(),
    }
}

/// A line with something at its beginning and something at its end. When there is not room for both, the end counts.
pub(super) fn spread(
    width: usize,
    left: impl Into<Line<'static>>,
    right: impl Into<Line<'static>>,
) -> Line<'static> {
    let (left, right) = (left.into(), right.into());
    let mut room = width.saturating_sub(right.width() + usize::from(right.width() > 0));
    let mut spans = Vec::new();
    for span in left.spans {
        let content = cut(&span.content, room);
        room -= content.chars().count();
        spans.push(Span::styled(content, span.style));
    }
    let used = spans.iter().map(Span::width).sum::<usize>() + right.width();
    spans.push(" ".repeat(width.saturating_sub(used)).into());
    spans.extend(right.spans);
    Line::from(spans)
}

/// A panel's title, with a rule up to what stands over the columns at its end.
pub(super) fn title(width: usize, text: &str, over_columns: &str) -> Line<'static> {
    let text = cut(text, width);
    if text.chars().count() == width {
        return Line::styled(text, STRONG);
    }
    let room = width.saturating_sub(text.chars().count() + 1);
    let end = if over_columns.len() + 2 <= room { over_columns } else { "" };
    let rule = room.saturating_sub(end.chars().count() + usize::from(!end.is_empty()));
    let gap = if end.is_empty() { "" } else { " " };
    Line::from(vec![
        Span::styled(text, STRONG),
        Span::styled(format!(" {}{gap}{end}", "─".repeat(rule)), FAINT),
    ])
}

/// Words in lines of at most `width`, longer words in pieces.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let characters: Vec<_> = word.chars().collect();
        for piece in characters.chunks(width) {
            let last = lines.last_mut().map(|line| (line.chars().count(), line));
            match last {
                Some((0, line)) => line.extend(piece),
                Some((length, line)) if length + 1 + piece.len() <= width => {
                    line.push(' ');
                    line.extend(piece);
                }
                _ => lines.push(piece.iter().collect()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_columns() {
        assert_eq!([0, 999_999_999, 12_345_678_901].map(count), ["0", "999,999,999", "12.35 G"]);
        let rates = [None, Some(0.0), Some(0.01), Some(1.25), Some(9.96), Some(123_456.4)].map(rate);
        assert_eq!(rates, ["-", "0/s", "<0.1/s", "1.2/s", "10/s", "123,456/s"]);
        let latencies = [None, Some(0.0), Some(0.000_4), Some(0.012_34), Some(2.5)].map(latency);
        assert_eq!(latencies, ["-", "0 µs", "400 µs", "12.3 ms", "2.50 s"]);
        assert_eq!(
            [59, 3_661, 90_000].map(|s| age(Duration::from_secs(s))),
            ["00:00:59", "01:01:01", "1d 01:00"]
        );
    }

    #[test]
    fn bars_are_as_wide_as_they_should_be() {
        for width in [0, 1, 7, 20] {
            for fraction in [-1.0, 0.0, 0.01, 0.5, 0.99, 1.0, 7.0, f64::NAN] {
                let length: usize = bar(fraction, width, DRAWN).iter().map(Span::width).sum();
                assert_eq!(length, width, "{fraction}");
            }
        }
        assert_eq!(bar(0.5, 3, DRAWN)[0].content, "█▌");
    }

    #[test]
    fn the_end_of_a_line_counts_more_than_its_beginning() {
        assert_eq!(spread(10, "left", "end").to_string(), "left   end");
        assert_eq!(spread(6, "left", "end").to_string(), "l… end");
        assert_eq!(spread(2, "left", "end").to_string(), "end");
        assert_eq!(title(12, "Loss", "now").to_string(), "Loss ─── now");
        assert_eq!(title(3, "Loss", "now").to_string(), "Lo…");
        assert_eq!(wrap("one two threefour", 5), ["one", "two", "three", "four"]);
        assert_eq!(wrap("a b", 0), ["a", "b"]);
    }
}
