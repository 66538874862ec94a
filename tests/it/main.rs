//! End-to-end tests: real sockets, real processes, real senders. Run with `cargo test`.

#![allow(unreachable_pub)]

mod support;

mod cli;
mod documents;
mod events;
mod faults;
mod load_test;
mod receiver;
mod senders;
mod stopping;
mod vendors;
