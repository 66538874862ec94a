//! The shapes that most messages have, read in one pass.
//!
//! `syslog_loose` tries combinations of parsers and takes 400–900 ns for a message. These shapes allow one reading
//! only, and it is that crate's: whatever is out of the ordinary (a colon in a host, a dash or bracket before the text, an escape) is left to it. A
//! test holds the two to each other over 200,000 generated messages.

use chrono::NaiveDate;
use syslog_loose::{ProcId, StructuredElement, decompose_pri};

use super::clock::{date_and_time, digit, two};
use super::parts::Parts;
use super::syslog::Context;
use super::zone::month_number;
use crate::datagram::Timestamp;

/// The parts of a message of a common shape, or none: then it is `syslog_loose`'s to read.
pub(super) fn parse<'a>(text: &'a str, context: &Context) -> Option<Parts<'a>> {
    // Both ends are trimmed there; here a message that would be is left alone.
    if !text.as_bytes().last()?.is_ascii_graphic() {
        return None;
    }
    let (priority, rest) = priority(text)?;
    let parts = match rest.as_bytes().first()? {
        b'1' => rfc5424(rest.strip_prefix("1 ")?)?,
        _ => rfc3164(rest, context)?,
    };
    let (facility, severity) = decompose_pri(priority);
    Some(Parts { facility, severity, ..parts })
}

fn priority(text: &str) -> Option<(u8, &str)> {
    let inside = text.strip_prefix('<')?;
    let close = inside.as_bytes().iter().take(4).position(|byte| *byte == b'>')?;
    let (digits, rest) = inside.split_at_checked(close)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, rest.get(1..)?))
}

/// `Oct 11 22:14:15 host app[7]: text`.
fn rfc3164<'a>(text: &'a str, context: &Context) -> Option<Parts<'a>> {
    let head: &[u8; 16] = text.as_bytes().first_chunk()?;
    let [m1, m2, m3, b' ', d1, d2, b' ', h1, h2, b':', n1, n2, b':', s1, s2, b' '] = *head else {
        return None;
    };
    let month = month_number([m1, m2, m3])?;
    let day = if d1 == b' ' { digit(d2)? } else { two(d1, d2)? };
    let date = NaiveDate::from_ymd_opt(context.calendar.year_of(month), month, day)?;
    let wall = date.and_hms_opt(two(h1, h2)?, two(n1, n2)?, two(s1, s2)?)?;
    let timestamp = Some(context.zone.instant(wall)?);

    let (hostname, rest) = word(text.get(16..)?)?;
    if !hostname.bytes().all(|byte| is_name(byte) && byte != b'[') || hostname == "-" {
        return None;
    }
    let colon = rest.bytes().position(|byte| !is_name(byte) && byte != b']')?;
    let (tag, rest) = rest.split_at_checked(colon)?;
    let message = rest.strip_prefix(": ")?;
    // What a dash or a bracket begins may be structured data.
    if tag.is_empty() || tag == "-" || !is_text(message.as_bytes().first()?) {
        return None;
    }
    let (appname, procid) = match tag.split_once('[') {
        None if tag.contains(']') => return None,
        None => (tag, None),
        Some((app, procid)) => {
            (app, Some(procid.strip_suffix(']').filter(|p| !p.is_empty() && !p.contains(['[', ']']))?))
        }
    };
    Some(Parts {
        timestamp,
        hostname: Some(hostname),
        appname: Some(appname),
        procid: procid.map(ProcId::from),
        message: message.as_bytes(),
        ..Parts::default()
    })
}

/// `2026-10-11T22:14:15.719Z host app 7 ID [id name="value"] text`, behind the version.
fn rfc5424(text: &str) -> Option<Parts<'_>> {
    let (date, rest) = word(text)?;
    let timestamp = Some(timestamp(date.as_bytes())?);
    let (hostname, rest) = word(rest)?;
    if hostname.ends_with(':') {
        return None;
    }
    let (appname, rest) = word(rest)?;
    let (procid, rest) = word(rest)?;
    let (msgid, rest) = word(rest)?;
    let (structured_data, message) = match rest.strip_prefix("- ") {
        Some(message) => (Vec::new(), message),
        None => {
            let (element, message) = element(rest)?;
            (vec![element], message.strip_prefix(' ')?)
        }
    };
    if !is_text(message.as_bytes().first()?) {
        return None;
    }
    let known = |word| Some(word).filter(|word| *word != "-");
    Some(Parts {
        version: Some(1),
        timestamp,
        hostname: known(hostname),
        appname: known(appname),
        procid: known(procid).map(ProcId::from),
        msgid: known(msgid),
        structured_data,
        message: message.as_bytes(),
        ..Parts::default()
    })
}

/// `[id name="value" …]`, without escapes.
fn element(text: &str) -> Option<(StructuredElement<&str>, &str)> {
    let inside = text.strip_prefix('[')?;
    let end = inside.bytes().position(|byte| !is_graphic_but(byte, b"]=\"\\"))?;
    let (id, mut rest) = inside.split_at_checked(end)?;
    let mut params = Vec::with_capacity(4);
    while let Some(param) = rest.strip_prefix(' ') {
        let equals = param.bytes().position(|byte| !is_graphic_but(byte, b"]=\"\\["))?;
        let (name, after) = param.split_at_checked(equals)?;
        let value = after.strip_prefix("=\"")?;
        let quote = memchr::memchr2(b'"', b'\\', value.as_bytes())?;
        let (value, after) = value.split_at_checked(quote)?;
        rest = after.strip_prefix('"')?;
        if name.is_empty() {
            return None;
        }
        params.push((name, value));
    }
    let rest = rest.strip_prefix(']')?;
    (!id.is_empty()).then_some((StructuredElement { id, params }, rest))
}

/// The first word, of visible ASCII, and what follows the one blank behind it.
fn word(text: &str) -> Option<(&str, &str)> {
    let end = memchr::memchr(b' ', text.as_bytes())?;
    let (word, rest) = text.split_at_checked(end)?;
    // A colon by itself would be taken for the end of the header.
    let fits = !word.is_empty() && word != ":" && word.bytes().all(|byte| byte.is_ascii_graphic());
    let rest = rest.get(1..).filter(|rest| !rest.starts_with(' '))?;
    fits.then_some((word, rest))
}

/// A byte that begins a text: nothing before it is passed over, and it is no structured data.
fn is_text(byte: &u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'[' | b'-' | b':')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/' | b'[')
}

fn is_graphic_but(byte: u8, but: &[u8]) -> bool {
    byte.is_ascii_graphic() && !but.contains(&byte)
}

/// `2026-10-11T22:14:15`, a fraction of up to nine digits, `Z` or `+02:00`.
fn timestamp(text: &[u8]) -> Option<Timestamp> {
    let (date, mut rest) = text.split_first_chunk()?;
    let (time, _) = date_and_time(date).filter(|(_, between)| *between == b'T')?;
    let mut nanos = 0;
    if let [b'.', after @ ..] = rest {
        let length = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 || length > 9 {
            return None;
        }
        nanos = after[..length].iter().fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'))
            * 10u32.pow(9 - length as u32);
        rest = &after[length..];
    }
    let offset = match rest {
        [b'Z'] => 0,
        [sign @ (b'+' | b'-'), a, b, b':', c, d] => {
            let (hours, minutes) = (two(*a, *b)?, two(*c, *d)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = i64::from(hours * 3_600 + minutes * 60);
            if *sign == b'+' { seconds } else { -seconds }
        }
        _ => return None,
    };
    Some(Timestamp { seconds: time.and_utc().timestamp() - offset, nanos })
}
