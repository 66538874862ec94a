//! A running sluicegate in a terminal, through its admin port.
//!
//! In: `/status`, `/top`, `/livez` and `/readyz` once an interval ([`client`]), and keys. Out: a frame ([`draw`]) of what
//! is known ([`model`]). It only looks: whatever happens here, datagrams go on.

pub mod client;
pub mod draw;
pub mod history;
pub mod loss;
pub mod model;
pub mod screen;
pub mod status;
pub mod verdict;

#[cfg(test)]
mod tests;

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event};
use ratatui::layout::Rect;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, sleep};

use client::{AskError, Client};
use model::Model;
use screen::Screen;
use status::Snapshot;

/// What a look brought, and when.
type Look = (Instant, Result<Snapshot, String>);

/// Shows the sluicegate behind the admin port at `address` until a key or `stop` ends it.
///
/// The terminal is as it was before when this returns, and after a panic too.
///
/// # Errors
/// The terminal's.
pub async fn watch(address: &str, interval: Duration, stop: impl Future<Output = ()>) -> io::Result<()> {
    let (looks_in, mut looks) = mpsc::channel(1);
    tokio::spawn(look_on(Client::new(address.to_owned()), interval, looks_in));
    let mut terminal = ratatui::try_init()?; // with a panic hook that restores it
    let (events_in, mut events) = mpsc::channel(16);
    let watched = tokio::select! {
        result = async {
            thread::Builder::new().name("keys".into()).spawn(move || read_keys(&events_in))?;
            let mut screen = Screen::new(Model::new(address.to_owned(), interval), true);
            follow(&mut terminal, &mut screen, &mut looks, &mut events).await
        } => result,
        () = stop => Ok(()),
    };
    // Where the terminal is gone there is nothing to restore.
    let restored = ratatui::try_restore();
    watched.and(restored)
}

async fn follow(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    looks: &mut mpsc::Receiver<Look>,
    events: &mut mpsc::Receiver<Event>,
) -> io::Result<()> {
    loop {
        terminal.draw(|frame| draw::draw(screen, frame.area(), frame.buffer_mut()))?;
        tokio::select! {
            Some((at, look)) = looks.recv() => screen.take(at, look),
            event = events.recv() => match event {
                Some(Event::Key(key)) if screen.press(key) => {}
                // The end was asked for, or there is nobody left who could ask.
                Some(Event::Key(_)) | None => return Ok(()),
                // A resize: the next frame has the new size.
                Some(_) => {}
            },
        }
    }
}

/// Reading keys blocks, so it has a thread; it ends with the process, or with the terminal.
fn read_keys(events: &mpsc::Sender<Event>) {
    while let Ok(event) = event::read() {
        if events.blocking_send(event).is_err() {
            return;
        }
    }
}

/// Looks once an interval, whatever comes of it.
async fn look_on(client: Client, interval: Duration, looks: mpsc::Sender<Look>) {
    let mut tick = tokio::time::interval(interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let look = client.look().await.map_err(|error| error.to_string());
        if looks.send((Instant::now(), look)).await.is_err() {
            return;
        }
    }
}

/// One frame as text: two looks, an interval apart, since a rate needs both.
///
/// # Errors
/// What keeps the admin port from being asked.
pub async fn once(address: &str, interval: Duration, size: (u16, u16)) -> Result<String, AskError> {
    let client = Client::new(address.to_owned());
    let mut model = Model::new(address.to_owned(), interval);
    for wait in [Duration::ZERO, interval] {
        sleep(wait).await;
        let snapshot = client.look().await?;
        model.take(Instant::now(), Ok(snapshot));
    }
    Ok(frame(&Screen::new(model, false), size))
}

/// A frame of this many columns and rows, as text.
pub fn frame(screen: &Screen, (width, height): (u16, u16)) -> String {
    let area = Rect { x: 0, y: 0, width, height };
    let mut buffer = Buffer::empty(area);
    draw::draw(screen, area, &mut buffer);
    let row =
        |row: &[ratatui::buffer::Cell]| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    let rows = buffer.content.chunks(usize::from(width.max(1))).map(row);
    let text: String = rows.map(|row| format!("{}\n", row.trim_end())).collect();
    format!("{}\n", text.trim_end())
}
