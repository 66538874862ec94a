//! A look at an endpoint as the pushers will meet it, with no queue behind it: for `check`.

use prost::Message;
use tokio::net::TcpStream;
use tonic::{Code, Status};

use super::dial::{DialError, speak};
use super::request::{Caller, HEALTH_CHECK, PUSH_EVENTS, Template};
use super::stream::with_causes;
use super::tls::Seen;
use crate::batch::{PREFIX, framed};
use crate::config::{Endpoint, Tls};
use crate::proto::vector::{HealthCheckResponse, PushEventsRequest, ServingStatus};

/// What an endpoint says of itself.
#[derive(Debug, Clone)]
pub enum Health {
    /// It takes events.
    Serving,
    /// It is there and takes none.
    NotServing,
    /// It speaks gRPC or HTTP/2, but this is no answer of a `vector` source's.
    Other(Status),
}

/// A connection to an endpoint.
#[derive(Debug)]
pub struct Probe {
    caller: Caller,
    endpoint: Endpoint,
}

impl Probe {
    /// Speaks HTTP/2 over a connected stream, with TLS beneath it where the URL says so. What the two sides show each
    /// other is put into `seen`, whether it succeeds or not.
    ///
    /// # Errors
    /// What `run` would log, in one line.
    pub async fn open(
        endpoint: &Endpoint,
        tls: &Tls,
        stream: TcpStream,
        seen: &mut Seen,
    ) -> Result<Self, DialError> {
        let (caller, _) = speak(stream, endpoint, tls, seen).await?; // requests tell why it ended
        Ok(Self { caller, endpoint: endpoint.clone() })
    }

    /// Vector's own health check, which every `vector` source answers.
    ///
    /// # Errors
    /// Why there is no answer, in words.
    pub async fn health(&mut self) -> Result<Health, String> {
        let (status, message) = self.call(HEALTH_CHECK, &[]).await?;
        if status.code() != Code::Ok {
            return Ok(Health::Other(status));
        }
        let message = message.get(PREFIX..).unwrap_or_default();
        let response = HealthCheckResponse::decode(message).map_err(|error| error.to_string())?;
        Ok(match response.status() {
            ServingStatus::Serving => Health::Serving,
            ServingStatus::NotServing => Health::NotServing,
        })
    }

    /// Pushes a request; the answer is what a sink behind it made of the events.
    ///
    /// # Errors
    /// Why there is no answer, in words; it may have arrived all the same.
    pub async fn push(&mut self, request: &PushEventsRequest) -> Result<Status, String> {
        self.call(PUSH_EVENTS, &request.encode_to_vec()).await.map(|(status, _)| status)
    }

    async fn call(&mut self, path: &str, message: &[u8]) -> Result<(Status, Vec<u8>), String> {
        let template = Template::new(&self.endpoint, path).map_err(|error| error.to_string())?;
        self.caller.call(&template, framed(message).into(), None).await.map_err(|error| with_causes(&error))
    }
}
