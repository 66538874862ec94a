//! A screen becomes cells: pure functions of what is known and of the room there is.
//!
//! From the top: who it is and how it is; the one thing to know; rates; panels in columns; keys. What there is no room
//! for is left out from the bottom.

mod head;
mod lists;
mod loss;
mod panels;
mod queue;
mod rates;
mod text;
mod workers;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Widget;

use super::screen::Screen;
use text::FAINT;

/// Columns between panels.
const GAP: u16 = 2;

/// Shorter screens do without the line of keys.
const WITH_KEYS: u16 = 8;

/// Taller screens have an empty line above the panels.
const ROOMY: u16 = 30;

/// Draws the screen.
pub fn draw(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    let (model, width) = (screen.model(), usize::from(area.width));
    let mut rest = put(head::lines(screen, width), area, buffer);
    if screen.keys && area.height >= WITH_KEYS {
        let foot = head::foot(screen, width);
        let height = (foot.len() as u16).min(rest.height);
        let (above, below) = split(rest, rest.height - height);
        put(foot, below, buffer);
        rest = above;
    }
    let numbers = rest;
    rest = rates::draw(model, area.height, rest, buffer);
    if area.height >= ROOMY {
        (_, rest) = split(rest, 1);
    }
    columns(screen, rest, buffer);
    if model.trouble().is_some() {
        // What was true some time ago must not look as if it were true now.
        buffer.set_style(numbers, FAINT);
    }
}

fn columns(screen: &Screen, area: Rect, buffer: &mut Buffer) {
    let columns = panels::columns(area.width, screen.order);
    let count = columns.len() as u16;
    let width = area.width.saturating_sub(GAP * (count - 1)) / count;
    for (number, column) in (0..).zip(&columns) {
        let mut rest = Rect { x: area.x + number * (width + GAP), width, ..area }.intersection(area);
        let model = screen.model();
        let shares = panels::share(usize::from(rest.height), column, model);
        let spare = usize::from(rest.height) - shares.iter().sum::<usize>();
        let gap = u16::from(spare >= column.len());
        let mut unused = 0;
        for (panel, rows) in column.iter().zip(shares).filter(|(_, rows)| *rows > 0) {
            // What a panel has no use for is the next one's.
            let rows = rows + unused;
            let mut lines = panel.lines(model, usize::from(width), rows);
            lines.truncate(rows);
            unused = rows - lines.len();
            (_, rest) = split(put(lines, rest, buffer), gap);
        }
    }
}

/// Writes lines from the top of an area, as many as fit, and returns what is left of it.
fn put(lines: Vec<Line>, area: Rect, buffer: &mut Buffer) -> Rect {
    let mut rest = area;
    for line in lines {
        let (row, below) = split(rest, 1);
        line.render(row, buffer);
        rest = below;
    }
    rest
}

/// The first rows of an area, as far as there are any, and the others.
fn split(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    (Rect { height: rows, ..area }, Rect { y: area.y + rows, height: area.height - rows, ..area })
}
