//! End-to-end tests: real sockets, real processes, real senders. Run with `cargo test`.

#![allow(unreachable_pub)]

mod support;

mod admin;
mod against_vrl;
mod bench;
mod check;
mod cli;
mod compression;
mod configuration;
mod dead_letters;
mod documents;
mod endpoints;
mod events;
mod faults;
mod health;
mod hostile;
mod instructions;
mod load_test;
mod metrics;
mod programs;
mod receiver;
mod reload;
mod senders;
mod soak;
mod spool;
mod stopping;
mod tls;
mod tls_options;
mod top;
mod vendors;
