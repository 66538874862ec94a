//! The path of one datagram through parser, program and encoder.

use std::borrow::Cow;

use super::parts::{ParseError, Parts};
use super::program::{Ran, Runner};
use super::recover::{self, Scratch};
use super::syslog::{self, Context};
use super::{Mode, OnError, Options, to_value};
use crate::books::Shed;
use crate::datagram::{Datagram, Timestamp};
use crate::encode::{Sequence, SocketEncoder, SyslogEncoder, encode_value};

/// Takes events as they are encoded.
pub trait EventSink {
    /// Adds the event that `write` appends.
    fn add(&mut self, write: impl FnOnce(&mut Vec<u8>));
}

/// Events one behind the other: what a request's body is made of.
impl EventSink for Vec<u8> {
    fn add(&mut self, write: impl FnOnce(&mut Self)) {
        write(self);
    }
}

/// What came of a datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    /// Why it did not parse.
    pub error: Option<ParseError>,
    /// Why no event came of it.
    pub shed: Option<Shed>,
}

/// Makes events; one for each worker.
pub struct EventMaker {
    mode: Mode,
    parser: Parser,
    runner: Option<Runner>,
    socket: SocketEncoder,
    syslog: SyslogEncoder,
    /// Where it is asked for.
    sequence: Sequence,
    is_numbered: bool,
}

impl EventMaker {
    /// A maker by these options.
    pub fn new(options: &Options) -> Self {
        let context = Context { zone: options.timezone, ..Context::default() };
        Self {
            mode: options.mode,
            parser: Parser { context, scratch: Scratch::default(), on_error: options.on_error },
            runner: options.program.as_ref().map(|program| Runner::new(program, options.timezone)),
            socket: SocketEncoder::new(&options.shape),
            syslog: SyslogEncoder::new(&options.shape),
            sequence: Sequence::new(0, 0),
            is_numbered: !options.shape.sequence_key.is_empty(),
        }
    }

    /// The same, with the sequence of a worker.
    pub fn numbered(self, sequence: Sequence) -> Self {
        Self { sequence, ..self }
    }

    /// Says which datagram comes next: when it was received, and its number among those that the worker has read.
    #[inline]
    pub fn next(&mut self, received: Timestamp, number: u64) {
        if self.is_numbered {
            self.sequence.set(received, number);
        }
    }

    /// True when an event can take a program's time.
    pub fn is_slow(&self) -> bool {
        self.runner.is_some()
    }

    /// Makes the events of a datagram that was received at `received`.
    pub fn make(&mut self, datagram: &Datagram<'_>, received: Timestamp, sink: &mut impl EventSink) -> Made {
        if self.runner.is_some() {
            return self.make_through_program(datagram, received, sink);
        }
        match self.mode {
            Mode::None => {
                sink.add(|out| self.socket.encode(out, datagram, received, None, self.sequence.text()));
                Made::default()
            }
            Mode::Syslog => self.make_syslog(datagram, received, None, sink),
        }
    }

    /// The whole datagram as it is, with a reason. Needs nothing that can fail.
    pub fn make_unparsed(
        &mut self,
        datagram: &Datagram<'_>,
        received: Timestamp,
        error: ParseError,
        sink: &mut impl EventSink,
    ) -> Made {
        if self.parser.on_error == OnError::Drop {
            return Made::dropped(error);
        }
        match self.mode {
            Mode::None => sink.add(|out| {
                self.socket.encode(out, datagram, received, Some(error), self.sequence.text());
            }),
            Mode::Syslog => {
                let parts = Parts { message: datagram.payload, error: Some(error), ..Parts::default() };
                sink.add(|out| self.syslog.encode(out, datagram, received, &parts, self.sequence.text()));
            }
        }
        Made { error: Some(error), shed: None }
    }

    /// A syslog event; `error` is what went wrong after parsing.
    fn make_syslog(
        &mut self,
        datagram: &Datagram<'_>,
        received: Timestamp,
        error: Option<ParseError>,
        sink: &mut impl EventSink,
    ) -> Made {
        let text = text(datagram.payload);
        match self.parser.parse(&text, datagram.payload, received) {
            Ok(mut parts) => {
                parts.error = error.or(parts.error);
                sink.add(|out| self.syslog.encode(out, datagram, received, &parts, self.sequence.text()));
                Made { error: parts.error, shed: None }
            }
            Err(dropped) => dropped,
        }
    }

    fn make_through_program(
        &mut self,
        datagram: &Datagram<'_>,
        received: Timestamp,
        sink: &mut impl EventSink,
    ) -> Made {
        let Some(runner) = &mut self.runner else { return Made::default() };
        let shape = self.socket.shape();
        let (event, error) = match self.mode {
            Mode::None => (to_value::socket_event(shape, datagram, received, &self.sequence), None),
            Mode::Syslog => {
                let text = text(datagram.payload);
                match self.parser.parse(&text, datagram.payload, received) {
                    Ok(parts) => {
                        let event = to_value::syslog_event(shape, datagram, received, &parts, &self.sequence);
                        (event, parts.error)
                    }
                    Err(dropped) => return dropped,
                }
            }
        };
        match runner.run(event) {
            Ran::Events(events) => {
                events.iter().for_each(|event| sink.add(|out| encode_value(out, event)));
                Made { error, shed: events.is_empty().then_some(Shed::Program) }
            }
            Ran::Aborted => Made { error, shed: Some(Shed::Program) },
            Ran::Failed => self.keep_input(datagram, received, sink),
        }
    }

    /// The event that the program failed on, as if there were no program.
    fn keep_input(
        &mut self,
        datagram: &Datagram<'_>,
        received: Timestamp,
        sink: &mut impl EventSink,
    ) -> Made {
        match (self.parser.on_error, self.mode) {
            (OnError::Drop, _) => Made::dropped(ParseError::Program),
            (OnError::Keep, Mode::None) => self.make_unparsed(datagram, received, ParseError::Program, sink),
            (OnError::Keep, Mode::Syslog) => {
                self.make_syslog(datagram, received, Some(ParseError::Program), sink)
            }
        }
    }
}

impl Made {
    fn dropped(error: ParseError) -> Self {
        Self { error: Some(error), shed: Some(Shed::ParseError) }
    }
}

struct Parser {
    context: Context,
    scratch: Scratch,
    on_error: OnError,
}

impl Parser {
    /// The parts of a message that Vector's source would keep, or what can be known of any other; none where such
    /// a one is to be dropped.
    fn parse<'a>(
        &'a mut self,
        text: &'a str,
        payload: &'a [u8],
        received: Timestamp,
    ) -> Result<Parts<'a>, Made> {
        self.context.calendar.turn_to(received);
        let parts = syslog::parse(text, &self.context)
            .unwrap_or_else(|| recover::recover(payload, &self.context, &mut self.scratch));
        match (parts.error, self.on_error) {
            (Some(error), OnError::Drop) => Err(Made::dropped(error)),
            _ => Ok(parts),
        }
    }
}

/// The payload as text, with replacement characters where it is no UTF-8, as Vector's source reads it.
fn text(payload: &[u8]) -> Cow<'_, str> {
    // `from_utf8_lossy` goes byte by byte: on a message of 1,100 bytes it took a quarter of the process's CPU.
    simdutf8::basic::from_utf8(payload).map_or_else(|_| String::from_utf8_lossy(payload), Cow::Borrowed)
}
