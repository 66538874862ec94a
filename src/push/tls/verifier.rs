//! Whether the server's certificate is good enough, as the options want it.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::tls::Certificate;

/// What is trusted.
#[derive(Debug)]
pub(super) struct Trust {
    /// Who may sign.
    pub(super) roots: RootCertStore,
    /// Certificates that are trusted as they are: a server's self-signed one may itself be the `ca_file`, as OpenSSL
    /// has it.
    pub(super) known: Vec<CertificateDer<'static>>,
}

/// Verifies one connection's server, and remembers what it showed.
#[derive(Debug)]
pub(super) struct Verifier {
    trust: Option<Trust>,
    hostname: bool,
    algorithms: WebPkiSupportedAlgorithms,
    seen: Mutex<Option<Certificate>>,
}

impl Verifier {
    /// Trusts any certificate when `trust` is none, and any name when `hostname` is false.
    pub(super) fn new(
        trust: Option<Trust>,
        hostname: bool,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Arc<Self> {
        Arc::new(Self { trust, hostname, algorithms, seen: Mutex::default() })
    }

    /// The server's certificate, once it has shown one.
    pub(super) fn seen(&self) -> Option<Certificate> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = Certificate::of(end_entity);
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = certificate.clone();
        let Some(trust) = &self.trust else { return Ok(ServerCertVerified::assertion()) };
        let parsed = ParsedCertificate::try_from(end_entity)?;
        if trust.known.contains(end_entity) {
            verify_dates(&certificate.ok_or(CertificateError::BadEncoding)?, now)?;
        } else {
            verify_server_cert_signed_by_trust_anchor(
                &parsed,
                &trust.roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
        }
        if self.hostname {
            verify_server_name(&parsed, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn verify_dates(certificate: &Certificate, now: UnixTime) -> Result<(), CertificateError> {
    let time = |time: chrono::DateTime<chrono::Utc>| {
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(time.timestamp().max(0).unsigned_abs()))
    };
    let (not_before, not_after) = (time(certificate.begins), time(certificate.expires));
    match now.as_secs() {
        at if at < not_before.as_secs() => {
            Err(CertificateError::NotValidYetContext { time: now, not_before })
        }
        at if at > not_after.as_secs() => Err(CertificateError::ExpiredContext { time: now, not_after }),
        _ => Ok(()),
    }
}
