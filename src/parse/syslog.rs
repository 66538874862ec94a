//! A syslog message by the rules of Vector's `syslog` source: `syslog_loose` 0.23, RFC 5424 first, then RFC 3164.

use std::cell::Cell;

use chrono::{DateTime, FixedOffset};
use syslog_loose::{Message, Protocol, Variant, parse_message_with_year_exact_tz};

use super::common;
use super::parts::Parts;
use super::zone::{Calendar, Zone, month_number};
use crate::datagram::Timestamp;

/// What the parse depends on beside the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context {
    /// The zone of dates without one.
    pub zone: Zone,
    /// The day of receipt.
    pub calendar: Calendar,
}

/// The parts of a message, or none where Vector's source would have dropped it.
pub fn parse<'a>(text: &'a str, context: &Context) -> Option<Parts<'a>> {
    common::parse(text, context).or_else(|| parse_loosely(text, context))
}

/// The same, by `syslog_loose` alone.
fn parse_loosely<'a>(text: &'a str, context: &Context) -> Option<Parts<'a>> {
    let year_was_missing = Cell::new(false);
    let year_of = |(month, ..): syslog_loose::IncompleteDate| {
        year_was_missing.set(true);
        context.calendar.year_of(month)
    };
    let variant = possible_variant(text)?;
    let message = parse_message_with_year_exact_tz(text, year_of, Some(context.zone), variant).ok()?;
    let mut parts = from_message(&message);
    if let Some(time) = &message.timestamp {
        let in_zone = if year_was_missing.get() { None } else { dated_with_year(text, time, context.zone) };
        parts.timestamp = Some(in_zone.unwrap_or_else(|| Timestamp::from(time)));
    }
    parts.structured_data = message.structured_data;
    Some(parts)
}

/// Which grammars the text can be of, from its first bytes behind the PRI; none when it can be of neither, which
/// saves a third of what the third of all messages costs that do not parse.
fn possible_variant(text: &str) -> Option<Variant> {
    let text = text.trim_start().as_bytes();
    let rest = match text.strip_prefix(b"<") {
        Some(inside) => inside[digits(inside)..].strip_prefix(b">")?,
        None => text,
    };
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = &rest[blanks..];
    match rest {
        [b'-' | b'+', ..] => Some(Variant::Either),
        // A version and a blank, or the year of an RFC 3339 date.
        [b'0'..=b'9', ..] => {
            matches!(rest.get(digits(rest)), Some(b' ' | b'\t' | b'-')).then_some(Variant::Either)
        }
        // RFC 5424 has a version here, so no letter.
        [a, b, c, ..] => month_number([*a, *b, *c]).map(|_| Variant::RFC3164),
        _ => None,
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn from_message<'a>(message: &Message<&'a str>) -> Parts<'a> {
    Parts {
        facility: message.facility,
        severity: message.severity,
        version: match message.protocol {
            Protocol::RFC5424(version) => Some(version),
            Protocol::RFC3164 => None,
        },
        hostname: message.hostname,
        appname: message.appname,
        procid: message.procid.clone(),
        msgid: message.msgid,
        message: message.msg.as_bytes(),
        ..Parts::default()
    }
}

