//! One HTTP/2 connection, for as long as it lasts, and then the next one.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http_body_util::Full;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::request::{PUSH_EVENTS, Template};
use super::stream::{self, End};
use super::transport::Transport;
use super::{Backoff, Context, Target};
use crate::books::EndpointBooks;
use crate::config::Endpoint;

/// How long a name look-up may take, and then a connection to all that was found.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection with requests open is asked for a sign of life this often, and given as long to answer: a peer
/// that vanished without a word is noticed within 40 s.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
enum DialError {
    #[error("the name cannot be resolved: {0}")]
    Resolve(io::Error),
    #[error("{0}")]
    Connect(io::Error),
    #[error("no HTTP/2 there: {0}")]
    Handshake(hyper::Error),
    #[error("no answer within {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout,
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
pub(super) async fn keep(target: Target, number: usize, context: Context) {
    let endpoint = &target.endpoint;
    let mut backoff = Backoff::new(context.vector.retry_initial_backoff);
    let mut failing = false;
    for attempt in number.. {
        // No work can come any more: a connection that is down need not be made again.
        let dialled = tokio::select! {
            dialled = dial(endpoint, attempt) => dialled,
            () = context.dismissed() => return,
        };
        match dialled {
            Ok(connection) => {
                info!(%endpoint, connection = number, "connected");
                failing = false;
                let _connected = Connected::new(&target.books);
                match use_up(&connection, &target, &context).await {
                    End::Finished => return,
                    End::Broken { useful: true } => backoff.reset(),
                    End::Broken { useful: false } => {}
                }
            }
            Err(error) => {
                target.books.failed(&error.to_string());
                // Said once for each outage; the log line every ten seconds shows that it lasts.
                if !failing {
                    warn!(%endpoint, connection = number, %error, "cannot connect; trying on");
                }
                failing = true;
            }
        }
        tokio::select! {
            () = sleep(backoff.next(fastrand::f64())) => {}
            () = context.dismissed() => return,
        }
    }
}

/// Counts a connection for as long as it is up, however that ends.
struct Connected<'a>(&'a EndpointBooks);

impl<'a> Connected<'a> {
    fn new(books: &'a EndpointBooks) -> Self {
        books.connected.fetch_add(1, Relaxed);
        Self(books)
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Relaxed);
    }
}

/// Runs the connection's streams until they end. All in one task: they mostly wait, and when it is cancelled,
/// every batch is back in the queue before anybody looks.
async fn use_up(connection: &Connection, target: &Target, context: &Context) -> End {
    let stream = |_| stream::run(connection.clone(), target.clone(), context.clone());
    let ends = join_all((0..context.vector.streams).map(stream)).await;
    ends.into_iter().fold(End::Finished, End::and)
}

async fn dial(endpoint: &Endpoint, attempt: usize) -> Result<Connection, DialError> {
    let template = Template::new(endpoint, PUSH_EVENTS).map_err(DialError::Url)?;
    let stream = connect(endpoint, attempt).await?;
    let transport = Transport::new(stream).map_err(DialError::Connect)?;
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
