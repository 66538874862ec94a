//! The socket layer: every `unsafe` block of the crate, each with its reason.
//!
//! In: file descriptors that std or `socket2` opened. Out: datagrams, granted options, counters.
//! Nothing here decides anything; policy lives in [`crate::receive`] and [`crate::load`].
#![allow(unsafe_code)]

pub mod options;
pub mod passed;
pub mod slots;
pub mod transmit;
