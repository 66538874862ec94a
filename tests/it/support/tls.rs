//! Certificates made on the spot, and a port that speaks TLS in front of a Vector, as a test wants it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Pair {
    pub crt: String,
    pub key: String,
}

fn params(name: &str, names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = params(name, &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn sign(&self, names: &[&str]) -> Pair {
        self.sign_until(names, (4_000, 1, 1))
    }

    /// One that expires at the beginning of a day.
    pub fn sign_until(&self, names: &[&str], (year, month, day): (i32, u8, u8)) -> Pair {
        let mut params = params("leaf", names);
        params.not_before = date_time_ymd(2_019, 1, 1);
        params.not_after = date_time_ymd(year, month, day);
        let key = KeyPair::generate().unwrap();
        Pair { crt: params.signed_by(&key, &self.0).unwrap().pem(), key: key.serialize_pem() }
    }
}

/// A certificate that is its own CA, as `openssl req -x509` makes them.
pub fn self_signed(names: &[&str]) -> Pair {
    let mut params = params("self", names);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    Pair { crt: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

/// Files in a directory that goes with it.
pub struct Files(TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// What `/etc/sluicegate` has where TLS is set up: `ca.pem`, `client.pem` and `client.key`.
    pub fn etc() -> Self {
        let (files, authority) = (Self::new(), Authority::new("CA"));
        let client = authority.sign(&["client"]);
        files.put("ca.pem", &authority.pem());
        files.put("client.pem", &client.crt);
        files.put("client.key", &client.key);
        files
    }

    /// Puts a file there at once, as one that is renamed into place.
    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let (new, path) = (self.path().join(format!("{name}.new")), self.path().join(name));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &path).unwrap();
        path
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// What a server shows, and whose clients it takes; anybody's when none.
pub fn server(
    pair: &Pair,
    clients: Option<&Authority>,
    versions: &[&'static SupportedProtocolVersion],
) -> Option<Arc<ServerConfig>> {
    let provider = Arc::new(ring::default_provider());
    let certificates = CertificateDer::pem_slice_iter(pair.crt.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_protocol_versions(versions).unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let mut config = builder.with_single_cert(certificates, key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Some(Arc::new(config))
}

/// A port in front of a plaintext Vector, whose certificate can be changed while it runs.
pub struct TlsFront {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    vector: SocketAddr,
    shows: Mutex<Option<Arc<ServerConfig>>>,
    open: Mutex<Vec<AbortHandle>>,
    accepted: AtomicU64,
    heard: Mutex<Vec<u8>>,
}

impl TlsFront {
    /// Shows nothing, and so speaks plaintext, when `shows` is none.
    pub async fn start(vector: SocketAddr, shows: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = Arc::new(State {
            vector,
            shows: Mutex::new(shows),
            open: Mutex::default(),
            accepted: AtomicU64::new(0),
            heard: Mutex::default(),
        });
        let front = Self { address: listener.local_addr().unwrap(), state: Arc::clone(&state) };
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                state.accepted.fetch_add(1, SeqCst);
                let serving = tokio::spawn(serve(stream, Arc::clone(&state)));
                state.open.lock().unwrap().push(serving.abort_handle());
            }
        });
        front
    }

    /// New connections meet this; those that are open stay as they are.
    pub fn show(&self, shows: Option<Arc<ServerConfig>>) {
        *self.state.shows.lock().unwrap() = shows;
    }

    pub fn cut_connections(&self) {
        self.state.open.lock().unwrap().drain(..).for_each(|open| open.abort());
    }

    pub fn connections(&self) -> u64 {
        self.state.accepted.load(SeqCst)
    }

    /// Every byte that came while it spoke plaintext.
    pub fn heard(&self) -> Vec<u8> {
        self.state.heard.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, state: Arc<State>) {
    let mut behind = TcpStream::connect(state.vector).await.unwrap();
    let shows = state.shows.lock().unwrap().clone();
    if let Some(config) = shows {
        let Ok(mut stream) = TlsAcceptor::from(config).accept(stream).await else { return };
        copy_bidirectional(&mut stream, &mut behind).await.ok();
        return;
    }
    let (mut from_client, mut to_client) = stream.into_split();
    let (mut from_vector, mut to_vector) = behind.into_split();
    tokio::spawn(async move { copy(&mut from_vector, &mut to_client).await.ok() });
    let mut buffer = vec![0; 4_096];
    while let Ok(length @ 1..) = from_client.read(&mut buffer).await {
        state.heard.lock().unwrap().extend(&buffer[..length]);
        if to_vector.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
