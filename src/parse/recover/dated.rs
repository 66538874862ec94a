//! Layouts that begin with a date that RFC 3164 and RFC 5424 do not know.

use syslog_loose::{ProcId, Protocol, Variant, parse_message_with_year_exact};

use super::date;
use super::{host, word};
use crate::parse::parts::{ParseError, Parts};
use crate::parse::syslog::Context;

/// Meraki: `[1 ]1791756855.4269 branch_mr events type=…`.
pub(super) fn epoch(text: &[u8]) -> Option<Parts<'_>> {
    let (version, rest) = version(text);
    let (time, rest) = date::epoch(rest)?;
    let (name, message) = word(rest.strip_prefix(b" ")?)?;
    Some(Parts { version, timestamp: Some(time), hostname: Some(host(name)?), message, ..Parts::default() })
}

/// NetScaler: `10/11/2026:22:14:15 GMT ns-vpx-1 0-PPE-0 : default TCP …`.
pub(super) fn netscaler<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let (date, rest) = date::netscaler(text)?;
    let timestamp = Some(date.instant(context)?);
    let rest = rest.trim_ascii_start();
    // The host may be left out there; the packet engine (`0-PPE-0`) never is.
    let (name, message) = match word(rest) {
        Some((name, message))
            if !is_packet_engine(name)
                && message.split(|b| *b == b' ').next().is_some_and(is_packet_engine) =>
        {
            (host(name), message)
        }
        _ => (None, rest),
    };
    Some(Parts { timestamp, hostname: name, message, ..Parts::default() })
}

fn is_packet_engine(word: &[u8]) -> bool {
    memchr::memmem::find(word, b"-PPE-").is_some()
}

/// ISO dates with a blank, without the colon in the offset, or without an offset, in front of what RFC 5424 or
/// RFC 3164 have after their date. `rewritten` holds the message with its date left out.
pub(super) fn iso<'a>(
    text: &'a [u8],
    has_priority: bool,
    context: &Context,
    rewritten: &'a mut String,
) -> Option<Parts<'a>> {
    let (version, rest) = if has_priority { version(text) } else { (None, text) };
    let (date, rest) = date::iso(rest)?;
    let timestamp = Some(date.instant(context)?);
    let rest = match rest {
        [b' ' | b'\t', rest @ ..] => rest,
        [] => rest,
        _ => return None,
    };
    let known = if version.is_some() { version_1(rest, rewritten) } else { None };
    let known = known.or_else(|| if has_priority && version.is_none() { host_and_tag(rest) } else { None });
    Some(match known {
        Some(known) => Parts { version, timestamp, ..known },
        None => {
            let error = version.map(|_| ParseError::Header);
            Parts { version, timestamp, message: rest, error, ..Parts::default() }
        }
    })
}

/// The rest of an RFC 5424 header, or a host before CEF or LEEF.
fn version_1<'a>(rest: &'a [u8], rewritten: &'a mut String) -> Option<Parts<'a>> {
    let (name, message) = word(rest)?;
    if message.starts_with(b"CEF:") || message.starts_with(b"LEEF:") {
        let error = Some(ParseError::Header);
        return Some(Parts { hostname: Some(host(name)?), message, error, ..Parts::default() });
    }
    rewritten.clear();
    rewritten.push_str("<13>1 - ");
    rewritten.push_str(std::str::from_utf8(rest).ok()?);
    let message = parse_message_with_year_exact(rewritten, |_| 0, Variant::RFC5424).ok()?;
    debug_assert_eq!(message.protocol, Protocol::RFC5424(1));
    Some(Parts {
        hostname: message.hostname,
        appname: message.appname,
        procid: message.procid,
        msgid: message.msgid,
        structured_data: message.structured_data,
        message: message.msg.as_bytes(),
        ..Parts::default()
    })
}

/// `gw-3 app[7]: hello`: both, or neither.
fn host_and_tag(rest: &[u8]) -> Option<Parts<'_>> {
    let (name, after) = word(rest)?;
    let hostname = Some(host(name)?);
    let (tag, message) = tag(after)?;
    let (appname, procid) = tag;
    Some(Parts { hostname, appname: Some(appname), procid, message, ..Parts::default() })
}

type Tag<'a> = (&'a str, Option<ProcId<&'a str>>);

/// `app[7]: ` or `app: `.
pub(super) fn tag(text: &[u8]) -> Option<(Tag<'_>, &[u8])> {
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/');
    let length = text.iter().take_while(|byte| in_name(byte)).count();
    if length == 0 || length > 48 {
        return None;
    }
    let (name, mut rest) = text.split_at(length);
    let mut procid = None;
    if let Some(inside) = rest.strip_prefix(b"[") {
        let end = memchr::memchr(b']', &inside[..inside.len().min(128)])?;
        procid = Some(ProcId::from(std::str::from_utf8(&inside[..end]).ok().filter(|pid| !pid.is_empty())?));
        rest = &inside[end + 1..];
    }
    let rest = rest.strip_prefix(b":")?;
    let message = rest.strip_prefix(b" ").or(rest.is_empty().then_some(rest))?;
    Some(((std::str::from_utf8(name).ok()?, procid), message))
}

/// UniFi devices: `DeskSwitch 02005e005303,USW_FLEX_MINI-2.1.0.700: PORT: …`, without a date.
pub(super) fn ubiquiti(text: &[u8]) -> Option<Parts<'_>> {
    let (name, after) = word(text)?;
    let (tag, message) = word(after)?;
    let tag = tag.strip_suffix(b":")?;
    let (mac, model) = tag.split_at_checked(12)?;
    if !mac.iter().all(u8::is_ascii_hexdigit) || !model.starts_with(b",") || !model.is_ascii() {
        return None;
    }
    let appname = Some(std::str::from_utf8(tag).ok()?);
    Some(Parts { hostname: Some(host(name)?), appname, message, ..Parts::default() })
}

/// The version of RFC 5424 and the blank behind it.
fn version(text: &[u8]) -> (Option<u32>, &[u8]) {
    match text.strip_prefix(b"1 ") {
        Some(rest) => (Some(1), rest),
        None => (None, text),
    }
}
