//! Compressed requests: to Vectors that know the encoding, that do not, and that only say so.

use sluicegate::books::Report;
use sluicegate::config::{Compression, Config};
use tonic::codec::CompressionEncoding::{Gzip, Zstd};

use crate::support::scenario::{config, flow_through};
use crate::support::vector::FakeVector;

fn compressing(vector: &FakeVector, compression: Compression) -> Config {
    let mut config = config(vector.address);
    config.vector.compression = compression;
    config
}

/// Everything arrived, once; returns the report.
async fn all_arrive(config: Config, vectors: &[&FakeVector]) -> Report {
    let (sent, report) = flow_through(config).await;
    assert_eq!((report.delivered, report.rejected, report.shed), (sent.sent, 0, 0));
    assert_eq!(vectors.iter().map(|vector| vector.received().events).sum::<u64>(), sent.sent);
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_out_compressed() {
    for compression in [Compression::Gzip, Compression::Zstd] {
        let vector = FakeVector::knowing(&[Gzip, Zstd]).await;
        let report = all_arrive(compressing(&vector, compression), &[&vector]).await;
        assert_eq!((vector.compressed(), report.retries), (report.requests, 0), "{compression:?}");
        assert!(!report.endpoints[0].compression_refused);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vector_that_does_not_know_the_encoding_gets_the_same_batch_without() {
    let vector = FakeVector::knowing(&[Gzip]).await;
    let report = all_arrive(compressing(&vector, Compression::Zstd), &[&vector]).await;
    assert_eq!((vector.compressed(), report.retries, report.possible_duplicates), (0, 0, 0));
    assert!(report.endpoints[0].compression_refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vector_that_cannot_decode_what_it_says_it_knows_gets_it_without() {
    let vector = FakeVector::knowing(&[Gzip]).await;
    vector.fail_to_decode();
    let report = all_arrive(compressing(&vector, Compression::Gzip), &[&vector]).await;
    assert!(report.endpoints[0].compression_refused);
    assert!(vector.compressed() < 20, "{}", vector.compressed());
    assert_eq!(vector.received().numbers.unwrap().duplicates, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_vector_is_remembered_for_itself() {
    let (new, old) = (FakeVector::knowing(&[Gzip, Zstd]).await, FakeVector::knowing(&[]).await);
    let mut config = compressing(&new, Compression::Zstd);
    config.vector.endpoints.extend(compressing(&old, Compression::Zstd).vector.endpoints);
    let report = all_arrive(config, &[&new, &old]).await;
    assert_eq!(report.endpoints.iter().map(|e| e.compression_refused).collect::<Vec<_>>(), [false, true]);
    assert!(new.compressed() > 0 && old.received().events > 0);
}
