//! The zone of dates that name none.

use std::fmt;
use std::str::FromStr;

use chrono::offset::{LocalResult, Offset};
use chrono::{DateTime, Datelike, Duration, FixedOffset, Local, NaiveDate, NaiveDateTime, TimeZone};
use chrono_tz::Tz;

use crate::datagram::Timestamp;

/// Where a device's clock is, when its dates do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zone {
    /// The machine's own, as in Vector's `syslog` source.
    #[default]
    Local,
    /// A named one, such as `Europe/Berlin`.
    Named(Tz),
    /// An offset, as a date may carry.
    Fixed(FixedOffset),
}

impl Zone {
    /// The instant of a wall-clock time. Of two, the earlier one; in the hour that a spring clock skips, what the
    /// clock would have shown had it not been put forward.
    pub fn instant(self, wall: NaiveDateTime) -> Option<Timestamp> {
        self.from_local_datetime(&wall).earliest().map(|time| Timestamp::from(&time))
    }
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "local" => Ok(Self::Local),
            name => name.parse().map(Self::Named).map_err(|_| {
                format!("`{text}` is no time zone: write `local` or a name such as UTC or Europe/Berlin")
            }),
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Named(zone) => zone.fmt(f),
            Self::Fixed(offset) => offset.fmt(f),
        }
    }
}

/// So that `syslog_loose` asks us instead of failing in the hour that does not exist.
impl TimeZone for Zone {
    type Offset = FixedOffset;

    fn from_offset(offset: &FixedOffset) -> Self {
        Self::Fixed(*offset)
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> LocalResult<FixedOffset> {
        self.offset_from_local_datetime(&local.and_time(chrono::NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> LocalResult<FixedOffset> {
        let found = |wall: &NaiveDateTime| match self {
            Self::Local => Local.offset_from_local_datetime(wall),
            Self::Named(zone) => zone.offset_from_local_datetime(wall).map(|offset| offset.fix()),
            Self::Fixed(offset) => LocalResult::Single(*offset),
        };
        match found(local) {
            LocalResult::None => found(&(*local - Duration::hours(3))),
            some => some,
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> FixedOffset {
        self.offset_from_utc_datetime(&utc.and_time(chrono::NaiveTime::MIN))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> FixedOffset {
        match self {
            Self::Local => Local.offset_from_utc_datetime(utc),
            Self::Named(zone) => zone.offset_from_utc_datetime(utc).fix(),
            Self::Fixed(offset) => *offset,
        }
    }
}

impl<Z: TimeZone> From<&DateTime<Z>> for Timestamp {
    /// A leap second has more than 10^9 nanoseconds in chrono, which Vector's decoder panics at: it becomes the
    /// second that follows.
    fn from(time: &DateTime<Z>) -> Self {
        let nanos = time.timestamp_subsec_nanos();
        Self { seconds: time.timestamp() + i64::from(nanos / 1_000_000_000), nanos: nanos % 1_000_000_000 }
    }
}

/// The number of a month by its first three letters, in either case.
pub(super) fn month_number(name: [u8; 3]) -> Option<u32> {
    // This bit makes letters small, and makes no letter of what is none.
    Some(match &name.map(|byte| byte | 0x20) {
        b"jan" => 1,
        b"feb" => 2,
        b"mar" => 3,
        b"apr" => 4,
        b"may" => 5,
        b"jun" => 6,
        b"jul" => 7,
        b"aug" => 8,
        b"sep" => 9,
        b"oct" => 10,
        b"nov" => 11,
        b"dec" => 12,
        _ => return None,
    })
}

/// Guesses the year of a date that has none, as Vector does: the current one in UTC, or the last for December
/// read in January. "Now" is when the datagram was received, so nothing here reads a clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calendar {
    day: i64,
    year: i32,
    month: u32,
}

impl Calendar {
    /// Moves to the day of `now`; cheap when that is the same day as before.
    pub fn turn_to(&mut self, now: Timestamp) {
        let day = now.seconds.div_euclid(86_400);
        if day == self.day && self.year != 0 {
            return;
        }
        let date = DateTime::from_timestamp(now.seconds, 0).unwrap_or_default();
        *self = Self { day, year: date.year(), month: date.month() };
    }

    /// The year of a date in `month`.
    pub fn year_of(&self, month: u32) -> i32 {
        if self.month == 1 && month == 12 { self.year - 1 } else { self.year }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from(&DateTime::parse_from_rfc3339(text).unwrap())
    }

    #[test]
    fn december_read_in_january_is_last_years() {
        let mut calendar = Calendar::default();
        for (now, december, january) in [
            ("2026-12-31T23:59:59Z", 2026, 2026),
            ("2027-01-01T00:00:00Z", 2026, 2027),
            ("2027-01-31T23:59:59Z", 2026, 2027),
            ("2027-02-01T00:00:00Z", 2027, 2027),
        ] {
            calendar.turn_to(at(now));
            assert_eq!((calendar.year_of(12), calendar.year_of(1)), (december, january), "{now}");
        }
    }

    #[test]
    fn the_hour_that_does_not_exist_and_the_one_that_comes_twice() {
        let berlin: Zone = "Europe/Berlin".parse().unwrap();
        let instant = |text: &str| berlin.instant(text.parse().unwrap()).unwrap();
        assert_eq!(instant("2026-03-29T02:30:00"), at("2026-03-29T02:30:00+01:00"));
        assert_eq!(instant("2026-10-25T02:30:00"), at("2026-10-25T02:30:00+02:00"));
        assert_eq!(instant("2026-07-01T12:00:00"), at("2026-07-01T12:00:00+02:00"));
    }

    #[test]
    fn a_leap_second_is_one_that_vector_can_take() {
        assert_eq!(at("2016-12-31T23:59:60.5Z"), at("2017-01-01T00:00:00.5Z"));
        assert!(at("2016-12-31T23:59:60.5Z").nanos < 1_000_000_000);
    }
}
