//! A Vector-protocol server: what a `vector` source looks like from outside.
//!
//! In: `PushEvents` requests, decoded with prost's types and so a check on the direct encoder. Out: whatever its
//! [`Sink`] makes of the events. It answers OK only once the sink has taken them.

mod json;
mod numbers;
mod sinks;
mod tls;

pub use json::event_to_json;
pub use numbers::{Numbers, NumbersReport};
pub use sinks::{Counter, JsonLines, Received, Sink};
pub use tls::{Files, Tls};

use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tonic::codec::CompressionEncoding;
use tonic::transport::server::{Server, TcpIncoming};
use tonic::{Request, Response, Status};

use crate::proto::vector::vector_server::{Vector, VectorServer};
use crate::proto::vector::{
    HealthCheckRequest, HealthCheckResponse, PushEventsRequest, PushEventsResponse, ServingStatus,
};

/// The largest request taken, bytes: the cap of a recent Vector.
const MAX_REQUEST: usize = 100 << 20;

struct Service<S> {
    sink: Arc<S>,
}

#[tonic::async_trait]
impl<S: Sink> Vector for Service<S> {
    async fn push_events(
        &self,
        request: Request<PushEventsRequest>,
    ) -> Result<Response<PushEventsResponse>, Status> {
        let events = request.into_inner().events;
        // A sink may block, as on a pipe that nobody reads: not on a thread that serves others.
        let sink = Arc::clone(&self.sink);
        let taken = tokio::task::spawn_blocking(move || sink.take(events)).await;
        let failed = |error: &dyn std::fmt::Display| Status::internal(format!("the sink failed: {error}"));
        taken.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        Ok(Response::new(PushEventsResponse {}))
    }

    async fn health_check(
        &self,
        _request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving.into() }))
    }
}

/// Serves until `stop` completes, then finishes what is in flight.
///
/// # Errors
/// When the server cannot run.
pub async fn serve<S: Sink>(
    listener: TcpListener,
    sink: Arc<S>,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    serve_by(Server::builder(), listener, sink, stop).await
}

/// As [`serve`], over TLS only.
///
/// # Errors
/// When the server cannot run.
pub async fn serve_tls<S: Sink>(
    listener: TcpListener,
    tls: Tls,
    sink: Arc<S>,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    serve_by(Server::builder().tls_config(tls.0)?, listener, sink, stop).await
}

async fn serve_by<S: Sink>(
    mut server: Server,
    listener: TcpListener,
    sink: Arc<S>,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let vector = VectorServer::new(Service { sink })
        .max_decoding_message_size(MAX_REQUEST)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Zstd);
    health.set_serving::<VectorServer<Service<S>>>().await;
    server
        .add_service(health_service)
        .add_service(vector)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(false)), stop)
        .await
}

/// Binds a receiver's address.
///
/// # Errors
/// The kernel's.
pub async fn bind(address: &str) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}
