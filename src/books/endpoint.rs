//! What is known of each Vector that is pushed to.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Whether an endpoint takes events; a closed set, fit for a metric's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointState {
    /// At least one connection is up.
    Connected,
    /// None is up yet, and none has failed.
    Connecting,
    /// None is up, and the last attempt failed.
    Down,
}

/// One endpoint's books, shared by its connections.
#[derive(Debug)]
pub struct EndpointBooks {
    /// Its URL.
    pub endpoint: String,
    /// Connections that it should have.
    pub connections: AtomicUsize,
    /// Connections that are up.
    pub connected: AtomicU64,
    /// Events that it acknowledged.
    pub delivered: AtomicU64,
    /// Requests and connections that failed.
    pub failures: AtomicU64,
    /// Whether it gets requests uncompressed because it refused compressed ones.
    pub compression_refused: AtomicBool,
    last_error: Mutex<Option<String>>,
}

/// One endpoint's part of a [`Report`](super::Report).
#[derive(Debug, Clone, Serialize)]
pub struct EndpointReport {
    /// Its URL.
    pub endpoint: String,
    /// Whether it takes events.
    pub state: EndpointState,
    /// Connections that it should have.
    pub connections: usize,
    /// Connections that are up.
    pub connected: u64,
    /// Events that it acknowledged.
    pub delivered: u64,
    /// Requests and connections that failed.
    pub failures: u64,
    /// Whether it gets requests uncompressed because it refused compressed ones.
    pub compression_refused: bool,
    /// What the last failure was.
    pub last_error: Option<String>,
}

impl EndpointBooks {
    /// Empty books.
    pub fn new(endpoint: String, connections: usize) -> Self {
        Self {
            endpoint,
            connections: AtomicUsize::new(connections),
            connected: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            compression_refused: AtomicBool::new(false),
            last_error: Mutex::new(None),
        }
    }

    /// Counts a failure and keeps what it was.
    pub fn failed(&self, error: &str) {
        self.failures.fetch_add(1, Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_owned());
    }

    /// Everything, now.
    pub fn report(&self) -> EndpointReport {
        let last_error = self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let connected = self.connected.load(Relaxed);
        let state = match (connected, &last_error) {
            (0, None) => EndpointState::Connecting,
            (0, Some(_)) => EndpointState::Down,
            _ => EndpointState::Connected,
        };
        EndpointReport {
            endpoint: self.endpoint.clone(),
            state,
            connections: self.connections.load(Relaxed),
            connected,
            delivered: self.delivered.load(Relaxed),
            failures: self.failures.load(Relaxed),
            compression_refused: self.compression_refused.load(Relaxed),
            last_error,
        }
    }
}
