//! One HTTP/2 connection, for as long as it lasts, and then the next one.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use futures_util::future::join_all;
use http_body_util::Full;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::request::Template;
use super::stream::{self, End};
use super::tls::{self, Meeting, Seen, explain};
use super::transport::Transport;
use super::wire::Wire;
use super::{Backoff, Context};
use crate::books::{Certificates, Holder};
use crate::config::{Endpoint, Tls};
use crate::tls::shown_time;

/// How long a name look-up may take, and then a connection to all that was found.
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
    /// The kernel's answer, for the last address that was tried.
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
    pub(super) sender: SendRequest<Full<Bytes>>,
    pub(super) template: Template,
    /// True once the connection is to be given up: streams finish what they have and take no more.
    pub(super) broken: watch::Sender<bool>,
}

/// Keeps a connection to the endpoint until all work is done.
pub(super) async fn keep(endpoint: Endpoint, number: usize, context: Context) {
    let mut backoff = Backoff::new(context.vector.retry_initial_backoff);
    let mut failing = None;
    for attempt in number.. {
        // No work can come any more: a connection that is down need not be made again.
        let mut seen = Seen::default();
        let dialled = tokio::select! {
            dialled = dial(&endpoint, attempt, &context.vector.tls, &mut seen) => dialled,
            () = context.queue.finished() => return,
        };
        note(&seen, &endpoint, &context.books.push.certificates);
        match dialled {
            Ok(connection) => {
                info!(%endpoint, connection = number, "connected");
                failing = None;
                match use_up(&connection, &endpoint, &context).await {
                    End::Finished => return,
                    End::Broken { useful: true } => backoff.reset(),
                    End::Broken { useful: false } => {}
                }
            }
            // Said once for each cause of an outage; the log line every ten seconds shows that it lasts.
            Err(error) => {
                let error = error.to_string();
                if failing.as_ref() != Some(&error) {
                    warn!(%endpoint, connection = number, error, "cannot connect; trying on");
                    failing = Some(error);
                }
            }
        }
        tokio::select! {
            () = sleep(backoff.next(fastrand::f64())) => {}
            () = context.queue.finished() => return,
        }
    }
}

/// Runs the connection's streams until they end. All in one task: they mostly wait, and when it is cancelled,
/// every batch is back in the queue before anybody looks.
async fn use_up(connection: &Connection, endpoint: &Endpoint, context: &Context) -> End {
    let stream = |_| stream::run(connection.clone(), endpoint.clone(), context.clone());
    let ends = join_all((0..context.vector.streams).map(stream)).await;
    ends.into_iter().fold(End::Finished, End::and)
}

/// Connects to an endpoint as `run` does, up to the first sign of its HTTP/2 where there is TLS, and hangs up. Nothing
/// is pushed. Use [`Seen::server`] for the certificate's subject, names and expiry; over plaintext there is nothing to see.
///
/// # Errors
/// What `run` would log, in one line that says what to do.
pub async fn inspect(endpoint: &Endpoint, tls: &Tls) -> Result<Seen, DialError> {
    let mut seen = Seen::default();
    dial(endpoint, 0, tls, &mut seen).await.map(drop)?;
    Ok(seen)
}

fn note(seen: &Seen, endpoint: &Endpoint, certificates: &Certificates) {
    let ours = seen.client.as_ref().map(|certificate| (Holder::Client, "", certificate));
    let name = endpoint.to_string();
    let theirs = seen.server.as_ref().map(|certificate| (Holder::Server, name.as_str(), certificate));
    for (holder, place, certificate) in ours.into_iter().chain(theirs) {
        let now = Utc::now();
        if certificates.note(holder, place, certificate.expires, now) {
            let what = if certificate.expires < now { "has expired" } else { "expires within 14 days" };
            let (which, expires) = (holder.name(), shown_time(certificate.expires));
            let subject = &certificate.subject;
            warn!(%endpoint, which, subject, expires, "a certificate {what}: renew it");
        }
    }
}

async fn dial(
    endpoint: &Endpoint,
    attempt: usize,
    tls: &Tls,
    seen: &mut Seen,
) -> Result<Connection, DialError> {
    let template = Template::new(endpoint).map_err(DialError::Url)?;
    let stream = connect(endpoint, attempt).await?;
    let (wire, heard) = match endpoint.tls {
        false => (Wire::Plain(stream), None),
        true => {
            let (secured, heard) = tls::handshake(stream, endpoint, tls, seen).await?;
            (Wire::Tls(Box::new(secured)), Some(heard))
        }
    };
    let transport = Transport::new(wire).map_err(DialError::Connect)?;
    let (sender, driver) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .handshake(TokioIo::new(transport))
        .await
        .map_err(DialError::Handshake)?;
    let broken = watch::Sender::new(false);
    let signal = broken.clone();
    tokio::spawn(async move {
        // The driver ends when the peer is gone or says goodbye; its streams learn the reason from their requests.
        driver.await.ok();
        signal.send_replace(true);
    });
    if let Some(heard) = heard {
        let heard = timeout(CONNECT_TIMEOUT, heard).await.map_err(|_| DialError::Timeout)?;
        // It is dropped when writing failed before anything was read.
        heard.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())).map_err(|error| {
            let meeting = Meeting { options: tls, server: seen.server.as_ref(), finished: true };
            DialError::Tls(explain(&error, &meeting))
        })?;
    }
    Ok(Connection { sender, template, broken })
}

/// Connects to one of the addresses behind the name, looked up anew each time. Different connections, and different
/// attempts, begin with different ones; one that swallows packets does not use up the others' time.
async fn connect(endpoint: &Endpoint, attempt: usize) -> Result<TcpStream, DialError> {
    let look_up = lookup_host((endpoint.host.as_str(), endpoint.port));
    let found = timeout(CONNECT_TIMEOUT, look_up).await.map_err(|_| DialError::Timeout)?;
    let addresses: Vec<_> = found.map_err(DialError::Resolve)?.collect();
    let mut last = DialError::Connect(io::Error::new(io::ErrorKind::NotFound, "no address behind the name"));
    for i in 0..addresses.len() {
        let address = addresses[(attempt + i) % addresses.len()];
        match timeout(CONNECT_TIMEOUT / addresses.len() as u32, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = DialError::Connect(error),
            Err(_) => last = DialError::Timeout,
        }
    }
    Err(last)
}
