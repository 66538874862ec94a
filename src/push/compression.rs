//! How an endpoint's requests are compressed, and when that is given up.
//!
//! A Vector that does not know an encoding answers UNIMPLEMENTED (gRPC, "Compression"); some releases answer INTERNAL to what they
//! cannot decode. Either is answered with the same batch, uncompressed, and the endpoint is remembered.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use bytes::Bytes;
use flate2::write::GzEncoder;
use http::HeaderValue;
use tonic::Code;

use crate::batch::PREFIX;
use crate::config::Compression;

/// Failures in a row, with no success in between, after which it is given up.
const PATIENCE: u32 = 3;

/// Levels at which a core compresses as fast as one receives; what the higher ones save costs more than it brings.
const GZIP_LEVEL: u32 = 1;
const ZSTD_LEVEL: i32 = 1;

/// An endpoint's compression.
#[derive(Debug)]
pub(super) struct Compressor {
    wanted: Compression,
    given_up: AtomicBool,
    failures: AtomicU32,
}

impl Compressor {
    pub(super) fn new(wanted: Compression) -> Self {
        Self { wanted, given_up: AtomicBool::new(false), failures: AtomicU32::new(0) }
    }

    /// What the next request is compressed with.
    pub(super) fn in_force(&self) -> Compression {
        if self.given_up.load(Relaxed) { Compression::None } else { self.wanted }
    }

    /// Notes the answer to a request that was compressed so; true when it means that this was the reason, so that the
    /// batch is to be sent again at once.
    pub(super) fn is_refused(&self, compression: Compression, code: Code) -> bool {
        if compression == Compression::None {
            return false;
        }
        let is_refused = match code {
            Code::Unimplemented => true,
            Code::Internal => self.failures.fetch_add(1, Relaxed) + 1 >= PATIENCE,
            Code::Ok => {
                self.failures.store(0, Relaxed);
                false
            }
            _ => false,
        };
        self.given_up.fetch_or(is_refused, Relaxed);
        is_refused
    }
}

/// The value of `grpc-encoding`.
pub(super) fn encoding(compression: Compression) -> Option<HeaderValue> {
    match compression {
        Compression::None => None,
        Compression::Gzip => Some(HeaderValue::from_static("gzip")),
        Compression::Zstd => Some(HeaderValue::from_static("zstd")),
    }
}

/// A request's body, compressed, behind a prefix that says so (gRPC over HTTP/2, "Length-Prefixed-Message").
///
/// # Errors
/// The library's; it has none for bytes in memory.
pub(super) fn compressed(compression: Compression, body: &Bytes) -> io::Result<Bytes> {
    let message = body.get(PREFIX..).unwrap_or_default();
    // Text comes out at a quarter, mostly.
    let mut out = Vec::with_capacity(PREFIX + message.len() / 3);
    out.extend_from_slice(&[1, 0, 0, 0, 0]);
    let mut out = match compression {
        Compression::None => return Ok(body.clone()),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(out, flate2::Compression::new(GZIP_LEVEL));
            encoder.write_all(message)?;
            encoder.finish()?
        }
        Compression::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
            encoder.write_all(message)?;
            encoder.finish()?
        }
    };
    let length = u32::try_from(out.len() - PREFIX).map_err(io::Error::other)?;
    out[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::batch::framed;

    #[test]
    fn what_is_compressed_comes_back() {
        let message = b"<134>Nov 30 12:00:00 fw1 a line much like the others\n".repeat(1_000);
        let body = Bytes::from(framed(&message));
        assert_eq!(compressed(Compression::None, &body).unwrap(), body);
        for compression in [Compression::Gzip, Compression::Zstd] {
            let out = compressed(compression, &body).unwrap();
            assert_eq!(out[0], 1);
            assert_eq!(u32::from_be_bytes(out[1..PREFIX].try_into().unwrap()) as usize, out.len() - PREFIX);
            assert!(out.len() < body.len() / 10, "{compression:?} {}", out.len());
            let mut back = Vec::new();
            match compression {
                Compression::Gzip => {
                    flate2::read::GzDecoder::new(&out[PREFIX..]).read_to_end(&mut back).unwrap()
                }
                _ => {
                    zstd::stream::read::Decoder::new(&out[PREFIX..]).unwrap().read_to_end(&mut back).unwrap()
                }
            };
            assert_eq!(back, message);
        }
    }

    #[test]
    fn it_is_given_up_once_it_is_the_likely_reason() {
        let answers = |codes: &[Code]| {
            let compressor = Compressor::new(Compression::Gzip);
            let refused =
                codes.iter().map(|code| compressor.is_refused(Compression::Gzip, *code)).collect::<Vec<_>>();
            (refused.last() == Some(&true), compressor.in_force())
        };
        let (given_up, goes_on) = ((true, Compression::None), (false, Compression::Gzip));
        assert_eq!(answers(&[Code::Unimplemented]), given_up);
        assert_eq!(answers(&[Code::Internal, Code::Internal, Code::Internal]), given_up);
        assert_eq!(
            answers(&[Code::Internal, Code::Internal, Code::Ok, Code::Internal, Code::Internal]),
            goes_on
        );
        assert_eq!(answers(&[Code::Unavailable, Code::Cancelled, Code::ResourceExhausted]), goes_on);
        let plain = Compressor::new(Compression::None);
        assert!(!plain.is_refused(Compression::None, Code::Unimplemented));
    }
}
