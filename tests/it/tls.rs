//! TLS to Vector: what is wrong with a certificate holds events and loses none, and plaintext is never fallen back to.

use std::future::pending;
use std::time::Duration;

use rustls::version::{TLS12, TLS13};
use sluicegate::books::Report;
use sluicegate::config::{Config, Endpoint, Tls};
use sluicegate::load::Sent;
use sluicegate::pipeline::Pipeline;
use sluicegate::push::{DialError, Probe, Seen};
use tokio::net::TcpStream;
use tonic::Code;

use crate::support::scenario::{self, flow_through, load, send};
use crate::support::tls::{Authority, Files, Pair, TlsFront, self_signed, server};
use crate::support::vector::FakeVector;

const BOTH: &[&rustls::SupportedProtocolVersion] = &[&TLS12, &TLS13];

async fn vector() -> FakeVector {
    FakeVector::answering(|_, _| Code::Ok).await
}

fn config(front: &TlsFront, tls: Tls) -> Config {
    let mut config = scenario::config(front.address);
    config.vector.endpoints[0].tls = true;
    config.vector.tls = tls;
    config
}

fn trusting(files: &Files, authority: &Authority) -> Tls {
    Tls { ca_file: Some(files.put("ca.pem", &authority.pem())), ..Tls::default() }
}

fn with_client(files: &Files, pair: &Pair, tls: Tls) -> Tls {
    let (crt, key) = (files.put("client.pem", &pair.crt), files.put("client.key", &pair.key));
    Tls { crt_file: Some(crt), key_file: Some(key), ..tls }
}

/// What both sides show each other while a connection is made.
async fn inspect(endpoint: &Endpoint, tls: &Tls) -> Result<Seen, DialError> {
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.unwrap();
    let mut seen = Seen::default();
    Probe::open(endpoint, tls, stream, &mut seen).await.map(drop)?;
    Ok(seen)
}

/// Why a connection cannot be made, in the words of the log.
async fn refusal(config: &Config) -> String {
    inspect(&config.vector.endpoints[0], &config.vector.tls).await.unwrap_err().to_string()
}

/// Sends while nothing can be delivered, mends that, and stops: everything has arrived, once.
async fn held_until_mended(config: &Config, vector: &FakeVector, mend: impl FnOnce()) -> Report {
    let pipeline = Pipeline::start(config).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let sent = send(load(target, 10_000, 1.0)).await;
    tokio::time::sleep(Duration::from_millis(300)).await; // several attempts
    let held = pipeline.report();
    assert_eq!((held.delivered, held.rejected, held.shed), (0, 0, 0), "{held:?}");
    assert_eq!(vector.received().events, 0);
    assert!(held.balances(), "{held:?}");
    mend();
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    all_arrived(&sent, &report, vector);
    report
}

