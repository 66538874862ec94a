//! A Vector that answers as a test wants, and remembers what it acknowledged.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluicegate::proto::event::event_wrapper::Event;
use sluicegate::proto::event::{EventWrapper, Log, Metric, value::Kind};
use sluicegate::proto::vector::vector_server::{Vector, VectorServer};
use sluicegate::proto::vector::{
    HealthCheckRequest, HealthCheckResponse, PushEventsRequest, PushEventsResponse,
};
use sluicegate::receiver::{Counter, Received, Sink};
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tonic::codec::CompressionEncoding::{self, Gzip, Zstd};
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status};

/// What to answer to a request, by its number and its events.
pub type Answer = dyn Fn(u64, &[EventWrapper]) -> Code + Send + Sync;

pub struct FakeVector {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    answer: Box<Answer>,
    requests: AtomicU64,
    compressed: AtomicU64,
    fails_to_decode: AtomicBool,
    counter: Counter,
    events: Mutex<Vec<EventWrapper>>,
    keep: Box<Keep>,
}

/// What it takes, and for how long.
struct Limits {
    max_bytes: usize,
    max_age: Option<Duration>,
    encodings: Vec<CompressionEncoding>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 100 << 20, max_age: None, encodings: vec![Gzip, Zstd] }
    }
}

/// Which events to keep.
pub type Keep = dyn Fn(&EventWrapper) -> bool + Send + Sync;

#[tonic::async_trait]
impl Vector for Shared {
    async fn push_events(
        &self,
        request: Request<PushEventsRequest>,
    ) -> Result<Response<PushEventsResponse>, Status> {
        let state = &self.0;
        let is_compressed = request.metadata().contains_key("grpc-encoding");
        state.compressed.fetch_add(is_compressed.into(), SeqCst);
        if is_compressed && state.fails_to_decode.load(SeqCst) {
            return Err(Status::internal("Error decompressing: corrupt deflate stream"));
        }
        let events = request.into_inner().events;
        let code = (state.answer)(state.requests.fetch_add(1, SeqCst), &events);
        if code != Code::Ok {
            return Err(Status::new(code, "as the test wants"));
        }
        state.events.lock().unwrap().extend(events.iter().filter(|event| (state.keep)(event)).cloned());
        state.counter.take(events).unwrap();
        Ok(Response::new(PushEventsResponse {}))
    }

    async fn health_check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse::default()))
    }
}

struct Shared(Arc<State>);

impl FakeVector {
    /// One that takes everything and keeps it.
    pub async fn start() -> Self {
        Self::keeping(|_| true).await
    }

    /// One that takes everything and keeps some of it.
    pub async fn keeping(keep: impl Fn(&EventWrapper) -> bool + Send + Sync + 'static) -> Self {
        Self::serve(Box::new(|_, _| Code::Ok), Box::new(keep), Limits::default()).await
    }

    /// One that takes everything, only counts, and knows these encodings.
    pub async fn knowing(encodings: &[CompressionEncoding]) -> Self {
        Self::serve(
            Box::new(|_, _| Code::Ok),
            Box::new(|_| false),
            Limits { encodings: encodings.to_vec(), ..Limits::default() },
        )
        .await
    }

    /// One that takes everything in requests of up to so many bytes, and only counts.
    pub async fn limited(max_bytes: usize) -> Self {
        let limits = Limits { max_bytes, ..Limits::default() };
        Self::serve(Box::new(|_, _| Code::Ok), Box::new(|_| false), limits).await
    }

    /// From now on it answers INTERNAL to whatever is compressed.
    pub fn fail_to_decode(&self) {
        self.state.fails_to_decode.store(true, SeqCst);
    }

    /// Requests that came compressed.
    pub fn compressed(&self) -> u64 {
        self.state.compressed.load(SeqCst)
    }

    /// One that answers by the function, and only counts.
    pub async fn answering(answer: impl Fn(u64, usize) -> Code + Send + Sync + 'static) -> Self {
        Self::judging(move |number, events| answer(number, events.len())).await
    }

    /// One that answers by what is in a request, and only counts.
    pub async fn judging(answer: impl Fn(u64, &[EventWrapper]) -> Code + Send + Sync + 'static) -> Self {
        Self::serve(Box::new(answer), Box::new(|_| false), Limits::default()).await
    }

