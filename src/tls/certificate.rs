//! What a certificate says of itself (RFC 5280).

use std::net::IpAddr;

use chrono::{DateTime, SecondsFormat, Utc};
use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::text::harmless;

/// A certificate may have thousands of names: no more of them are kept.
const MOST_NAMES: usize = 10;

/// The parts of a certificate that a person wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Whose it is, such as `CN=vector`.
    pub subject: String,
    /// Who signed it.
    pub issuer: String,
    /// The first DNS names and addresses that it is for.
    pub names: Vec<String>,
    /// The last moment at which it is valid.
    pub expires: DateTime<Utc>,
    /// The first one.
    pub begins: DateTime<Utc>,
}

impl Certificate {
    /// Reads one; none when it is no X.509 certificate.
    pub fn of(der: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = parse_x509_certificate(der).ok()?;
        let validity = parsed.validity();
        let time = |time: x509_parser::time::ASN1Time| DateTime::from_timestamp(time.timestamp(), 0);
        let names = parsed.subject_alternative_name().ok().flatten();
        let names =
            names.map(|names| names.value.general_names.iter().filter_map(name).take(MOST_NAMES).collect());
        Some(Self {
            subject: harmless(&parsed.subject().to_string()),
            issuer: harmless(&parsed.issuer().to_string()),
            names: names.unwrap_or_default(),
            expires: time(validity.not_after)?,
            begins: time(validity.not_before)?,
        })
    }
}

/// A moment as log lines and messages show it.
pub fn shown_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(harmless(name)),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn subject_names_and_dates_are_read() {
        let mut params =
            CertificateParams::new(["vector".into(), "127.0.0.1".into(), "::1".into()].to_vec()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "a\nb");
        params.not_before = date_time_ymd(2025, 1, 1);
        params.not_after = date_time_ymd(2026, 1, 2);
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let read = Certificate::of(made.der()).unwrap();
        assert_eq!(read.names, ["vector", "127.0.0.1", "::1"]);
        assert_eq!((read.subject.as_str(), read.issuer.as_str()), ("CN=a?b", "CN=a?b"));
        assert_eq!(shown_time(read.begins), "2025-01-01T00:00:00Z");
        assert_eq!(shown_time(read.expires), "2026-01-02T00:00:00Z");
        assert_eq!(Certificate::of(&b"\x30\x03no"[..].into()), None);
    }
}
