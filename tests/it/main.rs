//! End-to-end tests: real sockets, real processes, real senders. Run with `cargo test`.

#![allow(unreachable_pub)]

mod support;

mod admin;
mod against_vrl;
mod alerts;
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
mod kubernetes;
mod load_test;
mod metrics;
mod ordered;
mod packaging;
mod permit;
mod pod;
mod programs;
mod rate_limit;
mod receiver;
mod reference;
mod reload;
mod senders;
mod sequence;
mod soak;
mod spool;
mod stopping;
mod systemd;
mod takeover;
mod threads;
mod tls;
mod tls_options;
mod top;
mod unit;
mod vector_config;
mod vendors;
mod workflow;
