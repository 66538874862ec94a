//! The receiver's side of TLS.

use std::path::PathBuf;

use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::tls::{FileError, certificates, identity, read};

/// What a receiver shows, and whether it asks for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Its certificate and what leads to its CA (PEM).
    pub crt_file: PathBuf,
    /// Its private key (PEM).
    pub key_file: PathBuf,
    /// The CAs of clients (PEM); with it, a client without a certificate is turned away.
    pub ca_file: Option<PathBuf>,
}

/// Settings that were found to be of use.
#[derive(Debug, Clone)]
pub struct Tls(pub(super) ServerTlsConfig);

impl Files {
    /// Reads them, once.
    ///
    /// # Errors
    /// What is wrong with a file.
    pub fn read(&self) -> Result<Tls, FileError> {
        identity(&self.crt_file, &self.key_file)?;
        let pair = Identity::from_pem(read(&self.crt_file)?, read(&self.key_file)?);
        let config = ServerTlsConfig::new().identity(pair);
        Ok(Tls(match &self.ca_file {
            None => config,
            Some(path) => {
                certificates(path)?;
                config.client_ca_root(Certificate::from_pem(read(path)?))
            }
        }))
    }
}