/// `Oct 11 2026 22:14:15`: `syslog_loose` takes the wall clock of such a date for UTC when it is given a zone, which
/// is right nowhere else. Vector's source gives it none, and so has it right for the local zone.
fn dated_with_year(text: &str, time: &DateTime<FixedOffset>, zone: Zone) -> Option<Timestamp> {
    let after_pri =
        text.trim_start().trim_start_matches('<').trim_start_matches(|c: char| c.is_ascii_digit());
    let date = after_pri.trim_start_matches('>').trim_start();
    // An RFC 3339 date, which begins with a digit, has its own zone; only a month's name has not.
    date.starts_with(|c: char| c.is_ascii_alphabetic()).then(|| zone.instant(time.naive_utc()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(zone: &str, now: &str) -> Context {
        let mut context = Context { zone: zone.parse().unwrap(), ..Context::default() };
        context.calendar.turn_to(Timestamp::from(&DateTime::parse_from_rfc3339(now).unwrap()));
        context
    }

    fn time(text: &str, zone: &str, now: &str) -> String {
        let time = parse(text, &context(zone, now)).unwrap().timestamp.unwrap();
        DateTime::from_timestamp(time.seconds, time.nanos).unwrap().to_rfc3339()
    }

    #[test]
    fn dates_without_zone_are_in_the_configured_one_with_and_without_a_year() {
        let now = "2026-11-30T12:00:00Z";
        for date in ["Oct 11 22:14:15", "Oct 11 2026 22:14:15"] {
            let text = format!("<13>{date} host app: x");
            assert_eq!(time(&text, "UTC", now), "2026-10-11T22:14:15+00:00");
            assert_eq!(time(&text, "Europe/Berlin", now), "2026-10-11T20:14:15+00:00");
        }
        for head in ["<13>", "<13>1 ", ""] {
            let text = format!("{head}2026-10-11T22:14:15+05:00 host app - - - x");
            assert_eq!(time(&text, "Europe/Berlin", now), "2026-10-11T17:14:15+00:00");
        }
    }

    #[test]
    fn new_year() {
        let text = "<13>Dec 31 23:59:59 host app: x";
        assert_eq!(time(text, "UTC", "2027-01-01T00:00:01Z"), "2026-12-31T23:59:59+00:00");
        assert_eq!(time(text, "UTC", "2026-12-31T23:59:59Z"), "2026-12-31T23:59:59+00:00");
        let text = "<13>Jan  1 00:00:05 host app: x";
        assert_eq!(time(text, "UTC", "2027-01-01T00:00:06Z"), "2027-01-01T00:00:05+00:00");
    }

    #[test]
    fn a_spring_hour_that_the_zone_skips_still_parses() {
        let text = "<13>Mar 29 02:30:00 host app: x";
        assert_eq!(time(text, "Europe/Berlin", "2026-03-29T12:00:00Z"), "2026-03-29T01:30:00+00:00");
    }

    /// Messages of the common shapes and their neighbours.
    fn generated(random: &mut fastrand::Rng) -> String {
        // The first of each is what makes a common shape.
        let pick = |random: &mut fastrand::Rng, from: &[&'static str]| match random.u8(..4) {
            0 => from[random.usize(..from.len())],
            _ => from[0],
        };
        let priority = pick(random, &["<13>", "<0>", "<191>", "<200>", "<255>", "<256>", "<007>", ""]);
        let host =
            pick(random, &["h", "fw-1.example.com", "192.0.2.1", "-", "a:", ":", "fe80::1", "x[1]", "a]b"]);
        let tag = pick(
            random,
            &["app:", "app[7]:", "a/b[w-1]:", "app", "-:", "[7]:", "a[]:", "a[1][2]:", "a]:", "a[b:", ":"],
        );
        let text = pick(
            random,
            &[
                "text",
                "- dash",
                "[a b=\"c\"] d",
                ": colon",
                " two",
                "é",
                "x [y z=\"1\"]",
                "1",
                "t\u{a0}",
                "t ",
            ],
        );
        let time = pick(
            random,
            &[
                "Oct 11 22:14:15",
                "Oct  1 22:14:15",
                "Feb 29 00:00:00",
                "Jan 31 23:59:60",
                "oct 11 22:14:15",
                "Dec 31 24:00:00",
                "Oct 11 22:14:5",
            ],
        );
        let iso = pick(
            random,
            &[
                "2026-10-11T22:14:15Z",
                "2026-10-11T22:14:15.719Z",
                "2024-02-29T00:00:00+14:00",
                "2026-10-11T22:14:15.1234567891Z",
                "2026-10-11T22:14:60Z",
                "2026-10-11T22:14:15-00:00",
                "2026-10-11T22:14:15+24:00",
                "-",
                "2026-10-11t22:14:15z",
            ],
        );
        let data = pick(
            random,
            &[
                "-",
                "[id a=\"b\"]",
                "[id a=\"b\" c=\"d e\"]",
                "[id]",
                "[id a=\"b\\\"c\"]",
                "[id a=b]",
                "[id  a=\"b\"]",
                "[a b=\"c\"][d e=\"f\"]",
                "[id a=\"\"]",
                "[id a= \"b\"]",
                "[=]",
                "[id a=\"]\"]",
                "[id [a=\"b\"]",
            ],
        );
        let word = pick(random, &["-", "7", "ID47", "a:b", "99999999999", ":", "a:", ":a", "x=y"]);
        let app = pick(random, &["app", "-", ":", "a:", "LS-BLUE:rpd", "[", "\"a\""]);
        let mut message = match random.bool() {
            true => format!("{priority}{time} {host} {tag} {text}"),
            false => format!("{priority}1 {iso} {host} {app} {word} {word} {data} {text}"),
        };
        if random.u8(..4) == 0 {
            let at = random.usize(..=message.len());
            let extra = pick(random, &[" ", ":", "[", "]", "\"", "-", "\t", "é"]);
            if message.is_char_boundary(at) {
                message.insert_str(at, extra);
            }
        }
        message
    }

    #[test]
    fn the_quick_way_reads_as_the_library_does() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut quick = 0;
        for zone in ["UTC", "Europe/Berlin"] {
            let context = context(zone, "2026-11-30T12:00:00Z");
            for _ in 0..100_000 {
                let text = generated(&mut random);
                if let Some(parts) = common::parse(&text, &context) {
                    quick += 1;
                    let library = parse_loosely(&text, &context);
                    // In full: equality of structured data passes over what one side lacks.
                    assert_eq!(format!("{:?}", Some(parts)), format!("{library:?}"), "{text:?}");
                }
            }
        }
        assert!(quick > 20_000, "{quick}");
    }
}
