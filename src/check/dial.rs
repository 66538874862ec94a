//! Endpoints looked at over the network, each stage in a box of time.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout};
use tonic::Status;

use crate::config::{Endpoint, Tls, Vector};
use crate::proto::event::event_wrapper::Event;
use crate::proto::event::value::Kind;
use crate::proto::event::{EventWrapper, Log, Value};
use crate::proto::vector::PushEventsRequest;
use crate::push::{Health, Probe, Seen};

/// How long one stage may take.
const STAGE: Duration = Duration::from_secs(3);

/// How long all of an endpoint's stages may take.
const WHOLE: Duration = Duration::from_secs(9);

/// What came of a question, or why there is no answer, in words.
pub(super) type Answer<T> = Result<T, String>;

/// What is known of an endpoint.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) endpoint: Endpoint,
    pub(super) resolved: Answer<Vec<SocketAddr>>,
    /// In the order of the addresses.
    pub(super) dialled: Vec<Dialled>,
    /// What came of the test event, and how long it took; none where none was sent.
    pub(super) sent: Option<Answer<(Status, Duration)>>,
}

/// What is known of one of its addresses.
#[derive(Debug, Clone)]
pub(super) struct Dialled {
    pub(super) address: SocketAddr,
    /// How long it took.
    pub(super) connected: Answer<Duration>,
    /// What both sides showed each other, or why they did not agree; none over plaintext.
    pub(super) tls: Option<Answer<Seen>>,
    /// None where there is no connection.
    pub(super) health: Option<Answer<Health>>,
}

/// Looks at all of them at once. With `send`, a test event goes to each.
pub(super) async fn look(vector: Vector, send: bool) -> Vec<Facts> {
    let tls = &vector.tls;
    join_all(vector.endpoints.into_iter().map(|endpoint| look_at(endpoint, tls, send))).await
}

async fn look_at(endpoint: Endpoint, tls: &Tls, send: bool) -> Facts {
    let end = Instant::now() + WHOLE;
    let mut facts =
        Facts { resolved: resolve(&endpoint, end).await, endpoint, dialled: Vec::new(), sent: None };
    let addresses = facts.resolved.as_deref().unwrap_or_default();
    let dialled = join_all(addresses.iter().map(|address| dial(&facts.endpoint, tls, *address, end))).await;
    let mut healthy = None;
    for (dialled, probe) in dialled {
        if healthy.is_none() && matches!(dialled.health, Some(Ok(Health::Serving))) {
            healthy = probe;
        }
        facts.dialled.push(dialled);
    }
    if let Some(probe) = healthy.as_mut().filter(|_| send) {
        let start = Instant::now();
        let sent = boxed(end, probe.push(&test_event(SystemTime::now()))).await;
        facts.sent = Some(sent.flatten().map(|status| (status, start.elapsed())));
    }
    facts
}

async fn resolve(endpoint: &Endpoint, end: Instant) -> Answer<Vec<SocketAddr>> {
    let looked_up = boxed(end, lookup_host((endpoint.host.as_str(), endpoint.port))).await?;
    let mut addresses: Vec<_> =
        looked_up.map_err(|error| format!("the name cannot be resolved: {error}"))?.collect();
    addresses.sort_unstable();
    addresses.dedup();
    match addresses.is_empty() {
        true => Err("no address behind the name".to_owned()),
        false => Ok(addresses),
    }
}

async fn dial(endpoint: &Endpoint, tls: &Tls, address: SocketAddr, end: Instant) -> (Dialled, Option<Probe>) {
    let start = Instant::now();
    let words = |error: io::Error| error.to_string();
    let stream = boxed(end, TcpStream::connect(address)).await.and_then(|stream| stream.map_err(words));
    let time = start.elapsed();
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => return (Dialled { address, connected: Err(error), tls: None, health: None }, None),
    };
    let mut seen = Seen::default();
    let opened = boxed(end, Probe::open(endpoint, tls, stream, &mut seen)).await;
    let opened = opened.and_then(|opened| opened.map_err(|error| error.to_string()));
    let dialled = |tls, health| Dialled { address, connected: Ok(time), tls, health };
    let mut probe = match opened {
        Ok(probe) => probe,
        Err(error) if endpoint.tls => return (dialled(Some(Err(error)), None), None),
        Err(error) => return (dialled(None, Some(Err(error))), None),
    };
    let tls = endpoint.tls.then_some(Ok(seen));
    match boxed(end, probe.health()).await.flatten() {
        Ok(health) => (dialled(tls, Some(Ok(health))), Some(probe)),
        Err(error) => (dialled(tls, Some(Err(error))), None),
    }
}

/// What the future gives within its box of time.
async fn boxed<T>(end: Instant, future: impl Future<Output = T>) -> Answer<T> {
    let limit = STAGE.min(end - Instant::now());
    timeout(limit, future).await.map_err(|_| format!("no answer within {:.0} s", limit.as_secs_f64()))
}

/// An event that nobody takes for a device's.
fn test_event(now: SystemTime) -> PushEventsRequest {
    let text = |text: &'static str| Kind::RawBytes(text.as_bytes().into());
    let fields = [
        ("message", text("sluicegate check")),
        ("source_type", text("sluicegate_check")),
        ("timestamp", Kind::Timestamp(now.into())),
    ];
    let fields: BTreeMap<_, _> =
        fields.map(|(name, kind)| (name.to_owned(), Value { kind: Some(kind) })).into();
    PushEventsRequest { events: vec![EventWrapper { event: Some(Event::Log(Log { fields, value: None })) }] }
}
