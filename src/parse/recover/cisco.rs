//! Cisco's headers: counters, host, task, a date with a clock mark, and then `%FACILITY-SEVERITY-MNEMONIC:`.
//!
//! IOS, NX-OS, IOS XR, ASA, wireless controllers and call managers each leave out or add a part. What is between
//! the PRI and the text is a row of parts with `: ` behind each, and every part has to be one that is known.

use super::date;
use super::dated;
use super::host;
use crate::parse::parts::Parts;
use crate::parse::syslog::Context;

/// More parts than any of them has.
const MOST_PARTS: usize = 8;

/// The parts of a message with such a header. `header` holds counters, uptime and node, which have no field of
/// their own.
pub(super) fn parse<'a>(text: &'a [u8], context: &Context, header: &'a mut Vec<u8>) -> Option<Parts<'a>> {
    header.clear();
    let mut found = Found { header, parts: Parts::default(), dated: false, marked: false };
    let mut rest = text.strip_prefix(b": ").unwrap_or(text).trim_ascii_start();
    let mut mnemonic = is_mnemonic(rest);
    for _ in 0..MOST_PARTS {
        if mnemonic {
            break;
        }
        let Some(after) = found.take(rest, context) else { break };
        rest = after.trim_ascii_start();
        mnemonic = is_mnemonic(rest);
    }
    // IOS XR has its process between date and mnemonic.
    if found.dated
        && !mnemonic
        && let Some(((appname, procid), after)) = dated::tag(rest)
        && is_mnemonic(after.trim_ascii_start())
    {
        (found.parts.appname, found.parts.procid) = (Some(appname), procid);
        (rest, mnemonic) = (after.trim_ascii_start(), true);
    }
    // Either Cisco's mnemonic is there, or its date is, with a counter or clock mark that nobody else has.
    if !(mnemonic || found.dated && found.marked) {
        return None;
    }
    let (header, mut parts): (&'a [u8], _) = (found.header, found.parts);
    parts.header = if header.is_empty() { None } else { Some(std::str::from_utf8(header).ok()?) };
    parts.message = rest;
    Some(parts)
}

struct Found<'a> {
    parts: Parts<'a>,
    /// Counters, uptime, node, with `: ` between them.
    header: &'a mut Vec<u8>,
    /// A date or an uptime was there.
    dated: bool,
    /// A counter or a clock mark was there.
    marked: bool,
}

impl<'a> Found<'a> {
    /// Takes one part of the header, and gives what is behind it; none when it is no such part.
    fn take(&mut self, text: &'a [u8], context: &Context) -> Option<&'a [u8]> {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if (1..=10).contains(&digits)
            && let Some(after) = end_of_part(&text[digits..])
        {
            self.marked = true;
            self.push(&text[..digits]);
            return Some(after);
        }
        if self.dated {
            return None; // after the date comes the text
        }
        if let Some(after) = self.take_date(text, context).and_then(end_of_part) {
            self.dated = true;
            return Some(after);
        }
        let (part, after) = part(text)?;
        if is_uptime(part) {
            self.dated = true;
            self.push(part);
        } else if let Some(task) = part.strip_prefix(b"*").and_then(host) {
            self.parts.appname = Some(task);
        } else {
            self.take_host(part, context)?;
        }
        Some(after)
    }

    /// Keeps a part that has no field of its own.
    fn push(&mut self, part: &[u8]) {
        if !self.header.is_empty() {
            self.header.extend_from_slice(b": ");
        }
        self.header.extend_from_slice(part);
    }

    /// A date whose instant is known, with or without a clock mark.
    fn take_date(&mut self, text: &'a [u8], context: &Context) -> Option<&'a [u8]> {
        let unmarked = text.strip_prefix(b"*").or_else(|| text.strip_prefix(b"."));
        let (date, rest) = date::named_month(unmarked.unwrap_or(text), context)?;
        self.parts.timestamp = Some(date.instant(context)?);
        self.marked |= unmarked.is_some();
        Some(rest)
    }

    /// `edge-rtr-01`, or IOS XR's `dc1-asr-01 RP/0/RSP0/CPU0:Oct 11 22:14:15.123 UTC`.
    fn take_host(&mut self, part: &'a [u8], context: &Context) -> Option<()> {
        if self.parts.hostname.is_some() {
            return None;
        }
        let (name, node) = super::word(part).unwrap_or((part, b""));
        let name = host(name)?;
        if !node.is_empty() {
            let colon = memchr::memchr(b':', node)?;
            let (node, date) = (&node[..colon], &node[colon + 1..]);
            let is_node = memchr::memchr(b'/', node).is_some() && memchr::memchr(b' ', node).is_none();
            let ends = is_node && self.take_date(date, context)?.trim_ascii().is_empty();
            self.dated = ends.then_some(true)?;
            self.push(node);
        }
        self.parts.hostname = Some(name);
        Some(())
    }
}

/// What is behind the blanks and the `: ` that end a part.
fn end_of_part(text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii_start().strip_prefix(b": ")
}

/// The bytes before the next `: `, without blanks at their end, and those behind it.
fn part(text: &[u8]) -> Option<(&[u8], &[u8])> {
    const LONGEST: usize = 300;
    let at = text.windows(2).take(LONGEST).position(|pair| pair == b": ")?;
    Some((text[..at].trim_ascii_end(), &text[at + 2..]))
}

/// `00:01:07`, `1w2d`, `2d03h`, `3y12w`: time since start, where a clock was never set.
fn is_uptime(part: &[u8]) -> bool {
    if !part.first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let all_but_digits = |marks: &[u8]| part.iter().all(|b| b.is_ascii_digit() || marks.contains(b));
    let is_clock = || part.len() >= 8 && part.contains(&b':') && all_but_digits(b":");
    let units = || part.iter().filter(|b| b.is_ascii_lowercase()).count();
    is_clock() || units() == 2 && all_but_digits(b"ywdh")
}

/// `%SEC-6-IPACCESSLOGP:`, `%PKT_INFRA-LINK-3-UPDOWN :`, `%ASA-6-302014:`.
fn is_mnemonic(text: &[u8]) -> bool {
    let Some(text) = text.strip_prefix(b"%") else { return false };
    let (mut end, mut has_severity) = (0, false);
    for byte in text {
        match byte {
            b'-' if end > 0 => has_severity |= matches!(text[end..], [_, b'0'..=b'7', b'-', ..]),
            b'-' => return false, // a facility comes first
            b'_' | b'$' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {}
            _ => break,
        }
        end += 1;
    }
    has_severity && text[end..].trim_ascii_start().starts_with(b":")
}
