//! `receive` as other programs meet it: Vector's service and the standard health service.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use sluicegate::proto::vector::{HealthCheckResponse, ServingStatus};
use tokio::net::TcpStream;

use crate::support::free_tcp;
use crate::support::process::Process;

/// A unary call, by hand: the reply's message and the gRPC status.
async fn call(address: std::net::SocketAddr, path: &str, message: &[u8]) -> (Bytes, String) {
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(driver);
    let mut body = vec![0];
    body.extend((message.len() as u32).to_be_bytes());
    body.extend(message);
    let request = http::Request::post(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let reply = sender.send_request(request).await.unwrap();
    let early = reply.headers().get("grpc-status").cloned();
    let body = reply.into_body().collect().await.unwrap();
    let status = body.trailers().and_then(|trailers| trailers.get("grpc-status").cloned()).or(early).unwrap();
    let bytes = body.to_bytes();
    (bytes.slice(bytes.len().min(5)..), status.to_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_answers_both_kinds_of_health_checks() {
    let address = free_tcp();
    let receive = Process::receive(address, "--count");
    let (reply, status) = call(address, "/vector.Vector/HealthCheck", b"").await;
    assert_eq!(status, "0");
    assert_eq!(HealthCheckResponse::decode(reply).unwrap().status(), ServingStatus::Serving);
    // grpc.health.v1: HealthCheckRequest { service = 1 }, HealthCheckResponse { status = 1 }, SERVING = 1.
    for request in [&b""[..], b"\x0A\x0Dvector.Vector"] {
        let (reply, status) = call(address, "/grpc.health.v1.Health/Check", request).await;
        assert_eq!((&reply[..], status.as_str()), (&b"\x08\x01"[..], "0"));
    }
    let (_, status) = call(address, "/grpc.health.v1.Health/Check", b"\x0A\x05other").await;
    assert_eq!(status, "5", "NOT_FOUND for a service that is not there");
    receive.stop();
}
