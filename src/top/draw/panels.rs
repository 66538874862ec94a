//! Which panels there are, and how they share a column's rows.

use ratatui::text::Line;

use super::{lists, loss, queue, workers};
use crate::top::model::Model;
use crate::top::screen::Order;

/// A title and the lines under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Panel {
    Loss,
    Workers,
    Queue,
    Endpoints,
    ParseFailures,
    Senders(Order),
}

/// Narrower screens have one column.
const TWO_COLUMNS: u16 = 70;
const THREE_COLUMNS: u16 = 150;

/// The panels of each column, the more important ones first.
pub(super) fn columns(width: u16, order: Order) -> Vec<Vec<Panel>> {
    use Panel::{Endpoints, Loss, ParseFailures, Queue, Senders, Workers};
    match width {
        ..TWO_COLUMNS => vec![vec![Loss, Queue, Endpoints, Workers, Senders(order), ParseFailures]],
        TWO_COLUMNS..THREE_COLUMNS => {
            vec![vec![Loss, Senders(order), ParseFailures], vec![Workers, Queue, Endpoints]]
        }
        _ => {
            let others = [order, order.next(), order.next().next()].map(Senders);
            vec![vec![Loss, ParseFailures], vec![Workers, Queue, Endpoints], others.into()]
        }
    }
}

impl Panel {
    /// Fewer rows than this say too little.
    fn minimum(self) -> usize {
        match self {
            Self::Loss => loss::MINIMUM,
            Self::Workers => workers::MINIMUM,
            Self::Queue => queue::MINIMUM,
            Self::Endpoints | Self::ParseFailures => 2,
            Self::Senders(_) => 3,
        }
    }

    /// More rows than this would be empty.
    fn wants(self, model: &Model) -> usize {
        match self {
            Self::Loss => loss::wants(model),
            Self::Workers => workers::wants(model),
            Self::Queue => queue::WANTS,
            Self::Endpoints => lists::endpoints_wanted(model),
            Self::ParseFailures => lists::parse_failures_wanted(model),
            Self::Senders(order) => lists::senders_wanted(order, model),
        }
    }

    pub(super) fn lines(self, model: &Model, width: usize, rows: usize) -> Vec<Line<'static>> {
        match self {
            Self::Loss => loss::lines(model, width, rows),
            Self::Workers => workers::lines(model, width, rows),
            Self::Queue => queue::lines(model, width),
            Self::Endpoints => lists::endpoints(model, width, rows),
            Self::ParseFailures => lists::parse_failures(model, width, rows),
            Self::Senders(order) => lists::senders(order, model, width, rows),
        }
    }
}

/// Rows for each panel: what each needs, in their order; then one by one what they want.
pub(super) fn share(rows: usize, panels: &[Panel], model: &Model) -> Vec<usize> {
    let needs: Vec<_> = panels.iter().map(|panel| (panel.minimum(), panel.wants(model))).collect();
    share_rows(rows, &needs)
}

fn share_rows(rows: usize, needs: &[(usize, usize)]) -> Vec<usize> {
    let mut left = rows;
    let mut given = Vec::new();
    for (minimum, wants) in needs {
        let need = *minimum.min(wants);
        given.push(match given.is_empty() {
            true => need.min(left), // the first one is cut rather than left out
            false if need <= left => need,
            false => 0,
        });
        left -= given.last().unwrap_or(&0);
    }
    loop {
        let before = left;
        for (given, (_, wants)) in given.iter_mut().zip(needs) {
            if left > 0 && *given > 0 && *given < *wants {
                *given += 1;
                left -= 1;
            }
        }
        if left == before {
            return given;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_to_what_is_needed_and_then_to_what_is_wanted() {
        let needs = [(4, 6), (3, 10), (2, 2)];
        assert_eq!(share_rows(2, &needs), [2, 0, 0]);
        assert_eq!(share_rows(6, &needs), [4, 0, 2]);
        assert_eq!(share_rows(9, &needs), [4, 3, 2]);
        assert_eq!(share_rows(13, &needs), [6, 5, 2]);
        assert_eq!(share_rows(99, &needs), [6, 10, 2]);
        assert_eq!(share_rows(0, &needs), [0, 0, 0]);
    }
}
