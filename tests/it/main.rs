//! End-to-end tests: real sockets, real processes, real senders. Run with `cargo test`.

#![allow(unreachable_pub)]

mod support;

mod admin;
mod against_vrl;
mod check;
mod cli;
mod configuration;
mod documents;
mod events;
mod faults;
mod health;
mod hostile;
mod load_test;
mod metrics;
mod ordered;
mod permit;
mod programs;
mod rate_limit;
mod receiver;
mod reload;
mod senders;
mod sequence;
mod spool;
mod stopping;
mod systemd;
mod takeover;
mod tls;
mod tls_options;
mod top;
mod vendors;
