//! One connection's TLS settings, made from the files as they are now.

use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use super::verifier::{Trust, Verifier};
use crate::config::Tls;
use crate::tls::{Certificate, FileError, certificates, identity};

/// What a handshake needs.
pub(super) struct Client {
    pub(super) config: Arc<ClientConfig>,
    pub(super) verifier: Arc<Verifier>,
    /// This side's certificate.
    pub(super) own: Option<Certificate>,
}

impl Client {
    /// Reads the files; it blocks.
    pub(super) fn read(options: &Tls) -> Result<Self, FileError> {
        let provider = Arc::new(ring::default_provider());
        let trust = options.verify_certificate.then(|| trust(options.ca_file.as_deref())).transpose()?;
        let verifier =
            Verifier::new(trust, options.verify_hostname, provider.signature_verification_algorithms);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| FileError(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _);
        let (own, mut config) = match (&options.crt_file, &options.key_file) {
            (Some(crt), Some(key)) => {
                let identity = identity(crt, key)?;
                let own = identity.cert.first().and_then(Certificate::of);
                (own, builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity))))
            }
            _ => (None, builder.with_no_client_auth()),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = Resumption::disabled(); // each connection has a configuration of its own
        Ok(Self { config: Arc::new(config), verifier, own })
    }
}

fn trust(ca_file: Option<&Path>) -> Result<Trust, FileError> {
    let Some(path) = ca_file else { return Ok(Trust { roots: system_roots()?, known: Vec::new() }) };
    let known = certificates(path)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(known.iter().cloned());
    Ok(Trust { roots, known })
}

/// The CAs that this system trusts.
///
/// # Errors
/// When there are none, as in a container image without them: nobody could be trusted then.
pub(crate) fn system_roots() -> Result<RootCertStore, FileError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    match added {
        0 => Err(FileError(
            "this system has no root certificates: name the CA that signed Vector's certificate, or install \
             the package ca-certificates"
                .to_owned(),
        )),
        _ => Ok(roots),
    }
}
