//! When certificates expire, by what was seen when connections were made.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

/// Whose certificate it is; a closed set, fit for a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// This side's, shown to Vector.
    Client,
    /// Vector's.
    Server,
}

impl Holder {
    /// Both, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The certificates in use, as last seen at each endpoint.
#[derive(Debug, Default)]
pub struct Certificates {
    seen: Mutex<BTreeMap<(Holder, String), Entry>>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    expires: DateTime<Utc>,
    warned: Option<DateTime<Utc>>,
}

impl Certificates {
    /// A certificate that expires within this time is warned of.
    pub const SOON: TimeDelta = TimeDelta::days(14);
    /// Every connection sees the certificate; a person need not read of it that often.
    const AGAIN: TimeDelta = TimeDelta::hours(1);

    /// Notes what was seen at an endpoint; true when it is time to warn of it.
    pub fn note(&self, holder: Holder, endpoint: &str, expires: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen.get(&(holder, endpoint.to_owned())).filter(|entry| entry.expires == expires);
        let warned = before.and_then(|entry| entry.warned);
        let warn = expires - now < Self::SOON && warned.is_none_or(|warned| now - warned >= Self::AGAIN);
        let warned = if warn { Some(now) } else { warned };
        seen.insert((holder, endpoint.to_owned()), Entry { expires, warned });
        warn
    }

    /// Forgets what was seen at other endpoints than these, and what this side has shown: the next connection tells.
    pub fn keep(&self, endpoints: &[String]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|(_, endpoint), _| endpoints.contains(endpoint));
    }

    /// When the first of them expires; none when there are none.
    pub fn earliest(&self, holder: Holder) -> Option<DateTime<Utc>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().filter(|((of, _), _)| *of == holder).map(|(_, entry)| entry.expires).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warned_of_once_an_hour_and_anew_when_it_changes() {
        let certificates = Certificates::default();
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let note = |days, minutes| {
            let (expires, now) = (now + TimeDelta::days(days), now + TimeDelta::minutes(minutes));
            certificates.note(Holder::Server, "https://a:6000", expires, now)
        };
        assert!(!note(90, 0));
        assert_eq!(certificates.earliest(Holder::Client), None);
        assert_eq!([note(13, 1), note(13, 2), note(13, 62)], [true, false, true]);
        assert!(note(-1, 63), "it expired");
        certificates.note(Holder::Server, "https://b:6000", now + TimeDelta::days(30), now);
        assert_eq!(certificates.earliest(Holder::Server), Some(now - TimeDelta::days(1)));
    }
}
