//! TLS under a connection: files, handshake, and what the two sides showed each other.

mod client;
mod explain;
mod stream;
mod verifier;

pub(crate) use client::system_roots;
pub(super) use explain::{Meeting, explain};
pub(super) use stream::Secured;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::dial::{CONNECT_TIMEOUT, DialError};
use crate::config::{Endpoint, Tls};
use crate::tls::Certificate;
use client::Client;

/// What an attempt to connect found out, whether it succeeded or not. All of it is none over plaintext.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The certificate that this side would show.
    pub client: Option<Certificate>,
    /// The certificate that the server showed.
    pub server: Option<Certificate>,
    /// The protocol that both speak, such as `TLSv1_3`.
    pub protocol: Option<String>,
}

/// The name that the endpoint's certificate has to have.
///
/// # Errors
/// When it is neither a DNS name nor an address.
pub(crate) fn server_name(endpoint: &Endpoint, options: &Tls) -> Result<ServerName<'static>, String> {
    let name = if options.server_name.is_empty() { &endpoint.host } else { &options.server_name };
    ServerName::try_from(name.clone())
        .map_err(|_| format!("`{name}` is neither a DNS name nor an IP address"))
}

/// What is encrypted at a time, and then written, bytes: eight records of the largest size (RFC 8446, 5.1).
const ROOM: usize = 128 << 10;

/// Reads the files and shakes hands. The receiver is told of the first thing the peer says afterwards.
pub(super) async fn handshake(
    stream: TcpStream,
    endpoint: &Endpoint,
    options: &Tls,
    seen: &mut Seen,
) -> Result<(Secured, oneshot::Receiver<std::io::Result<()>>), DialError> {
    let name = server_name(endpoint, options).map_err(DialError::Tls)?;
    let reading = tokio::task::spawn_blocking({
        let options = options.clone();
        move || Client::read(&options)
    });
    let read = timeout(CONNECT_TIMEOUT, reading).await.map_err(|_| DialError::Timeout)?;
    let client = read
        .map_err(|error| DialError::Tls(error.to_string()))?
        .map_err(|e| DialError::Tls(e.to_string()))?;
    seen.client = client.own;
    let room = |session: &mut rustls::ClientConnection| session.set_buffer_limit(Some(ROOM));
    let shaking = TlsConnector::from(client.config).connect_with(name, stream, room);
    let result = timeout(CONNECT_TIMEOUT, shaking).await;
    seen.server = client.verifier.seen();
    let stream = result.map_err(|_| DialError::Timeout)?.map_err(|error| {
        let meeting = Meeting { options, server: seen.server.as_ref(), finished: false };
        DialError::Tls(explain(&error, &meeting))
    })?;
    seen.protocol = stream.get_ref().1.protocol_version().map(|version| format!("{version:?}"));
    Ok(Secured::new(stream))
}
