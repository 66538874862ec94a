//! A datagram becomes events: as it is, as a syslog message, or through a VRL program.
//!
//! In: a borrowed datagram and the time of its receipt. Out: encoded events, into the worker's open batch. Nothing
//! is dropped unless a person asked for that: what does not parse is kept, with `parse_error` to say why.

mod clock;
mod common;
mod maker;
mod parts;
mod program;
mod recover;
mod syslog;
mod to_value;
mod zone;

pub use maker::{EventMaker, EventSink, Made};
pub use parts::{ParseError, Parts};
pub use program::{Program, ProgramError};
pub use syslog::{Context, parse as parse_syslog};
pub use zone::{Calendar, Zone};

use crate::encode::Shape;

/// What the worker makes of a datagram.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How far a datagram is taken apart.
    pub mode: Mode,
    /// A program that every event goes through.
    pub program: Option<Program>,
    /// What happens to a datagram that does not parse.
    pub on_error: OnError,
    /// The zone of dates without one.
    pub timezone: Zone,
    /// The event's shape.
    pub shape: Shape,
}

/// How far a datagram is taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Not at all: the event of Vector's `socket` source.
    #[default]
    None,
    /// As a syslog message: the event of Vector's `syslog` source.
    Syslog,
}

/// What happens to a datagram that does not parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It is sent with all that is known of it, and `parse_error`.
    #[default]
    Keep,
    /// It is dropped and counted.
    Drop,
}