fn all_arrived(sent: &Sent, report: &Report, vector: &FakeVector) {
    assert_eq!((report.kernel_drops, report.received), (0, sent.sent), "{report:?}");
    assert!(report.balances() && report.in_memory == 0, "{report:?}");
    assert_eq!(report.delivered, sent.sent, "{report:?}");
    assert_eq!(vector.received().numbers.unwrap().unique, sent.sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_ca_is_trusted_under_either_version() {
    let (files, ca) = (Files::new(), Authority::new("our CA"));
    for (versions, name) in [(&[&TLS12][..], "TLSv1_2"), (&[&TLS13][..], "TLSv1_3")] {
        let vector = vector().await;
        let front =
            TlsFront::start(vector.address, server(&ca.sign(&["127.0.0.1", "v"]), None, versions)).await;
        let config = config(&front, trusting(&files, &ca));
        let seen = inspect(&config.vector.endpoints[0], &config.vector.tls).await.unwrap();
        assert_eq!((seen.protocol.as_deref(), seen.client), (Some(name), None));
        let shown = seen.server.unwrap();
        assert_eq!((shown.subject.as_str(), shown.issuer.as_str()), ("CN=leaf", "CN=our CA"));
        assert_eq!(shown.names, ["127.0.0.1", "v"]);
        let (sent, report) = flow_through(config).await;
        all_arrived(&sent, &report, &vector);
        assert_eq!(vector.received().numbers.unwrap().duplicates, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_is_trusted_where_it_is_the_ca_file() {
    let (files, vector, pair) = (Files::new(), vector().await, self_signed(&["127.0.0.1"]));
    let front = TlsFront::start(vector.address, server(&pair, None, BOTH)).await;
    let untrusted = config(&front, trusting(&files, &Authority::new("other CA")));
    let why = refusal(&untrusted).await;
    assert!(why.contains("CN=self") && why.contains("set vector.tls.ca_file to"), "{why}");
    let tls = Tls { ca_file: Some(files.put("self.pem", &pair.crt)), ..Tls::default() };
    let (sent, report) = flow_through(config(&front, tls)).await;
    all_arrived(&sent, &report, &vector);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_ca_holds_until_its_file_is_replaced() {
    let (files, vector, ca) = (Files::new(), vector().await, Authority::new("our CA"));
    let front = TlsFront::start(vector.address, server(&ca.sign(&["127.0.0.1"]), None, BOTH)).await;
    let config = config(&front, trusting(&files, &Authority::new("other CA")));
    let why = refusal(&config).await;
    for part in ["signed by an unknown issuer (CN=our CA)", "ca.pem does not have", "set vector.tls.ca_file"]
    {
        assert!(why.contains(part), "{why}");
    }
    held_until_mended(&config, &vector, || {
        files.put("ca.pem", &ca.pem());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_certificate_holds_until_it_is_renewed() {
    let (files, vector, ca) = (Files::new(), vector().await, Authority::new("our CA"));
    let expired = ca.sign_until(&["127.0.0.1"], (2_020, 1, 2));
    let front = TlsFront::start(vector.address, server(&expired, None, BOTH)).await;
    let config = config(&front, trusting(&files, &ca));
    let why = refusal(&config).await;
    assert!(why.contains("(CN=leaf) expired at 2020-01-02T00:00:00Z"), "{why}");
    let renewed = server(&ca.sign(&["127.0.0.1"]), None, BOTH);
    held_until_mended(&config, &vector, || front.show(renewed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_name_holds_and_two_options_help() {
    let (files, vector, ca) = (Files::new(), vector().await, Authority::new("our CA"));
    let front = TlsFront::start(vector.address, server(&ca.sign(&["v.example"]), None, BOTH)).await;
    let strict = trusting(&files, &ca);
    let config_of = |tls: &Tls| config(&front, tls.clone());
    let why = refusal(&config_of(&strict)).await;
    assert!(why.contains("is for v.example and not for 127.0.0.1"), "{why}");
    let right = server(&ca.sign(&["127.0.0.1"]), None, BOTH);
    held_until_mended(&config_of(&strict), &vector, || front.show(right)).await;

    front.show(server(&ca.sign(&["v.example"]), None, BOTH));
    let named = Tls { server_name: "v.example".into(), ..strict.clone() };
    let unnamed = Tls { verify_hostname: false, ..strict.clone() };
    let unverified = Tls { verify_certificate: false, ..Tls::default() };
    for tls in [named, unnamed, unverified] {
        assert!(inspect(&config_of(&tls).vector.endpoints[0], &tls).await.is_ok(), "{tls:?}");
    }
    front.show(server(&Authority::new("other CA").sign(&["v.example"]), None, BOTH));
    let why = refusal(&config_of(&Tls { verify_hostname: false, ..strict })).await;
    assert!(why.contains("unknown issuer (CN=other CA)"), "the CA still matters: {why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn vector_may_demand_a_client_certificate() {
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let (files, vector, ca) = (Files::new(), vector().await, Authority::new("our CA"));
        let clients = Authority::new("clients' CA");
        let demanding = server(&ca.sign(&["127.0.0.1"]), Some(&clients), versions);
        let front = TlsFront::start(vector.address, demanding).await;
        let without = config(&front, trusting(&files, &ca));
        let why = refusal(&without).await;
        assert!(why.contains("set vector.tls.crt_file and vector.tls.key_file"), "{why}");

        let wrong = with_client(&files, &ca.sign(&["client"]), trusting(&files, &ca));
        let config = config(&front, wrong);
        let why = refusal(&config).await;
        assert!(why.contains("refused the client certificate in vector.tls.crt_file"), "{why}");
        let right = clients.sign(&["client"]);
        held_until_mended(&config, &vector, || {
            files.put("client.key", &right.key); // for a moment they do not fit each other
            files.put("client.pem", &right.crt);
        })
        .await;
        let seen = inspect(&config.vector.endpoints[0], &config.vector.tls).await.unwrap();
        assert_eq!(seen.client.unwrap().issuer, "CN=clients' CA");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_rotated_while_running() {
    let (files, vector) = (Files::new(), vector().await);
    let (old, new) = (Authority::new("old CA"), Authority::new("new CA"));
    let front = TlsFront::start(vector.address, server(&old.sign(&["127.0.0.1"]), None, BOTH)).await;
    let config = config(&front, trusting(&files, &old));
    let pipeline = Pipeline::start(&config).unwrap();
    let target = pipeline.addresses().next().unwrap();
    let delivered = async |at_least: u64| {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        while pipeline.report().delivered < at_least {
            assert!(tokio::time::Instant::now() < deadline, "{:?}", pipeline.report());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let first = send(load(target, 10_000, 0.5)).await.sent;
    delivered(first).await;

    let open = front.connections();
    files.put("ca.pem", "rubbish");
    front.show(server(&new.sign(&["127.0.0.1"]), None, BOTH));
    let second = send(load(target, 10_000, 0.5)).await.sent;
    delivered(first + second).await;
    assert_eq!(front.connections(), open, "connections keep the session that they have");

    front.cut_connections();
    let third = send(load(target, 10_000, 0.5)).await.sent;
    let held = pipeline.report();
    assert_eq!(held.delivered, first + second, "rubbish holds: {held:?}");
    let why = refusal(&config).await;
    assert!(why.contains("ca.pem has no certificate in PEM"), "{why}");
    files.put("ca.pem", &format!("{}{}", old.pem(), new.pem()));
    delivered(first + second + third).await;
    let report = pipeline.stop(config.shutdown_timeout, pending()).await;
    assert!(report.balances() && report.in_memory == 0 && report.shed == 0, "{report:?}");
    assert_eq!(vector.received().events, first + second + third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plaintext_receiver_never_gets_an_event_from_an_https_url() {
    let (files, vector, ca) = (Files::new(), vector().await, Authority::new("our CA"));
    let front = TlsFront::start(vector.address, None).await;
    for tls in [trusting(&files, &ca), Tls { verify_certificate: false, ..Tls::default() }] {
        let why = refusal(&config(&front, tls)).await;
        assert!(why.contains("tls.enabled = true"), "{why}");
    }
    let mended = server(&ca.sign(&["127.0.0.1"]), None, BOTH);
    held_until_mended(&config(&front, trusting(&files, &ca)), &vector, || front.show(mended)).await;
    let heard = front.heard();
    assert_eq!(heard.first(), Some(&0x16), "a TLS handshake record (RFC 8446, 5.1)");
    let has = |text: &[u8]| memchr::memmem::find(&heard, text).is_some();
    assert!(!has(b"seq=") && !has(b"PRI * HTTP/2.0"), "{} bytes", heard.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_with_tls_gets_nothing_over_an_http_url() {
    let (files, vector, ca) = (Files::new(), vector().await, Authority::new("our CA"));
    let front = TlsFront::start(vector.address, server(&ca.sign(&["127.0.0.1"]), None, BOTH)).await;
    let mut config = config(&front, trusting(&files, &ca));
    config.vector.endpoints[0].tls = false;
    held_until_mended(&config, &vector, || {
        front.show(None);
        front.cut_connections();
    })
    .await;
}
