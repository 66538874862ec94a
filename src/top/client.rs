//! Asks the admin port: one connection for each look, HTTP/1.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::status::Snapshot;

/// How long a whole look may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// More than the state of any sluicegate, and little enough for whatever else answers there.
const MAX_ANSWER: usize = 16 << 20;

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing can be connected to.
    #[error(
        "cannot reach the admin port at {0}: {1}. Is sluicegate running, with this address as its --admin?"
    )]
    Unreachable(String, io::Error),
    /// No answer, or not all of it.
    #[error("no answer from the admin port at {0} within {patience} s", patience = PATIENCE.as_secs())]
    Timeout(String),
    /// The connection broke, or something else answers.
    #[error("{0} does not answer as an admin port does: {1}. Is it the address of sluicegate's --admin?")]
    Strange(String, String),
}

/// Asks one admin port.
#[derive(Debug, Clone)]
pub struct Client {
    address: String,
}

impl Client {
    /// For the admin port at `address`, which is HOST:PORT.
    pub fn new(address: String) -> Self {
        Self { address }
    }

    /// The state now.
    ///
    /// # Errors
    /// What keeps the admin port from being asked; the next look may succeed.
    pub async fn look(&self) -> Result<Snapshot, AskError> {
        let look = timeout(PATIENCE, self.look_unbounded()).await;
        look.unwrap_or_else(|_| Err(AskError::Timeout(self.address.clone())))
    }

    async fn look_unbounded(&self) -> Result<Snapshot, AskError> {
        let unreachable = |error| AskError::Unreachable(self.address.clone(), error);
        let stream = TcpStream::connect(&self.address).await.map_err(unreachable)?;
        let (mut sender, driver) =
            handshake(TokioIo::new(stream)).await.map_err(|error| self.strange(&error))?;
        // It ends with the sender; what goes wrong shows in the requests.
        tokio::spawn(async move { driver.await.ok() });
        let live = self.probe(&mut sender, "/livez").await?;
        let ready = self.probe(&mut sender, "/readyz").await?;
        let senders = match self.get(&mut sender, "/top").await? {
            (StatusCode::OK, body) => Some(self.json("/top", &body)?),
            _ => None,
        };
        let (_, body) = self.get(&mut sender, "/status").await?;
        Ok(Snapshot { status: self.json("/status", &body)?, senders, live, ready })
    }

    async fn probe(
        &self,
        sender: &mut SendRequest<Empty<Bytes>>,
        path: &str,
    ) -> Result<Result<(), String>, AskError> {
        let (status, body) = self.get(sender, path).await?;
        Ok(match status {
            StatusCode::OK => Ok(()),
            _ => Err(String::from_utf8_lossy(&body).trim().to_owned()),
        })
    }

    async fn get(
        &self,
        sender: &mut SendRequest<Empty<Bytes>>,
        path: &str,
    ) -> Result<(StatusCode, Bytes), AskError> {
        let request = Request::get(path).header(header::HOST, &self.address).body(Empty::new());
        let request = request.map_err(|error| self.strange(&error))?;
        sender.ready().await.map_err(|error| self.strange(&error))?;
        let response = sender.send_request(request).await.map_err(|error| self.strange(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        let body = body.map_err(|error| self.strange(&error))?;
        Ok((head.status, body.to_bytes()))
    }

    fn json<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, AskError> {
        serde_json::from_slice(body).map_err(|error| self.strange(&format!("{path}: {error}")))
    }

    fn strange(&self, error: &dyn ToString) -> AskError {
        AskError::Strange(self.address.clone(), error.to_string())
    }
}
