//! Dates as vendors write them. Each function reads one from the front and gives what follows it.

use chrono::{FixedOffset, NaiveDate, NaiveDateTime};
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while_m_n};
use nom::character::complete::{multispace0, one_of, space1};
use nom::combinator::{map, map_opt, not, opt, peek, value, verify};
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

use crate::datagram::Timestamp;
use crate::parse::syslog::Context;
use crate::parse::zone::{Zone, month_number};

/// A date as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Date {
    wall: NaiveDateTime,
    zone: Zoned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zoned {
    /// No zone is written: the configured one.
    Unsaid,
    /// An offset, or a word that means one.
    Offset(FixedOffset),
    /// A word that means different offsets in different countries.
    Ambiguous,
}

impl Date {
    /// The instant; none where the zone's word does not say.
    pub(super) fn instant(self, context: &Context) -> Option<Timestamp> {
        match self.zone {
            Zoned::Unsaid => context.zone.instant(self.wall),
            Zoned::Offset(offset) => Zone::Fixed(offset).instant(self.wall),
            Zoned::Ambiguous => None,
        }
    }

    /// The same date with a zone that was written elsewhere, as `+0200` or as a word.
    pub(super) fn in_zone(self, text: &[u8]) -> Self {
        let zone = alt((offset, zone_word)).parse(text).map_or(Zoned::Ambiguous, |(_, zone)| zone);
        Self { zone, ..self }
    }
}

/// `2026-10-11T22:14:15.123+02:00`, also with a blank for the T, a comma for the dot, `+0200`, ` UTC`, or no zone.
pub(super) fn iso(input: &[u8]) -> IResult<&[u8], Date> {
    let day = (number(4, 4), tag("-"), number(2, 2), tag("-"), number(2, 2));
    let zone = opt(alt((
        value(utc(), one_of("Zz")),
        preceded(opt(tag(" ")), offset),
        preceded(tag(" "), zone_word),
    )));
    map_opt((day, one_of("Tt "), clock, zone), |((y, _, m, _, d), _, clock, zone)| date(y, m, d, clock, zone))
        .parse(input)
}

/// `Oct 11 22:14:15.702 UTC`, with a year before the month, before or after the time, or guessed.
pub(super) fn named_month<'a>(input: &'a [u8], context: &Context) -> IResult<&'a [u8], Date> {
    let year = || terminated(number(4, 4), space1);
    let later_year = preceded(space1, terminated(number(4, 4), peek(not(one_of("0123456789")))));
    let parts = (
        opt(year()),
        terminated(month, space1),
        terminated(number(1, 2), space1),
        opt(year()),
        clock,
        opt(later_year),
        opt(preceded(space1, zone_word)),
    );
    map_opt(parts, |(first, month, day, middle, clock, last, zone)| {
        let year =
            first.or(middle).or(last).map_or_else(|| context.calendar.year_of(month), |year| year as i32);
        date(u32::try_from(year).ok()?, month, day, clock, zone)
    })
    .parse(input)
}

/// `10/11/2026:22:14:15 GMT`: month first, as NetScaler has it unless told otherwise; day first where only that is a date.
pub(super) fn netscaler(input: &[u8]) -> IResult<&[u8], Date> {
    let day = (number(2, 2), tag("/"), number(2, 2), tag("/"), number(4, 4));
    map_opt(
        (day, tag(":"), clock, opt(preceded(tag(" "), zone_word))),
        |((a, _, b, _, y), _, clock, zone)| date(y, a, b, clock, zone).or_else(|| date(y, b, a, clock, zone)),
    )
    .parse(input)
}

/// `1791756855.4269`: seconds since 1970, ten digits of them.
pub(super) fn epoch(input: &[u8]) -> IResult<&[u8], Timestamp> {
    let seconds = terminated(number(10, 10), peek(not(one_of("0123456789"))));
    map((seconds, opt(fraction)), |(seconds, nanos)| Timestamp {
        seconds: i64::from(seconds),
        nanos: nanos.unwrap_or(0),
    })
    .parse(input)
}

type Clock = (u32, u32, u32, u32);

fn date(year: u32, month: u32, day: u32, clock: Clock, zone: Option<Zoned>) -> Option<Date> {
    let (hour, minute, second, nanos) = clock;
    let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let wall = day.and_hms_nano_opt(hour, minute, second, nanos)?;
    Some(Date { wall, zone: zone.unwrap_or(Zoned::Unsaid) })
}

