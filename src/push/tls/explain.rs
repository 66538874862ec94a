//! What went wrong in a handshake, in one line that says what to do.

use std::io;

use chrono::DateTime;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, Error};

use crate::config::Tls;
use crate::tls::{Certificate, shown_time};

/// What a failure is explained by.
pub(in crate::push) struct Meeting<'a> {
    pub(in crate::push) options: &'a Tls,
    /// What the server showed, if it came that far.
    pub(in crate::push) server: Option<&'a Certificate>,
    /// True when the handshake was over for this side.
    pub(in crate::push) finished: bool,
}

/// The line.
pub(in crate::push) fn explain(error: &io::Error, meeting: &Meeting<'_>) -> String {
    let Some(cause) = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) else {
        return closed(error, meeting);
    };
    match cause {
        Error::InvalidCertificate(why) => certificate(why, meeting),
        Error::AlertReceived(alert) => told(*alert, meeting),
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            "the answer is no TLS: set tls.enabled = true in Vector's source, or write http:// for plaintext"
                .to_owned()
        }
        Error::PeerIncompatible(what) => {
            format!("no TLS version or cipher in common ({what:?}); this side speaks TLS 1.2 and 1.3")
        }
        other => other.to_string(),
    }
}

/// It hung up without a word of TLS.
fn closed(error: &io::Error, meeting: &Meeting<'_>) -> String {
    let hung_up = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    match (hung_up, meeting.finished) {
        (true, true) => format!("it closed the connection after the handshake; {}", client_hint(meeting)),
        (true, false) => {
            "it closed the connection in the middle of the handshake: is tls.enabled = true in Vector's source?"
                .to_owned()
        }
        (false, _) => error.to_string(),
    }
}

fn certificate(why: &CertificateError, meeting: &Meeting<'_>) -> String {
    let (subject, issuer) = meeting.server.map_or(("?", "?"), |server| (&server.subject, &server.issuer));
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            let wanting = match &meeting.options.ca_file {
                Some(path) => format!("which {} does not have", path.display()),
                None => "which this system does not trust".to_owned(),
            };
            format!(
                "Vector's certificate ({subject}) is signed by an unknown issuer ({issuer}), {wanting}: set \
                 vector.tls.ca_file to the CA that signed it"
            )
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("a certificate of Vector's ({subject}) expired at {}: renew it there", at(*not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "a certificate of Vector's ({subject}) is not valid before {}: is this machine's clock right?",
            at(*not_before)
        ),
        CertificateError::NotValidForNameContext { expected, .. } => other_name(expected, meeting),
        CertificateError::Other(what) if what.to_string().contains("CaUsedAsEndEntity") => format!(
            "Vector's certificate ({subject}) is a CA's own: set vector.tls.ca_file to it, or give Vector one that \
             is signed by it"
        ),
        other => format!("Vector's certificate ({subject}) is not valid: {other}"),
    }
}

fn other_name(expected: &ServerName<'_>, meeting: &Meeting<'_>) -> String {
    let expected = expected.to_str();
    let presented = meeting.server.map(|server| server.names.join(", ")).unwrap_or_default();
    match presented.as_str() {
        "" => format!(
            "Vector's certificate has no subject alternative names, and so is not for {expected}: make one that has \
             it, or set vector.tls.verify_hostname to false"
        ),
        names => format!(
            "Vector's certificate is for {names} and not for {expected}: connect by one of its names, or set \
             vector.tls.server_name to it"
        ),
    }
}

/// Vector says no.
fn told(alert: AlertDescription, meeting: &Meeting<'_>) -> String {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            format!("Vector refused the connection ({alert:?}); {}", client_hint(meeting))
        }
        AlertDescription::HandshakeFailure if meeting.options.crt_file.is_none() => {
            format!("Vector refused the connection ({alert:?}); {}", client_hint(meeting))
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied => format!(
            "Vector refused the client certificate in vector.tls.crt_file ({alert:?}): its tls.ca_file has to have \
             the CA that signed it"
        ),
        AlertDescription::NoApplicationProtocol => {
            "it speaks no HTTP/2 (ALPN h2); is this the address of a `vector` source?".to_owned()
        }
        other => format!("Vector refused the connection ({other:?})"),
    }
}

fn client_hint(meeting: &Meeting<'_>) -> &'static str {
    match meeting.options.crt_file {
        None => {
            "it may demand a client certificate: set vector.tls.crt_file and vector.tls.key_file, as its \
             tls.verify_certificate is on"
        }
        Some(_) => "it may not take the client certificate in vector.tls.crt_file: look at Vector's log",
    }
}

fn at(time: UnixTime) -> String {
    let time = i64::try_from(time.as_secs()).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| "an unknown time".to_owned(), shown_time)
}
