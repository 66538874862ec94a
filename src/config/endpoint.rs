//! A Vector to push to.

use std::fmt;
use std::str::FromStr;

/// A `vector` source's address, from a URL such as `http://127.0.0.1:6000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// TLS (`https`), or plaintext (`http`). The one is never tried for the other.
    pub tls: bool,
    /// Name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Endpoint {
    /// A Vector on this machine, without TLS.
    pub fn here(port: u16) -> Self {
        Self { tls: false, host: "127.0.0.1".into(), port }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid =
            |why: &str| format!("`{text}` is no Vector endpoint: {why}, such as http://127.0.0.1:6000");
        let uri: http::Uri = text.parse().map_err(|_| invalid("write a URL"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(invalid("begin it with http://, or with https:// for TLS")),
        };
        if !matches!(uri.path_and_query().map(http::uri::PathAndQuery::as_str), None | Some("" | "/")) {
            return Err(invalid("leave the path out"));
        }
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            return Err(invalid("it cannot have credentials"));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        if has_port && uri.port_u16().is_none_or(|port| port == 0) {
            return Err(invalid("its port has to be 1 to 65535"));
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| invalid("name a host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { tls, host, port: uri.port_u16().unwrap_or(6_000) })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}
