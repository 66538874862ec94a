//! Where events go, and what becomes of those that are refused.

use std::path::PathBuf;
use std::time::Duration;

use super::Endpoint;

/// Where and how to push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    /// Vector sources.
    pub endpoints: Vec<Endpoint>,
    /// HTTP/2 connections to each.
    pub connections: usize,
    /// Requests in flight on each connection.
    pub streams: usize,
    /// Whether each sender's order is kept: one request in flight for each worker.
    pub ordered: bool,
    /// A request's deadline.
    pub request_timeout: Duration,
    /// The first wait after a failure; it doubles from there.
    pub retry_initial_backoff: Duration,
    /// How long a batch is tried, from its first datagram on; none: for ever.
    pub retry_max_duration: Option<Duration>,
    /// What becomes of a batch that a sink refused something of.
    pub on_rejected: OnRejected,
    /// How requests are compressed.
    pub compression: Compression,
    /// How `https://` endpoints are spoken to.
    pub tls: Tls,
}

impl Default for Vector {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            connections: 2,
            streams: 4,
            ordered: false,
            request_timeout: Duration::from_secs(60),
            retry_initial_backoff: Duration::from_millis(100),
            retry_max_duration: None,
            on_rejected: OnRejected::Drop,
            compression: Compression::None,
            tls: Tls::default(),
        }
    }
}

/// How requests are compressed; Vector's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952: every Vector knows it.
    Gzip,
    /// RFC 8878: the newest ones know it.
    Zstd,
}

/// What becomes of a batch of which a sink refused something for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRejected {
    /// It is rejected as a whole: its good events may be delivered, and would be twice.
    Drop,
    /// It is halved and sent again, down to the event: the good ones may be delivered twice.
    Split,
}

/// The file of events that Vector refuses for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it is; none where they are only counted.
    pub path: Option<PathBuf>,
    /// Its largest size, bytes.
    pub max_bytes: usize,
}

impl Default for DeadLetter {
    fn default() -> Self {
        Self { path: None, max_bytes: 64 << 20 }
    }
}

/// TLS to Vector; the names are Vector's. Files are read anew for each connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the CAs that are trusted (PEM); the system's roots when none.
    pub ca_file: Option<PathBuf>,
    /// This side's certificate and what leads to its CA (PEM).
    pub crt_file: Option<PathBuf>,
    /// Its private key (PEM).
    pub key_file: Option<PathBuf>,
    /// The name that Vector's certificate has to have; the endpoint's host when empty.
    pub server_name: String,
    /// Whether Vector's certificate is verified at all.
    pub verify_certificate: bool,
    /// Whether its name is.
    pub verify_hostname: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            ca_file: None,
            crt_file: None,
            key_file: None,
            server_name: String::new(),
            verify_certificate: true,
            verify_hostname: true,
        }
    }
}
