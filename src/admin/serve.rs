//! Connections to the admin port: few, and none that only sits there. File descriptors belong to datagrams.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Connections at once; more wait in the kernel.
pub(super) const MOST: usize = 64;

/// A client that has not sent its request's head by then is let go.
const PATIENCE: Duration = Duration::from_secs(5);

/// Those who watch health over HTTP/2 are asked for a sign of life this often.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// How long to wait when the machine is out of file descriptors.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Serves for ever. Each connection has a place for as long as it is open.
pub(super) async fn serve(listener: TcpListener, router: Router, places: Arc<Semaphore>) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .max_concurrent_streams(100);
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(AFTER_ERROR).await;
            continue;
        };
        let (builder, service) = (builder.clone(), TowerToHyperService::new(router.clone()));
        tokio::spawn(async move {
            // A client's fault is the client's business.
            builder.serve_connection(TokioIo::new(stream), service).await.ok();
            drop(place);
        });
    }
}
