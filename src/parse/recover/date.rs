//! Dates as vendors write them. Each function reads one from the front and gives it with what follows it.

use chrono::NaiveDateTime;

use crate::datagram::Timestamp;
use crate::parse::clock::{Reader, date_and_time, day};
use crate::parse::syslog::Context;

/// A date as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date {
    wall: NaiveDateTime,
    /// Behind the second of `wall`.
    nanos: u32,
    zone: Zoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zoned {
    /// No zone is written: the configured one.
    Unsaid,
    /// Seconds east of Greenwich, from an offset or a word that means one.
    Offset(i32),
    /// A word that means different offsets in different countries.
    Ambiguous,
}

impl Date {
    /// The instant; none where the zone's word does not say.
    pub(super) fn instant(self, context: &Context) -> Option<Timestamp> {
        let seconds = match self.zone {
            Zoned::Unsaid => context.zone.instant(self.wall)?.seconds,
            Zoned::Offset(seconds) => self.wall.and_utc().timestamp() - i64::from(seconds),
            Zoned::Ambiguous => return None,
        };
        Some(Timestamp { seconds, nanos: self.nanos })
    }

    /// The same date with a zone that was written elsewhere, as `+0200` or as a word.
    pub(super) fn in_zone(self, text: &[u8]) -> Self {
        let mut reader = Reader { rest: text };
        let offset = reader.maybe(Reader::offset).map(Zoned::Offset);
        Self { zone: offset.or_else(|| zone_word(&mut reader)).unwrap_or(Zoned::Ambiguous), ..self }
    }
}

/// A date, and the text behind it.
type Found<'a, T = Date> = Option<(T, &'a [u8])>;

/// `2026-10-11T22:14:15.123+02:00`, also with a blank for the T, a comma for the dot, `+0200`, ` UTC`, or no zone.
pub(super) fn iso(text: &[u8]) -> Found<'_> {
    let (date, rest) = text.split_first_chunk()?;
    let (wall, _) = date_and_time(date).filter(|(_, between)| matches!(between, b'T' | b't' | b' '))?;
    let mut reader = Reader { rest };
    let nanos = reader.maybe(Reader::fraction).unwrap_or(0);
    let zone = reader.maybe(iso_zone).unwrap_or(Zoned::Unsaid);
    Some((Date { wall, nanos, zone }, reader.rest))
}

fn iso_zone(reader: &mut Reader<'_>) -> Option<Zoned> {
    if reader.one_of(b"Zz").is_some() {
        return Some(Zoned::Offset(0));
    }
    let blank = reader.one_of(b" ").is_some();
    let offset = reader.maybe(Reader::offset).map(Zoned::Offset);
    offset.or_else(|| if blank { zone_word(reader) } else { None })
}

/// `Oct 11 22:14:15.702 UTC`, with a year before the month, before or after the time, or guessed.
pub(super) fn named_month<'a>(text: &'a [u8], context: &Context) -> Found<'a> {
    let mut reader = Reader { rest: text };
    let year = reader.maybe(year_before);
    let month = reader.month()?;
    reader.blanks()?;
    let day_of_month = reader.number(1, 2)?;
    reader.blanks()?;
    let year = year.or_else(|| reader.maybe(year_before));
    let (hour, minute, second) = reader.time()?;
    let nanos = reader.maybe(Reader::fraction).unwrap_or(0);
    let year_behind = reader.maybe(|reader| {
        reader.blanks()?;
        let year = reader.number(4, 4)?;
        reader.number_ends()?;
        Some(year)
    });
    let zone = reader.maybe(|reader| {
        reader.blanks()?;
        zone_word(reader)
    });
    let guessed = || u32::try_from(context.calendar.year_of(month)).ok();
    let wall = day(year.or(year_behind).or_else(guessed)?, month, day_of_month)?;
    let wall = wall.and_hms_opt(hour, minute, second)?;
    Some((Date { wall, nanos, zone: zone.unwrap_or(Zoned::Unsaid) }, reader.rest))
}

/// A year and the blanks behind it.
fn year_before(reader: &mut Reader<'_>) -> Option<u32> {
    let year = reader.number(4, 4)?;
    reader.blanks()?;
    Some(year)
}

/// `10/11/2026:22:14:15 GMT`: month first, as NetScaler has it unless told otherwise; day first where only that is a date.
pub(super) fn netscaler(text: &[u8]) -> Found<'_> {
    let mut reader = Reader { rest: text };
    let first = reader.number(2, 2)?;
    reader.one_of(b"/")?;
    let second = reader.number(2, 2)?;
    reader.one_of(b"/")?;
    let year = reader.number(4, 4)?;
    reader.one_of(b":")?;
    let (hours, minutes, seconds) = reader.time()?;
    let zone = reader.maybe(|reader| {
        reader.one_of(b" ")?;
        zone_word(reader)
    });
    let wall = day(year, first, second).or_else(|| day(year, second, first))?;
    let wall = wall.and_hms_opt(hours, minutes, seconds)?;
    Some((Date { wall, nanos: 0, zone: zone.unwrap_or(Zoned::Unsaid) }, reader.rest))
}

/// `1791756855.4269`: seconds since 1970, ten digits of them.
pub(super) fn epoch(text: &[u8]) -> Found<'_, Timestamp> {
    let mut reader = Reader { rest: text };
    let seconds = i64::from(reader.number(9, 9)?) * 10 + i64::from(reader.number(1, 1)?);
    reader.number_ends()?;
    let nanos = reader.maybe(Reader::fraction).unwrap_or(0);
    Some((Timestamp { seconds, nanos }, reader.rest))
}

