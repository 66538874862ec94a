//! What can be known of a datagram that is no syslog message: about a third of what real devices send.
//!
//! In: bytes that [`syslog::parse`](super::syslog::parse) refused. Out: [`Parts`] that hold every byte: in a field,
//! or in `message`. A field is set only where the layout says so with certainty; nothing is guessed.

mod cisco;
mod date;
mod dated;
mod pairs;

use syslog_loose::{SyslogFacility, SyslogSeverity, decompose_pri};

use super::clock::Reader;
use super::parts::{ParseError, Parts};
use super::syslog::{self, Context};

/// A UTF-8 byte order mark.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Room for texts that have to be put together; kept by the caller so that it is allocated once.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    header: Vec<u8>,
    rewritten: String,
}

/// The parts of a datagram that is no syslog message.
pub(super) fn recover<'a>(datagram: &'a [u8], context: &Context, scratch: &'a mut Scratch) -> Parts<'a> {
    let text = trim_end(datagram);
    if text.is_empty() {
        return Parts { message: datagram, error: Some(ParseError::Blank), ..Parts::default() };
    }
    let unframed = without_framing(text);
    if unframed.len() < text.len()
        && let Some(parts) = std::str::from_utf8(unframed).ok().and_then(|text| syslog::parse(text, context))
    {
        return Parts { error: Some(ParseError::Framing), ..parts };
    }
    match priority(unframed) {
        Priority::Valid { facility, severity, rest } => {
            let parts = Parts { facility, severity, error: Some(ParseError::Timestamp), ..Parts::default() };
            let rest = rest.trim_ascii_start();
            layout(rest, true, context, scratch, Parts { message: rest, ..parts })
        }
        Priority::None => {
            let parts = Parts { message: datagram, error: Some(ParseError::Unknown), ..Parts::default() };
            layout(unframed, false, context, scratch, parts)
        }
        Priority::Wrong => Parts { message: datagram, error: Some(ParseError::Priority), ..Parts::default() },
    }
}

/// What the first layout that fits can say, or what the PRI said alone.
fn layout<'a>(
    rest: &'a [u8],
    has_priority: bool,
    context: &Context,
    scratch: &'a mut Scratch,
    found: Parts<'a>,
) -> Parts<'a> {
    let Scratch { header, rewritten } = scratch;
    let known = pairs::parse(rest, context)
        .or_else(|| dated::epoch(rest))
        .or_else(|| dated::netscaler(rest, context))
        .or_else(|| dated::iso(rest, has_priority, context, rewritten))
        .or_else(|| if has_priority { dated::ubiquiti(rest) } else { None })
        .or_else(|| cisco::parse(rest, context, header));
    let Some(mut known) = known else { return found };
    (known.facility, known.severity) = (found.facility, found.severity);
    known.error = known.error.or(Some(ParseError::Timestamp));
    known
}

/// Without the line ends and NULs that some senders put behind a message.
fn trim_end(datagram: &[u8]) -> &[u8] {
    let end = datagram.iter().rposition(|byte| !matches!(byte, b'\0' | b'\r' | b'\n' | b' ' | b'\t'));
    &datagram[..end.map_or(0, |last| last + 1)]
}

/// Without a byte order mark, and without an octet count (RFC 6587, 3.4.1) that is one: it has to be as long as it
/// says, or be followed by another such frame.
fn without_framing(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    match counted(text) {
        Some((count, rest)) if fills(count, rest) => rest,
        _ => text,
    }
}

fn fills(mut count: usize, mut rest: &[u8]) -> bool {
    while trim_end(rest).len() > count {
        match counted(&rest[count..]) {
            Some(next) => (count, rest) = next,
            None => return false,
        }
    }
    rest.len() + 2 >= count // what was trimmed at the end may have been counted
}

/// `39 <13>…`: the count, and what it counts.
fn counted(text: &[u8]) -> Option<(usize, &[u8])> {
    let mut reader = Reader { rest: text };
    let count = reader.number(1, 5)?;
    reader.one_of(b" ")?;
    matches!(priority(reader.rest), Priority::Valid { .. }).then_some((count as usize, reader.rest))
}

enum Priority<'a> {
    Valid {
        facility: Option<SyslogFacility>,
        severity: Option<SyslogSeverity>,
        rest: &'a [u8],
    },
    /// It begins as one, and is none.
    Wrong,
    None,
}

fn priority(text: &[u8]) -> Priority<'_> {
    let mut reader = Reader { rest: text };
    let Some(number) = reader.one_of(b"<").and_then(|_| reader.number(1, 4)) else { return Priority::None };
    match (u8::try_from(number), reader.one_of(b">")) {
        (Ok(number @ 0..=191), Some(_)) => {
            let (facility, severity) = decompose_pri(number);
            Priority::Valid { facility, severity, rest: reader.rest }
        }
        _ => Priority::Wrong,
    }
}

/// A word that can be a host's name or address: no blank, `=`, `,`, `%`, quote or bracket in it, and a letter or digit.
fn host(word: &[u8]) -> Option<&str> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    let named = word.iter().any(u8::is_ascii_alphanumeric) && !word.ends_with(b":");
    (named && word.len() <= 255 && word.iter().all(fits)).then(|| std::str::from_utf8(word).ok())?
}

/// The first word and what follows the blank behind it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', text)?;
    Some((&text[..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests;
