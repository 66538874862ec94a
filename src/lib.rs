//! # sluicegate
//!
//! Drains UDP syslog on every core and streams it to Vector's `vector` source, losing nothing it received.
//!
//! ```text
//! kernel ─▶ receive ─▶ parse ─▶ encode ─▶ batch ─▶ queue ─▶ push ─▶ Vector
//!           a thread   if       wire      closed   bounded  tasks that
//!           a socket   asked    bytes     on size  in bytes pull
//! ```
//!
//! Data goes down that list only. [`pipeline`] is the one place that knows every room; [`books`] is where
//! they all count, [`dead_letter`] what becomes of what Vector never takes, [`view`] how others look at it, and [`top`] shows
//! it in a terminal. [`receiver`] and [`load`] are the two ends that `demo` and the tests need; [`tls`] reads certificates for
//! both. [`takeover`] and [`systemd`] have sockets outlive the process.

pub mod socket;

pub mod datagram;
pub mod receive;

pub mod parse;

pub mod encode;

pub mod batch;

pub mod queue;

pub mod spool;

pub mod push;

pub mod dead_letter;

pub mod admin;
pub mod bench;
pub mod books;
pub mod check;
pub mod cli;
pub mod config;
pub mod live;
pub mod load;
pub mod logs;
pub mod metrics;
mod numbers;
pub mod pipeline;
pub mod proto;
pub mod receiver;
pub mod systemd;
pub mod takeover;
mod text;
pub mod tls;
pub mod top;
pub mod view;
