//! What is shown, and what keys do to it.

use std::time::Instant;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::model::Model;
use super::status::{Sender, Senders, Snapshot};

/// What the top senders are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Datagrams.
    Messages,
    /// Bytes.
    Bytes,
    /// Datagrams that did not parse.
    ParseFailures,
}

impl Order {
    /// The next one.
    pub fn next(self) -> Self {
        match self {
            Self::Messages => Self::Bytes,
            Self::Bytes => Self::ParseFailures,
            Self::ParseFailures => Self::Messages,
        }
    }

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Bytes => "bytes",
            Self::ParseFailures => "parse failures",
        }
    }

    /// The senders in this order.
    pub fn of(self, senders: &Senders) -> &[Sender] {
        match self {
            Self::Messages => &senders.by_messages,
            Self::Bytes => &senders.by_bytes,
            Self::ParseFailures => &senders.by_parse_failures,
        }
    }
}

/// What is shown.
#[derive(Debug, Clone)]
pub struct Screen {
    /// The order of the top senders.
    pub order: Order,
    /// True when the marks are explained.
    pub help: bool,
    /// True when there are keys to tell of.
    pub keys: bool,
    model: Model,
    /// What was known when it was paused.
    paused: Option<Box<Model>>,
}

impl Screen {
    /// Shows this model, and tells of the keys if there are any.
    pub fn new(model: Model, keys: bool) -> Self {
        Self { order: Order::Messages, help: false, keys, model, paused: None }
    }

    /// What to show: what is known, or was known when it was paused.
    pub fn model(&self) -> &Model {
        self.paused.as_deref().unwrap_or(&self.model)
    }

    /// True while what is shown stands still.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Takes what a look brought. It goes on while paused, so that no minute is missing afterwards.
    pub fn take(&mut self, at: Instant, look: Result<Snapshot, String>) {
        self.model.take(at, look);
    }

    /// Does what a key asks for; false when it asks for the end.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return true;
        }
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('p' | ' ') => {
                self.paused = match self.paused {
                    Some(_) => None,
                    None => Some(Box::new(self.model.clone())),
                };
            }
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('?') => self.help = !self.help,
            _ => {}
        }
        true
    }
}
