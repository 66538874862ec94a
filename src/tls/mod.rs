//! Certificates and keys, as both ends of a connection need them.
//!
//! In: files. Out: what they hold, or one line that says what is wrong with them.

mod certificate;
mod files;

pub use certificate::{Certificate, shown_time};
pub use files::{FileError, certificates, fits, identity, misfit, private_key, read, signing_key};
