//! Firewalls that send `key=value` and no header: the date is one of the pairs. The message stays whole.

use super::date;
use super::host;
use crate::parse::parts::Parts;
use crate::parse::syslog::Context;

/// What the first bytes say is far enough: the pairs that matter come first.
const FRONT: usize = 1_024;

/// The parts of a message whose vendor shows in its first pairs.
pub(super) fn parse<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let mut known = match text {
        [b'd', b'a', b't', b'e', b'=', ..] => fortinet(text, context),
        [b'd', b'e', b'v', b'i', b'c', b'e', b'=' | b'_', ..] => sophos(text, context),
        [b'i', b'd', b'=', ..] => sonicwall(text, context),
        [b't', b'i', b'm', b'e', b'=', ..] => checkpoint(text),
        _ => netscreen(text),
    }?;
    if known.message.is_empty() {
        known.message = text;
    }
    Some(known)
}

/// `date=2026-10-11 time=22:14:15 devname="fgt-1" devid="…" tz="+0200" …`.
fn fortinet<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let [date, time, zone, name, id] = values(text, b' ', [b"date", b"time", b"tz", b"devname", b"devid"]);
    // Older versions, and what has no device.
    id.or_else(|| values(text, b' ', [b"device_id", b"logid", b"log_id"]).into_iter().flatten().next())?;
    let date = day_and_time(date?, time?)?;
    let date = zone.map_or(date, |zone| date.in_zone(zone));
    Some(Parts { timestamp: date.instant(context), hostname: name.and_then(host), ..Parts::default() })
}

/// `device="SFW" date=2026-10-11 time=22:14:15 timezone="CEST" …`, or `device_name="SFW" timestamp="2026-…+0200"`.
/// `device_name` is the model there: no host is stated.
fn sophos<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let [stamp, date, time, zone] = values(text, b' ', [b"timestamp", b"date", b"time", b"timezone"]);
    let date = match stamp {
        Some(stamp) => date::iso(stamp).filter(|(_, rest)| rest.is_empty())?.0,
        None => {
            let date = day_and_time(date?, time?)?;
            zone.map_or(date, |zone| date.in_zone(zone))
        }
    };
    Some(Parts { timestamp: date.instant(context), ..Parts::default() })
}

/// `id=firewall sn=000000000000 time="2026-10-11 22:14:15 UTC" fw=203.0.113.6 …`.
fn sonicwall<'a>(text: &'a [u8], context: &Context) -> Option<Parts<'a>> {
    let [serial, time] = values(text, b' ', [b"sn", b"time"]);
    serial?;
    let (date, rest) = date::iso(time?)?;
    rest.is_empty().then(|| Parts { timestamp: date.instant(context), ..Parts::default() })
}

/// Check Point's log exporter, format `splunk`: `time=1791756855|hostname=cp-lm-1|…`.
fn checkpoint(text: &[u8]) -> Option<Parts<'_>> {
    let [time, hostname] = values(text, b'|', [b"time", b"hostname"]);
    let (time, rest) = date::epoch(time?)?;
    let hostname = Some(host(hostname?)?);
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
    let (date, rest) = date::iso(&both[..day.len() + 1 + time.len()])?;
    rest.is_empty().then_some(date)
}

/// The value of each key where it comes first, without quotes; pairs are apart by `separator`.
fn values<'a, const N: usize>(text: &'a [u8], separator: u8, keys: [&[u8]; N]) -> [Option<&'a [u8]>; N] {
    let mut found = [None; N];
    let (mut missing, mut key, mut at) = (N, 0, 0);
    // Byte by byte: keys are shorter than what a search by vectors pays for.
    while let Some(byte) = text.get(at).filter(|_| missing > 0 && at < FRONT) {
        at += 1;
        if *byte == separator {
            key = at;
        } else if *byte == b'=' {
            let Some((value, taken)) = value(&text[at..], separator) else { break };
            let wanted = keys.iter().position(|wanted| *wanted == &text[key..at - 1]);
            if let Some(slot) = wanted.map(|wanted| &mut found[wanted]).filter(|slot| slot.is_none()) {
                *slot = Some(value);
                missing -= 1;
            }
            at += taken;
        }
    }
    found
}

/// The value that begins here, without quotes, and how much is behind its end; none where a quote never ends.
fn value(text: &[u8], separator: u8) -> Option<(&[u8], usize)> {
    match text.strip_prefix(b"\"") {
        Some(quoted) => memchr::memchr(b'"', quoted).map(|end| (&quoted[..end], end + 2)),
        None => {
            let end = text.iter().position(|byte| *byte == separator).unwrap_or(text.len());
            Some((&text[..end], end))
        }
    }
}
