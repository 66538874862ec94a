//! The types that `build.rs` makes from `proto/`.
//!
//! The hot path never builds them: it writes their wire form directly ([`crate::encode`]). They serve
//! the embedded receiver and the tests, and so prove the direct encoder right.
#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]

/// Package `event`: what an event is.
pub mod event {
    tonic::include_proto!("event");
}

/// Package `vector`: the service.
pub mod vector {
    tonic::include_proto!("vector");
}
