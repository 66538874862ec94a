//! Certificates and keys from PEM files (RFC 7468).

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{Error, InconsistentKeys};

use super::Certificate;

/// Why a file is of no use, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FileError(pub String);

/// Every certificate in a file, in its order; one at least.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    let bytes = read(path)?;
    let place = path.display();
    let found: Vec<_> = CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| FileError(format!("{place} is no sound PEM: {error}")))?;
    if found.is_empty() {
        let found =
            if bytes.first() == Some(&0x30) { "is DER, not PEM" } else { "has no certificate in PEM" };
        return Err(FileError(format!("{place} {found}: it needs a -----BEGIN CERTIFICATE----- block")));
    }
    match found.iter().position(|der| Certificate::of(der).is_none()) {
        Some(at) => Err(FileError(format!("certificate {} in {place} is no X.509 certificate", at + 1))),
        None => Ok(found),
    }
}

/// The first private key in a file.
///
/// # Errors
/// When the file cannot be read, holds none, or one that is encrypted.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, FileError> {
    let bytes = read(path)?;
    let place = path.display();
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        FileError(match error {
            _ if memchr::memmem::find(&bytes, b"ENCRYPTED").is_some() => {
                format!("the private key in {place} is encrypted: decrypt it with `openssl pkey -in {place}`")
            }
            PemError::NoItemsFound => {
                format!("{place} has no private key in PEM: it needs a -----BEGIN PRIVATE KEY----- block")
            }
            error => format!("{place} is no sound PEM: {error}"),
        })
    })
}

/// A key that can sign, from [`private_key`].
///
/// # Errors
/// When it is of a kind that cannot be used.
pub fn signing_key(path: &Path) -> Result<Arc<dyn SigningKey>, FileError> {
    let key = private_key(path)?;
    ring::default_provider().key_provider.load_private_key(key).map_err(|_| {
        let kinds = "RSA of 2,048 bits or more, ECDSA P-256 or P-384, or Ed25519";
        FileError(format!("the private key in {} is of no use: make one of {kinds}", path.display()))
    })
}

/// True when the key is the certificate's.
pub fn fits(certificates: &[CertificateDer<'static>], key: &Arc<dyn SigningKey>) -> bool {
    let pair = CertifiedKey::new(certificates.to_vec(), Arc::clone(key));
    !matches!(pair.keys_match(), Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)))
}

/// A certificate, what leads to its CA, and its key.
///
/// # Errors
/// When a file is of no use, or the key is not the certificate's.
pub fn identity(crt: &Path, key: &Path) -> Result<CertifiedKey, FileError> {
    let certificates = certificates(crt)?;
    let signing = signing_key(key)?;
    match fits(&certificates, &signing) {
        true => Ok(CertifiedKey::new(certificates, signing)),
        false => Err(FileError(misfit(crt, key))),
    }
}

/// What to say when [`fits`] says no.
pub fn misfit(crt: &Path, key: &Path) -> String {
    format!("the private key in {} is not that of the certificate in {}", key.display(), crt.display())
}

/// A file's bytes.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    std::fs::read(path).map_err(|error| FileError(format!("cannot read {}: {error}", path.display())))
}