    /// One that closes each connection (GOAWAY) when it is this old.
    pub async fn saying_goodbye(after: Duration) -> Self {
        Self::serve(
            Box::new(|_, _| Code::Ok),
            Box::new(|_| false),
            Limits { max_age: Some(after), ..Limits::default() },
        )
        .await
    }

    async fn serve(answer: Box<Answer>, keep: Box<Keep>, limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            answer,
            requests: AtomicU64::new(0),
            compressed: AtomicU64::new(0),
            fails_to_decode: AtomicBool::new(false),
            counter: Counter::default(),
            events: Mutex::default(),
            keep,
        });
        let service =
            VectorServer::new(Shared(Arc::clone(&state))).max_decoding_message_size(limits.max_bytes);
        let service =
            limits.encodings.iter().fold(service, |service, encoding| service.accept_compressed(*encoding));
        let mut server = tonic::transport::Server::builder();
        if let Some(age) = limits.max_age {
            server = server.max_connection_age(age).max_connection_age_grace(Duration::from_millis(50));
        }
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(false)); // as Vector
        tokio::spawn(server.add_service(service).serve_with_incoming(incoming));
        Self { address, state }
    }

    pub fn received(&self) -> Received {
        self.state.counter.received()
    }

    /// Every event acknowledged so far.
    pub fn logs(&self) -> Vec<Log> {
        let log = |event: &EventWrapper| match &event.event {
            Some(Event::Log(log)) => log.clone(),
            other => panic!("no log: {other:?}"),
        };
        self.state.events.lock().unwrap().iter().map(log).collect()
    }
}

impl FakeVector {
    /// Every metric that was kept.
    pub fn metrics(&self) -> Vec<Metric> {
        let metric = |event: &EventWrapper| match &event.event {
            Some(Event::Metric(metric)) => Some(metric.clone()),
            _ => None,
        };
        self.state.events.lock().unwrap().iter().filter_map(metric).collect()
    }
}

/// A field's bytes.
pub fn bytes<'a>(log: &'a Log, field: &str) -> &'a [u8] {
    match &log.fields[field].kind {
        Some(Kind::RawBytes(bytes)) => bytes,
        other => panic!("{field} is {other:?}"),
    }
}

/// How a connection goes wrong before it reaches the Vector behind.
#[derive(Debug, Clone, Copy)]
pub enum Wire {
    /// Not at all.
    Good,
    /// Closed after so many bytes, without a word.
    Eof(usize),
    /// Accepted, and never read from or answered.
    Silence,
    /// Led to another Vector.
    To(SocketAddr),
}

#[derive(Clone)]
pub struct Front {
    pub address: SocketAddr,
    accepted: Arc<AtomicU64>,
    bad: Arc<AtomicU64>,
    silent: Arc<Mutex<Vec<TcpStream>>>,
}

impl Front {
    pub fn connections(&self) -> u64 {
        self.accepted.load(SeqCst)
    }

    /// From now on all is well; connections that are not are closed.
    pub fn mend(&self) {
        self.bad.store(0, SeqCst);
        self.silent.lock().unwrap().clear();
    }
}

/// A port in front of `vector` whose first `bad` connections go wrong.
pub async fn in_front_of(vector: SocketAddr, wire: Wire, bad: u64) -> Front {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = Front {
        address: listener.local_addr().unwrap(),
        accepted: Arc::default(),
        bad: Arc::new(bad.into()),
        silent: Arc::default(),
    };
    let shared = front.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let number = shared.accepted.fetch_add(1, SeqCst);
            match if number < shared.bad.load(SeqCst) { wire } else { Wire::Good } {
                Wire::Good => lead(stream, vector),
                Wire::To(other) => lead(stream, other),
                Wire::Silence => shared.silent.lock().unwrap().push(stream),
                Wire::Eof(bytes) => {
                    tokio::spawn(async move {
                        let mut stream = stream;
                        let mut buffer = vec![0; bytes];
                        stream.read_exact(&mut buffer).await.ok();
                    });
                }
            }
        }
    });
    front
}

fn lead(mut stream: TcpStream, vector: SocketAddr) {
    tokio::spawn(async move {
        let mut behind = TcpStream::connect(vector).await.unwrap();
        copy_bidirectional(&mut stream, &mut behind).await.ok();
    });
}
