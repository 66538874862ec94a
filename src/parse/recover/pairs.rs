//! Firewalls that send `key=value` and no header: the date is one of the pairs. The message stays whole.

use super::date;
use super::host;
use crate::parse::parts::Parts;
use crate::parse::syslog::Context;

/// What the first bytes say is far enough: the pairs that matter come first.
const FRONT: usize = 1_024;

/// The parts of a message whose vendor shows in its first pairs.
pub(super) fn parse<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let known = match text {
        [b'd', b'a', b't', b'e', b'=', ..] => fortinet(text, context),
        [b'd', b'e', b'v', b'i', b'c', b'e', b'=' | b'_', ..] => sophos(text, context),
        [b'i', b'd', b'=', ..] => sonicwall(text, context),
        [b't', b'i', b'm', b'e', b'=', ..] => checkpoint(text),
        _ => netscreen(text),
    }?;
    Some(Parts { message: if known.message.is_empty() { text } else { known.message }, ..known })
}

/// `date=2026-10-11 time=22:14:15 devname="fgt-1" devid="…" tz="+0200" …`.
fn fortinet<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let value = |key| value(text, key, b' ');
    value(b"devid")
        .or_else(|| value(b"device_id"))
        .or_else(|| value(b"logid"))
        .or_else(|| value(b"log_id"))?;
    let mut date = day_and_time(value(b"date")?, value(b"time")?)?;
    if let Some(zone) = value(b"tz") {
        date = date.in_zone(zone);
    }
    let hostname = value(b"devname").and_then(host);
    Some(Parts { timestamp: date.instant(context), hostname, ..Parts::default() })
}

/// `device="SFW" date=2026-10-11 time=22:14:15 timezone="CEST" …`, or `device_name="SFW" timestamp="2026-…+0200"`.
/// `device_name` is the model there: no host is stated.
fn sophos<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let value = |key| value(text, key, b' ');
    let date = match value(b"timestamp") {
        Some(stamp) => date::iso(stamp).ok().filter(|(rest, _)| rest.is_empty())?.1,
        None => {
            let date = day_and_time(value(b"date")?, value(b"time")?)?;
            value(b"timezone").map_or(date, |zone| date.in_zone(zone))
        }
    };
    Some(Parts { timestamp: date.instant(context), ..Parts::default() })
}

/// `id=firewall sn=000000000000 time="2026-10-11 22:14:15 UTC" fw=203.0.113.6 …`.
fn sonicwall<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let value = |key| value(text, key, b' ');
    value(b"sn")?;
    let (rest, date) = date::iso(value(b"time")?).ok()?;
    rest.is_empty().then(|| Parts { timestamp: date.instant(context), ..Parts::default() })
}

/// Check Point's log exporter, format `splunk`: `time=1791756855|hostname=cp-lm-1|…`.
fn checkpoint(text: &[u8]) -> Option<Parts<'_>> {
    let value = |key| value(text, key, b'|');
    let (rest, time) = date::epoch(value(b"time")?).ok()?;
    let hostname = Some(host(value(b"hostname")?)?);
    rest.is_empty().then(|| Parts { timestamp: Some(time), hostname, ..Parts::default() })
}

/// `ns-fw: NetScreen device_id=ns-fw  [Root]…`. Its `start_time` is the session's, not the message's.
fn netscreen(text: &[u8]) -> Option<Parts<'_>> {
    let at = memchr::memchr(b':', &text[..text.len().min(FRONT)])?;
    text[at..].strip_prefix(b": NetScreen device_id=")?;
    Some(Parts { hostname: Some(host(&text[..at])?), message: &text[at + 2..], ..Parts::default() })
}

/// `2026-10-11` and `22:14:15`.
fn day_and_time(day: &[u8], time: &[u8]) -> Option<date::Date> {
    let mut both = [b' '; 40];
    both.get_mut(..day.len())?.copy_from_slice(day);
    both.get_mut(day.len() + 1..day.len() + 1 + time.len())?.copy_from_slice(time);
    let (rest, date) = date::iso(&both[..day.len() + 1 + time.len()]).ok()?;
    rest.is_empty().then_some(date)
}

/// The value of the first `key=`, without quotes; pairs are apart by `separator`.
fn value<'a>(text: &'a [u8], key: &[u8], separator: u8) -> Option<&'a [u8]> {
    let front = &text[..text.len().min(FRONT)];
    let starts_pair = |at: usize| at == 0 || front[at - 1] == separator;
    let is_key = |equals: &usize| front[..*equals].ends_with(key) && starts_pair(equals - key.len());
    let equals = memchr::memchr_iter(b'=', front).find(is_key)?;
    let value = &front[equals + 1..];
    match value.strip_prefix(b"\"") {
        Some(quoted) => Some(&quoted[..memchr::memchr(b'"', quoted)?]),
        None => Some(&value[..memchr::memchr(separator, value).unwrap_or(value.len())]),
    }
}
