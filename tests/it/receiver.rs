//! `receive` as other programs meet it: Vector's service and the standard health service.

use prost::Message;
use sluicegate::proto::vector::{HealthCheckResponse, ServingStatus};

use crate::support::free_tcp;
use crate::support::grpc::call;
use crate::support::process::Process;

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
