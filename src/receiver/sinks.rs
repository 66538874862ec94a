//! What a receiver does with events: count them, or print them.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::Notify;

use super::{Numbers, NumbersReport, event_to_json};
use crate::proto::event::EventWrapper;
use crate::proto::event::event_wrapper::Event;
use crate::proto::event::value::Kind;

/// Takes the events of one request.
pub trait Sink: Send + Sync + 'static {
    /// Takes the events; once it returns, they are acknowledged.
    ///
    /// # Errors
    /// When they could not be taken: the sender will try again.
    fn take(&self, events: Vec<EventWrapper>) -> io::Result<()>;
}

/// What a receiver got: the last line of `receive`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Received {
    /// Events.
    pub events: u64,
    /// Bytes of their messages.
    pub bytes: u64,
    /// Requests.
    pub requests: u64,
    /// What the numbers in the messages tell, when the load was numbered.
    #[serde(flatten)]
    pub numbers: Option<NumbersReport>,
}

/// Counts events, and checks the numbers of a numbered load.
#[derive(Debug, Default)]
pub struct Counter {
    state: Mutex<(Received, Numbers)>,
}

impl Counter {
    /// What came so far.
    pub fn received(&self) -> Received {
        let state = self.lock();
        Received { numbers: state.1.report(), ..state.0 }
    }

    fn count(&self, events: &[EventWrapper]) {
        let mut state = self.lock();
        let (received, numbers) = &mut *state;
        received.requests += 1;
        received.events += events.len() as u64;
        for message in events.iter().filter_map(message) {
            received.bytes += message.len() as u64;
            numbers.see(message);
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Received, Numbers)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Counter {
    fn take(&self, events: Vec<EventWrapper>) -> io::Result<()> {
        self.count(&events);
        Ok(())
    }
}

/// Prints one JSON object a line, flushed before the request is acknowledged, and counts.
pub struct JsonLines<W> {
    out: Mutex<W>,
    counter: Counter,
    closed: Notify,
}

impl<W: Write + Send + 'static> JsonLines<W> {
    /// Prints to `out`.
    pub fn new(out: W) -> Self {
        Self { out: Mutex::new(out), counter: Counter::default(), closed: Notify::new() }
    }

    /// What came so far.
    pub fn received(&self) -> Received {
        self.counter.received()
    }

    /// Completes once nobody reads what is printed.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }
}

impl<W: Write + Send + 'static> Sink for JsonLines<W> {
    fn take(&self, events: Vec<EventWrapper>) -> io::Result<()> {
        let mut lines = Vec::new();
        for event in &events {
            serde_json::to_writer(&mut lines, &event_to_json(event))?;
            lines.push(b'\n');
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = out.write_all(&lines).and_then(|()| out.flush());
        drop(out);
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.closed.notify_one();
        }
        written?;
        self.counter.count(&events);
        Ok(())
    }
}

fn message(wrapper: &EventWrapper) -> Option<&[u8]> {
    let Some(Event::Log(log)) = &wrapper.event else { return None };
    match &log.fields.get("message")?.kind {
        Some(Kind::RawBytes(bytes)) => Some(bytes),
        _ => None,
    }
}
