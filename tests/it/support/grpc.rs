//! gRPC from outside: a client that shares no code with the servers.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

/// A unary call, by hand: the reply's message and the gRPC status.
pub async fn call(address: std::net::SocketAddr, path: &str, message: &[u8]) -> (Bytes, String) {
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
