//! The admin port: metrics, health and state, on a thread and runtime of its own.
//!
//! In: a [`View`] of the running pipeline. Out: HTTP (`/metrics`, `/livez`, `/readyz`, `/status`, `/top`, `/config`) and gRPC
//! health (`grpc.health.v1`, services ``, `liveness`, `readiness`) on one port. Whatever happens here, datagrams go on.

mod health;
mod serve;

pub use health::{Health, Progress, WorkerState};

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::{Notify, Semaphore};
use tonic::service::Routes;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::config::show;
use crate::metrics;
use crate::view::View;

/// How often health is looked at for those who watch it over gRPC.
const LOOK: Duration = Duration::from_secs(1);

/// What handlers share.
#[derive(Clone)]
struct Shared {
    view: Arc<View>,
    progress: Arc<Mutex<Progress>>,
}

impl Shared {
    fn health(&self) -> Health {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.look(Instant::now(), &self.view.worker_states(), self.view.readiness())
    }
}

/// The admin port of this process.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    close: Arc<Notify>,
    places: Arc<Semaphore>,
}

impl Admin {
    /// Its descriptor, for a successor.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn offer(&self) -> io::Result<(SocketAddr, OwnedFd)> {
        Ok((self.listener.local_addr()?, self.listener.try_clone()?.into()))
    }

    /// Waits until those who have asked are answered, for a second at the most: some keep their connections.
    pub async fn answered(&self) {
        let all = self.places.acquire_many(serve::MOST as u32);
        tokio::time::timeout(Duration::from_secs(1), all).await.ok();
    }

    /// Takes no more connections; those that are open go on.
    pub fn close(&self) {
        self.close.notify_one();
    }
}

/// Serves on `listener` until the process ends.
///
/// # Errors
/// When the machine is out of threads or descriptors.
pub fn start(listener: TcpListener, view: Arc<View>) -> io::Result<Admin> {
    listener.set_nonblocking(true)?;
    let places = Arc::new(Semaphore::new(serve::MOST));
    let admin = Admin { listener: listener.try_clone()?, close: Arc::default(), places };
    let (close, places) = (Arc::clone(&admin.close), Arc::clone(&admin.places));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = move || {
        let served = runtime.block_on(serve(listener, view, &close, places));
        if let Err(error) = served {
            tracing::error!(%error, "the admin port is gone; datagrams go on");
        }
    };
    thread::Builder::new().name("admin".into()).spawn(serve)?;
    Ok(admin)
}

async fn serve(
    listener: TcpListener,
    view: Arc<View>,
    close: &Notify,
    places: Arc<Semaphore>,
) -> io::Result<()> {
    let shared = Shared { view, progress: Arc::default() };
    let (reporter, service) = tonic_health::server::health_reporter();
    tokio::spawn(keep_reporting(reporter, shared.clone()));
    let http = Router::new()
        .route("/metrics", get(scrape))
        .route("/livez", get(live))
        .route("/readyz", get(ready))
        .route("/status", get(status))
        .route("/top", get(top))
        .route("/config", get(config))
        .with_state(shared);
    let router = Routes::new(service).into_axum_router().merge(http).layer(from_fn(not_found));
    tokio::select! {
        () = serve::serve(tokio::net::TcpListener::from_std(listener)?, router, places) => {}
        () = close.notified() => {}
    }
    // The runtime is what open connections go on in.
    std::future::pending().await
}

async fn keep_reporting(reporter: HealthReporter, shared: Shared) {
    let serving = |right: bool| if right { ServingStatus::Serving } else { ServingStatus::NotServing };
    let mut tick = tokio::time::interval(LOOK);
    loop {
        tick.tick().await;
        let health = shared.health();
        reporter.set_service_status("", serving(health.is_live() && health.is_ready())).await;
        reporter.set_service_status("liveness", serving(health.is_live())).await;
        reporter.set_service_status("readiness", serving(health.is_ready())).await;
    }
}

/// tonic answers unknown paths in gRPC's way, which a browser or curl takes for success.
async fn not_found(request: Request, next: Next) -> Response {
    let speaks_grpc = |headers: &HeaderMap| {
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
    };
    let asked_in_grpc = speaks_grpc(request.headers());
    let response = next.run(request).await;
    match speaks_grpc(response.headers()) && !asked_in_grpc {
        true => (StatusCode::NOT_FOUND, "there are /metrics, /livez, /readyz, /status, /top and /config\n")
            .into_response(),
        false => response,
    }
}

async fn scrape(State(shared): State<Shared>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        shared.view.snapshot(metrics::render),
    )
}

async fn live(State(shared): State<Shared>) -> Response {
    answer(shared.health().live)
}

async fn ready(State(shared): State<Shared>) -> Response {
    answer(shared.health().ready)
}

async fn status(State(shared): State<Shared>) -> impl IntoResponse {
    Json(shared.view.status())
}

async fn top(State(shared): State<Shared>) -> impl IntoResponse {
    Json(shared.view.top())
}

async fn config(State(shared): State<Shared>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/toml")], show::to_toml(&shared.view.config()))
}

fn answer(health: Result<(), String>) -> Response {
    match health {
        Ok(()) => (StatusCode::OK, "ok\n").into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}
