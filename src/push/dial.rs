//! Making a connection: TCP, TLS where the URL says so, HTTP/2.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::client::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::gather::Bodies;
use super::request::{Caller, PUSH_EVENTS, Template};
use super::tls::{self, Meeting, Seen, explain};
use super::transport::Transport;
use super::wire::Wire;
use crate::config::{Endpoint, Tls};

/// How long a name look-up may take, and then a connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection with requests open is asked for a sign of life this often, and given as long to answer: a peer
/// that vanished without a word is noticed within 40 s.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The resolver's answer.
    #[error("the name cannot be resolved: {0}")]
    Resolve(io::Error),
    /// The kernel's answer.
    #[error("{0}")]
    Connect(io::Error),
    /// A file is of no use, or one side does not like what the other shows; says what to do.
    #[error("{0}")]
    Tls(String),
    /// Something that is no HTTP/2.
    #[error("no HTTP/2 there: {0}")]
    Handshake(hyper::Error),
    /// Nobody answered.
    #[error("no answer within {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout,
    /// The host's name.
    #[error("it cannot be part of a URL: {0}")]
    Url(http::Error),
}

/// A live connection, as its streams see it.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) caller: Caller,
    pub(super) template: Template,
    /// True once the connection is to be given up: streams finish what they have and take no more.
    pub(super) broken: watch::Sender<bool>,
    pub(super) failing: Failing,
}

/// Since when all requests of a connection have failed.
#[derive(Debug, Clone, Default)]
pub(super) struct Failing(Arc<Mutex<Option<Instant>>>);

impl Failing {
    /// Notes a failure; true when there were only failures for this long.
    pub(super) fn lasts(&self, long: Duration) -> bool {
        self.lock().get_or_insert_with(Instant::now).elapsed() >= long
    }

    /// Notes a success.
    pub(super) fn ends(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) async fn dial(
    endpoint: &Endpoint,
    address: SocketAddr,
    tls: &Tls,
    seen: &mut Seen,
) -> Result<Connection, DialError> {
    let template = Template::new(endpoint, PUSH_EVENTS).map_err(DialError::Url)?;
    let connecting = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let stream = connecting.map_err(|_| DialError::Timeout)?.map_err(DialError::Connect)?;
    let (caller, broken) = speak(stream, endpoint, tls, seen).await?;
    Ok(Connection { caller, template, broken, failing: Failing::default() })
}

/// HTTP/2 over a connected stream, and TLS beneath it where the endpoint's URL says so. The flag is true once the
/// connection has ended.
pub(super) async fn speak(
    stream: TcpStream,
    endpoint: &Endpoint,
    tls: &Tls,
    seen: &mut Seen,
) -> Result<(Caller, watch::Sender<bool>), DialError> {
    let (wire, heard) = match endpoint.tls {
        false => (Wire::Plain(stream), None),
        true => {
            let (secured, heard) = tls::handshake(stream, endpoint, tls, seen).await?;
            (Wire::Tls(Box::new(secured)), Some(heard))
        }
    };
    let bodies = Bodies::default();
    let transport = Transport::new(wire, bodies.clone()).map_err(DialError::Connect)?;
    let (sender, driver) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .handshake(TokioIo::new(transport))
        .await
        .map_err(DialError::Handshake)?;
    let broken = watch::Sender::new(false);
    let ended = Ended(broken.clone());
    tokio::spawn(async move {
        // The driver ends when the peer is gone or says goodbye; its streams learn the reason from their requests.
        driver.await.ok();
        drop(ended);
    });
    if let Some(heard) = heard {
        let heard = timeout(CONNECT_TIMEOUT, heard).await.map_err(|_| DialError::Timeout)?;
        // It is dropped when writing failed before anything was read.
        heard.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())).map_err(|error| {
            let meeting = Meeting { options: tls, server: seen.server.as_ref(), finished: true };
            DialError::Tls(explain(&error, &meeting))
        })?;
    }
    Ok((Caller::new(sender, bodies), broken))
}

/// Tells a connection's streams that its driver has ended, even by a panic.
struct Ended(watch::Sender<bool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}
