//! End-to-end tests: real sockets, real processes, real senders. Run with `cargo test`.

#![allow(unreachable_pub)]

mod support;

mod admin;
mod against_vrl;
mod cli;
mod configuration;
mod documents;
mod events;
mod faults;
mod hostile;
mod load_test;
mod programs;
mod receiver;
mod senders;
mod stopping;
mod top;
mod vendors;