/// A zone's abbreviation: those of RFC 5322 (4.3) and Europe's mean one thing. Others, such as IST, do not.
fn zone_word(reader: &mut Reader<'_>) -> Option<Zoned> {
    let text = reader.rest;
    let length = text.iter().take(6).take_while(|byte| byte.is_ascii_uppercase()).count();
    let (word, rest) = text.split_at(length.min(5));
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'%' | b'=');
    if word.len() < 2 || rest.first().is_some_and(goes_on) {
        return None;
    }
    let hours = match word {
        // What is in a zone's place and is none.
        b"AM" | b"PM" | b"DEBUG" | b"TRACE" | b"INFO" | b"WARN" | b"ERROR" | b"ERR" | b"CRIT" | b"FATAL" => {
            return None;
        }
        b"UTC" | b"GMT" | b"UT" | b"WET" => 0,
        b"CET" | b"MET" | b"WEST" => 1,
        b"CEST" | b"MEST" | b"EET" => 2,
        b"EEST" | b"MSK" => 3,
        b"EDT" => -4,
        b"EST" | b"CDT" => -5,
        b"CST" | b"MDT" => -6,
        b"MST" | b"PDT" => -7,
        b"PST" => -8,
        _ => {
            reader.rest = rest;
            return Some(Zoned::Ambiguous);
        }
    };
    reader.rest = rest;
    Some(Zoned::Offset(hours * 3_600))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn context() -> Context {
        let mut context = Context { zone: "Europe/Berlin".parse().unwrap(), ..Context::default() };
        context.calendar.turn_to(Timestamp { seconds: 1_796_000_000, nanos: 0 }); // 2026-11-30
        context
    }

    fn shown(found: Found<'_>) -> Option<(String, String)> {
        let (date, rest) = found?;
        let time = date.instant(&context()).map_or("?".into(), |time| {
            DateTime::from_timestamp(time.seconds, time.nanos)
                .unwrap()
                .to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
        });
        Some((time, String::from_utf8(rest.to_vec()).unwrap()))
    }

    #[test]
    fn iso_dates() {
        for (text, time, rest) in [
            ("2026-10-11T22:14:15Z host", "2026-10-11T22:14:15Z", " host"),
            ("2026-10-11T22:14:15.5+0200 host", "2026-10-11T20:14:15.500Z", " host"),
            ("2026-10-11 22:14:15,123-05:30: x", "2026-10-12T03:44:15.123Z", ": x"),
            ("2026-10-11 22:14:15.123 +00:00 x", "2026-10-11T22:14:15.123Z", " x"),
            ("2026-10-11 22:14:15 UTC\"", "2026-10-11T22:14:15Z", "\""),
            ("2026-10-11 22:14:15 gw-4 app", "2026-10-11T20:14:15Z", " gw-4 app"),
            ("2026-10-11 22:14:15 FW-1 app", "2026-10-11T20:14:15Z", " FW-1 app"),
            ("2026-10-11 22:14:15 IST x", "?", " x"),
            ("2026-10-11T22:14:15.1234567890123Z", "2026-10-11T22:14:15.123456789Z", ""),
        ] {
            assert_eq!(shown(iso(text.as_bytes())), Some((time.into(), rest.into())), "{text}");
        }
        for wrong in ["2026-13-11T22:14:15Z", "2026-10-11", "2026-10-11T25:00:00Z", "20261011T221415", ""] {
            assert_eq!(shown(iso(wrong.as_bytes())), None, "{wrong}");
        }
    }

    #[test]
    fn dates_with_a_months_name() {
        for (text, time, rest) in [
            ("Oct 11 22:14:15.702 UTC: %SEC", "2026-10-11T22:14:15.702Z", ": %SEC"),
            ("Mar  1 18:46:11.214: %SYS", "2026-03-01T17:46:11.214Z", ": %SYS"),
            ("2026 Oct 11 22:14:15.330 UTC: x", "2026-10-11T22:14:15.330Z", ": x"),
            ("Oct 11 2026 22:14:15.55 UTC :  x", "2026-10-11T22:14:15.550Z", " :  x"),
            ("oct 11 22:14:15 2025: x", "2025-10-11T20:14:15Z", ": x"),
            ("Oct 11 22:14:15 EDT: x", "2026-10-12T02:14:15Z", ": x"),
            ("Oct 11 22:14:15 IST: x", "?", ": x"),
        ] {
            assert_eq!(
                shown(named_month(text.as_bytes(), &context())),
                Some((time.into(), rest.into())),
                "{text}"
            );
        }
        for wrong in ["Okt 11 22:14:15", "Feb 30 22:14:15", "Oct 11 22:14", "Oct"] {
            assert_eq!(shown(named_month(wrong.as_bytes(), &context())), None, "{wrong}");
        }
    }

    #[test]
    fn netscaler_dates_and_epochs() {
        let shown_netscaler = |text: &'static str| shown(netscaler(text.as_bytes())).map(|(time, _)| time);
        assert_eq!(shown_netscaler("10/11/2026:22:14:15 GMT ns"), Some("2026-10-11T22:14:15Z".into()));
        assert_eq!(shown_netscaler("31/10/2026:22:14:15 GMT ns"), Some("2026-10-31T22:14:15Z".into()));
        assert_eq!(shown_netscaler("10/11/2026:22:14:15  ns"), Some("2026-10-11T20:14:15Z".into()));
        assert_eq!(shown_netscaler("31/31/2026:22:14:15 GMT"), None);
        let time = epoch(b"1791756855.4269 x").unwrap();
        assert_eq!(time, (Timestamp { seconds: 1_791_756_855, nanos: 426_900_000 }, &b" x"[..]));
        assert!(epoch(b"17917568551 x").is_none());
        assert!(epoch(b"179175685 x").is_none());
    }
}
