//! Digits of dates and clocks: what every layout has in common.
//!
//! Each `Reader` method takes what it names from the front, or leaves the reader where no caller may go on with it:
//! an optional part goes through [`Reader::maybe`].

use chrono::{NaiveDate, NaiveDateTime};

use super::zone::month_number;

/// `2026-10-11T22:14:15` and the byte that is between its date and its time.
pub(super) fn date_and_time(text: &[u8; 19]) -> Option<(NaiveDateTime, u8)> {
    let [y1, y2, y3, y4, b'-', o1, o2, b'-', d1, d2, between, h1, h2, b':', n1, n2, b':', s1, s2] = *text
    else {
        return None;
    };
    let year = two(y1, y2)? * 100 + two(y3, y4)?;
    let day = day(year, two(o1, o2)?, two(d1, d2)?)?;
    Some((day.and_hms_opt(two(h1, h2)?, two(n1, n2)?, two(s1, s2)?)?, between))
}

/// A day of the calendar.
pub(super) fn day(year: u32, month: u32, day: u32) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
}

pub(super) fn digit(byte: u8) -> Option<u32> {
    byte.is_ascii_digit().then(|| u32::from(byte - b'0'))
}

pub(super) fn two(tens: u8, ones: u8) -> Option<u32> {
    Some(digit(tens)? * 10 + digit(ones)?)
}

/// What is yet to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) rest: &'a [u8],
}

impl Reader<'_> {
    /// What `read` gives; where that is nothing, nothing is taken.
    pub(super) fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = *self;
        let found = read(self);
        if found.is_none() {
            *self = before;
        }
        found
    }

    /// The next byte, when it is one of these.
    pub(super) fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.rest.split_first().filter(|(first, _)| bytes.contains(first))?;
        self.rest = rest;
        Some(*first)
    }

    /// One blank or tab, or more.
    pub(super) fn blanks(&mut self) -> Option<()> {
        self.one_of(b" \t")?;
        while self.one_of(b" \t").is_some() {}
        Some(())
    }

    /// A number of `least` to `most` digits; more may follow. At most nine.
    pub(super) fn number(&mut self, least: usize, most: usize) -> Option<u32> {
        let (mut number, mut read) = (0, 0);
        while let Some(digit) = self.rest.get(read).filter(|_| read < most).and_then(|byte| digit(*byte)) {
            (number, read) = (number * 10 + digit, read + 1);
        }
        self.rest = &self.rest[read..];
        (read >= least).then_some(number)
    }

    /// Nothing when the number that was read goes on.
    pub(super) fn number_ends(&self) -> Option<()> {
        (!self.rest.first().is_some_and(u8::is_ascii_digit)).then_some(())
    }

    /// `Oct`, in any case.
    pub(super) fn month(&mut self) -> Option<u32> {
        let (name, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        month_number(*name)
    }

    /// `22:14:15` or `2:14:15`: hour, minute, second.
    pub(super) fn time(&mut self) -> Option<(u32, u32, u32)> {
        let hour = self.number(1, 2)?;
        self.one_of(b":")?;
        let minute = self.number(2, 2)?;
        self.one_of(b":")?;
        Some((hour, minute, self.number(2, 2)?))
    }

    /// `.702` or `,702`, in nanoseconds; digits beyond the ninth are passed over.
    pub(super) fn fraction(&mut self) -> Option<u32> {
        self.one_of(b".,")?;
        let before = self.rest.len();
        let digits = self.number(1, 9)?;
        let read = before - self.rest.len();
        while self.one_of(b"0123456789").is_some() {}
        Some(digits * 10u32.pow(9 - read as u32))
    }

    /// `+02:00` or `+0200`, in seconds east of Greenwich, less than a day.
    pub(super) fn offset(&mut self) -> Option<i32> {
        let sign = self.one_of(b"+-")?;
        let hours = self.number(2, 2).filter(|hours| *hours < 24)?;
        self.one_of(b":");
        let minutes = self.number(2, 2).filter(|minutes| *minutes < 60)?;
        let seconds = (hours * 3_600 + minutes * 60) as i32;
        Some(if sign == b'-' { -seconds } else { seconds })
    }
}