fn clock(input: &[u8]) -> IResult<&[u8], Clock> {
    let parts = (number(1, 2), tag(":"), number(2, 2), tag(":"), number(2, 2), opt(fraction));
    map(parts, |(hour, _, minute, _, second, nanos)| (hour, minute, second, nanos.unwrap_or(0))).parse(input)
}

/// `.702` or `,702`, in nanoseconds; digits beyond the ninth are passed over.
fn fraction(input: &[u8]) -> IResult<&[u8], u32> {
    let digits = terminated(take_while_m_n(1, 9, is_digit), take_while(is_digit));
    let nanos = |digits: &[u8]| decimal(digits).map(|n| n * 10u32.pow(9 - digits.len() as u32));
    map_opt(preceded(one_of(".,"), digits), nanos).parse(input)
}

fn number<'a>(
    least: usize,
    most: usize,
) -> impl Parser<&'a [u8], Output = u32, Error = nom::error::Error<&'a [u8]>> {
    map_opt(take_while_m_n(least, most, is_digit), decimal)
}

fn month(input: &[u8]) -> IResult<&[u8], u32> {
    let letters = take_while_m_n(3, 3, |b: u8| b.is_ascii_alphabetic());
    map_opt(letters, |name: &[u8]| month_number(name.try_into().ok()?)).parse(input)
}

/// `+02:00` or `+0200`.
fn offset(input: &[u8]) -> IResult<&[u8], Zoned> {
    let parts = (one_of("+-"), number(2, 2), opt(tag(":")), number(2, 2));
    map_opt(parts, |(sign, hours, _, minutes)| {
        let seconds = i32::try_from(hours * 3_600 + minutes * 60).ok()?;
        FixedOffset::east_opt(if sign == '-' { -seconds } else { seconds }).map(Zoned::Offset)
    })
    .parse(input)
}

/// A zone's abbreviation: those of RFC 5322 (4.3) and Europe's mean one thing. Others, such as IST, do not.
fn zone_word(input: &[u8]) -> IResult<&[u8], Zoned> {
    let word = take_while_m_n(2, 5, |b: u8| b.is_ascii_uppercase());
    // What is in a date's place for a zone and is none.
    let whole = verify(word, |word: &[u8]| {
        !matches!(
            word,
            b"AM" | b"PM" | b"DEBUG" | b"TRACE" | b"INFO" | b"WARN" | b"ERROR" | b"ERR" | b"CRIT" | b"FATAL"
        )
    });
    map(terminated(whole, peek(not(one_of("0123456789_-%=abcdefghijklmnopqrstuvwxyz")))), |word: &[u8]| {
        let hours = match word {
            b"UTC" | b"GMT" | b"UT" | b"WET" => 0,
            b"CET" | b"MET" | b"WEST" => 1,
            b"CEST" | b"MEST" | b"EET" => 2,
            b"EEST" | b"MSK" => 3,
            b"EDT" => -4,
            b"EST" | b"CDT" => -5,
            b"CST" | b"MDT" => -6,
            b"MST" | b"PDT" => -7,
            b"PST" => -8,
            _ => return Zoned::Ambiguous,
        };
        FixedOffset::east_opt(hours * 3_600).map_or(Zoned::Ambiguous, Zoned::Offset)
    })
    .parse(input)
}

fn utc() -> Zoned {
    FixedOffset::east_opt(0).map_or(Zoned::Unsaid, Zoned::Offset)
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn decimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |sum, digit| sum.checked_mul(10)?.checked_add(u32::from(digit - b'0')))
}

/// Passes over blanks.
pub(super) fn blanks(input: &[u8]) -> &[u8] {
    multispace0::<_, nom::error::Error<&[u8]>>(input).map_or(input, |(rest, _)| rest)
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

    fn shown(result: IResult<&[u8], Date>) -> Option<(String, String)> {
        let (rest, date) = result.ok()?;
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
        assert_eq!(time, (&b" x"[..], Timestamp { seconds: 1_791_756_855, nanos: 426_900_000 }));
        assert!(epoch(b"17917568551 x").is_err());
        assert!(epoch(b"179175685 x").is_err());
    }
}
