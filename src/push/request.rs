//! One call, by hand: the batch's bytes are the request's body as they are.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use tonic::{Code, Status};

use super::gather::Bodies;
use crate::config::Endpoint;
use crate::text::harmless;

pub(super) const PUSH_EVENTS: &str = "/vector.Vector/PushEvents";
pub(super) const HEALTH_CHECK: &str = "/vector.Vector/HealthCheck";
/// Says how a message is compressed (gRPC over HTTP/2, "Message-Encoding").
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// Bytes of an answer's message that are kept, give or take a frame.
const LONGEST_ANSWER: usize = 4_096;
const USER_AGENT: &str = concat!("sluicegate/", env!("CARGO_PKG_VERSION"));

/// What every request to an endpoint has in common.
#[derive(Debug, Clone)]
pub(super) struct Template {
    uri: Uri,
    headers: HeaderMap,
}

impl Template {
    /// The request line and headers for a call to `endpoint` (gRPC over HTTP/2, "Requests").
    ///
    /// # Errors
    /// When the endpoint's host cannot be part of a URI.
    pub(super) fn new(endpoint: &Endpoint, path: &str) -> Result<Self, http::Error> {
        let uri = format!("{endpoint}{path}").parse::<Uri>()?;
        let headers = HeaderMap::from_iter([
            (header::TE, HeaderValue::from_static("trailers")),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/grpc")),
            (header::USER_AGENT, HeaderValue::from_static(USER_AGENT)),
        ]);
        Ok(Self { uri, headers })
    }

    fn request(&self, body: Bytes, encoding: Option<HeaderValue>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        if let Some(encoding) = encoding {
            request.headers_mut().insert(GRPC_ENCODING, encoding);
        }
        request
    }
}

/// Calls an endpoint over one connection.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    sender: SendRequest<Full<Bytes>>,
    bodies: Bodies,
}

impl Caller {
    /// `bodies` are those that the connection's transport knows.
    pub(super) fn new(sender: SendRequest<Full<Bytes>>, bodies: Bodies) -> Self {
        Self { sender, bodies }
    }

    /// Makes a call, with a body that is encoded so, and waits for the answer: its status, and the message with gRPC's prefix.
    ///
    /// # Errors
    /// When the transport failed before an answer came: the call may or may not have arrived.
    pub(super) async fn call(
        &mut self,
        template: &Template,
        body: Bytes,
        encoding: Option<HeaderValue>,
    ) -> Result<(Status, Vec<u8>), hyper::Error> {
        let _under_way = self.bodies.add(body.clone());
        self.sender.ready().await?;
        answer(self.sender.send_request(template.request(body, encoding)).await?).await
    }
}

async fn answer(response: Response<Incoming>) -> Result<(Status, Vec<u8>), hyper::Error> {
    let (head, mut body) = response.into_parts();
    // An answer without a message has its status in the headers, every other one in the trailers.
    if let Some(status) = Status::from_header_map(&head.headers) {
        return Ok((acknowledged(status, false), Vec::new()));
    }
    if head.status != StatusCode::OK {
        let status = Status::new(code_of(head.status), format!("HTTP status {}", head.status));
        return Ok((status, Vec::new()));
    }
    let mut message = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            // No answer of Vector's is longer than a few bytes: of another's, the beginning will do.
            Ok(data) if message.len() < LONGEST_ANSWER => message.extend_from_slice(&data),
            Ok(_) => {}
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers()
                    && let Some(status) = Status::from_header_map(&trailers)
                {
                    return Ok((acknowledged(status, !message.is_empty()), message));
                }
            }
        }
    }
    Ok((Status::unknown("the answer has no grpc-status"), message))
}

/// OK without a message is no answer of Vector's: something in between must not make events vanish.
fn acknowledged(status: Status, has_message: bool) -> Status {
    match status.code() {
        Code::Ok if !has_message => Status::internal("it says OK but has no message, so it is not Vector's"),
        code => Status::new(code, harmless(status.message())),
    }
}

/// gRPC's mapping for answers from something that speaks no gRPC, such as a proxy
/// (grpc/doc/http-grpc-status-mapping.md).
fn code_of(status: StatusCode) -> Code {
    match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        413 => Code::OutOfRange, // a proxy with a small limit: halves may pass it
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

/// What a reset means where only the request was reset and its connection may be good for others: none otherwise
/// (grpc.io, "gRPC over HTTP2", Errors). A Vector whose decoder panics resets with CANCEL.
pub(super) fn status_of_reset(error: &hyper::Error) -> Option<Status> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let reason = error.reason().filter(|_| error.is_reset())?;
            let code = match reason {
                h2::Reason::CANCEL => Code::Cancelled,
                h2::Reason::REFUSED_STREAM => Code::Unavailable,
                h2::Reason::ENHANCE_YOUR_CALM => Code::ResourceExhausted,
                _ => Code::Internal,
            };
            return Some(Status::new(code, format!("the request was reset: {reason}")));
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::config::Tls;
    use crate::push::dial::speak;

    /// Takes a request and says that it was no good, which needs no message.
    async fn refuse(stream: TcpStream) -> usize {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let (request, mut respond) = connection.accept().await.unwrap().unwrap();
        let mut body = request.into_body();
        let reading = tokio::spawn(async move {
            let mut length = 0;
            while let Some(data) = body.data().await {
                let data = data.unwrap();
                length += data.len();
                body.flow_control().release_capacity(data.len()).unwrap();
            }
            let answer = Response::builder().header("grpc-status", "3").body(()).unwrap();
            respond.send_response(answer, true).unwrap();
            length
        });
        while connection.accept().await.is_some() {}
        reading.await.unwrap()
    }

    /// HTTP/2 and hyper have to hand on the very bytes that they were given: else they would be copied, and nobody would notice.
    #[tokio::test]
    async fn a_body_is_written_from_where_it_is() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint: Endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let refusing = tokio::spawn(async move { refuse(listener.accept().await.unwrap().0).await });
        let stream = TcpStream::connect((&*endpoint.host, endpoint.port)).await.unwrap();
        let (mut caller, _broken) =
            speak(stream, &endpoint, &Tls::default(), &mut Default::default()).await.unwrap();
        let kept = caller.bodies.kept.clone();
        let template = Template::new(&endpoint, PUSH_EVENTS).unwrap();
        let body = Bytes::from(vec![7; 3_000_000]);

        let (status, _) = caller.call(&template, body.clone(), None).await.unwrap();
        assert_eq!(status.code(), Code::InvalidArgument);
        drop(caller);
        assert_eq!(refusing.await.unwrap(), body.len());
        let kept = kept.load(Relaxed);
        assert!(kept > body.len() / 100 * 97, "only {kept} bytes were not copied");
    }
}
