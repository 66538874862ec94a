//! Cisco's headers: counters, host, task, a date with a clock mark, and then `%FACILITY-SEVERITY-MNEMONIC:`.
//!
//! IOS, NX-OS, IOS XR, ASA, wireless controllers and call managers each leave out or add a part. What is between
//! the PRI and the text is a row of parts with `: ` behind each, and every part has to be one that is known.

use super::date::{self, blanks};
use super::dated;
use super::host;
use crate::parse::parts::Parts;
use crate::parse::syslog::Context;

/// More parts than any of them has.
const MOST_PARTS: usize = 8;

/// The parts of a message with such a header. `header` holds counters, uptime and node, which have no field of
/// their own.
pub(super) fn parse<'a>(text: &'a [u8], context: &Context, header: &'a mut String) -> Option<Parts<'a>> {
    let mut found = Found::default();
    let mut rest = text.strip_prefix(b": ").unwrap_or(text);
    for _ in 0..MOST_PARTS {
        rest = blanks(rest);
        if is_mnemonic(rest) {
            break;
        }
        let Some((part, after)) = part(rest) else { break };
        if !found.take(part, context) {
            break;
        }
        rest = after;
    }
    // IOS XR has its process between date and mnemonic.
    if found.dated
        && let Some(((appname, procid), after)) = dated::tag(rest)
        && is_mnemonic(blanks(after))
    {
        (found.parts.appname, found.parts.procid) = (Some(appname), procid);
        rest = blanks(after);
    }
    // Either Cisco's mnemonic is there, or its date is, with a counter or clock mark that nobody else has.
    if !(is_mnemonic(rest) || found.dated && found.marked) {
        return None;
    }
    header.clear();
    for (i, part) in found.unnamed.iter().enumerate() {
        header.push_str(if i == 0 { "" } else { ": " });
        header.push_str(part);
    }
    let header: &'a str = header;
    Some(Parts { header: (!header.is_empty()).then_some(header), message: rest, ..found.parts })
}

#[derive(Default)]
struct Found<'a> {
    parts: Parts<'a>,
    /// Counters, uptime, node.
    unnamed: Vec<&'a str>,
    /// A date or an uptime was there.
    dated: bool,
    /// A counter or a clock mark was there.
    marked: bool,
}

impl<'a> Found<'a> {
    /// Takes one part of the header; false when it is not one.
    fn take(&mut self, part: &'a [u8], context: &Context) -> bool {
        let Ok(text) = std::str::from_utf8(part) else { return false };
        if part.iter().all(u8::is_ascii_digit) && part.len() <= 10 {
            self.marked = true;
            self.unnamed.push(text);
            return true;
        }
        if self.dated {
            return false; // after the date comes the text
        }
        if is_uptime(part) {
            self.dated = true;
            self.unnamed.push(text);
            return true;
        }
        if self.take_date(part, context) {
            return true;
        }
        if let Some(task) = part.strip_prefix(b"*").and_then(host) {
            self.parts.appname = Some(task);
            return true;
        }
        self.take_host(part, context)
    }

    fn take_date(&mut self, part: &[u8], context: &Context) -> bool {
        let unmarked = part.strip_prefix(b"*").or_else(|| part.strip_prefix(b"."));
        let Ok((rest, date)) = date::named_month(unmarked.unwrap_or(part), context) else { return false };
        let Some(time) = date.instant(context).filter(|_| blanks(rest).is_empty()) else { return false };
        self.parts.timestamp = Some(time);
        self.dated = true;
        self.marked |= unmarked.is_some();
        true
    }

    /// `edge-rtr-01`, or IOS XR's `dc1-asr-01 RP/0/RSP0/CPU0:Oct 11 22:14:15.123 UTC`.
    fn take_host(&mut self, part: &'a [u8], context: &Context) -> bool {
        if self.parts.hostname.is_some() {
            return false;
        }
        let (name, node) = match super::word(part) {
            Some((name, node)) => (name, Some(node)),
            None => (part, None),
        };
        let Some(name) = host(name) else { return false };
        if let Some(node) = node.filter(|node| !node.is_empty()) {
            let Some(colon) = memchr::memchr(b':', node) else { return false };
            let (node, date) = (&node[..colon], &node[colon + 1..]);
            let is_node = memchr::memchr(b'/', node).is_some() && memchr::memchr(b' ', node).is_none();
            let Some(node) = std::str::from_utf8(node).ok().filter(|_| is_node) else { return false };
            if !self.take_date(date, context) {
                return false;
            }
            self.unnamed.push(node);
        }
        self.parts.hostname = Some(name);
        true
    }
}

/// The bytes before the next `: `, without blanks at their end, and those behind it.
fn part(text: &[u8]) -> Option<(&[u8], &[u8])> {
    const LONGEST: usize = 300;
    let front = &text[..text.len().min(LONGEST)];
    let at = memchr::memchr_iter(b':', front).find(|at| front.get(at + 1) == Some(&b' '))?;
    Some((text[..at].trim_ascii_end(), &text[at + 2..]))
}

/// `00:01:07`, `1w2d`, `2d03h`, `3y12w`: time since start, where a clock was never set.
fn is_uptime(part: &[u8]) -> bool {
    let clock =
        part.len() >= 8 && part.iter().all(|b| b.is_ascii_digit() || *b == b':') && part.contains(&b':');
    let units = part.iter().filter(|b| matches!(b, b'y' | b'w' | b'd' | b'h')).count();
    let periods =
        units == 2 && part.iter().all(|b| b.is_ascii_digit() || matches!(b, b'y' | b'w' | b'd' | b'h'));
    clock || (periods && part[0].is_ascii_digit())
}

/// `%SEC-6-IPACCESSLOGP:`, `%PKT_INFRA-LINK-3-UPDOWN :`, `%ASA-6-302014:`.
fn is_mnemonic(text: &[u8]) -> bool {
    let Some(text) = text.strip_prefix(b"%") else { return false };
    let end = text.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$')));
    let Some(end) = end else { return false };
    let mut words = text[..end].split(|b| *b == b'-');
    let facility = words.next().is_some_and(|word| !word.is_empty());
    let severity = words.any(|word| matches!(word, [b'0'..=b'7']));
    facility && severity && text[end..].trim_ascii_start().starts_with(b":")
}
