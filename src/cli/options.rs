//! The pipeline's options as flags. Their names are those of the configuration file, joined by dashes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Failure;
use crate::config::variables::expand;
use crate::config::{self, Config, Endpoint, Listener, Steering, WhenFull, units};
use crate::encode::Shape;
use crate::parse::{Mode, OnError, Options, Program, Zone};

#[derive(Debug, Args)]
pub(super) struct ReceiveOptions {
    /// Threads and sockets for each address [default: usable cores]
    #[arg(long, value_name = "N")]
    pub(super) workers: Option<usize>,
    /// Which worker gets a datagram: `spread` uses every core for one flow, `flow` keeps each sender's order
    #[arg(long, value_enum, default_value = "spread")]
    pub(super) steering: Steering,
    /// Kernel receive buffer of each address, over all its sockets
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = units::bytes)]
    pub(super) receive_buffer_bytes: usize,
    /// Longest datagram taken, bytes; longer ones are counted and discarded
    #[arg(long, value_name = "BYTES", default_value_t = config::MAX_DATAGRAM)]
    pub(super) max_length: usize,
}

impl ReceiveOptions {
    pub(super) fn listener(&self, address: SocketAddr) -> Listener {
        Listener {
            address,
            workers: self.workers.unwrap_or_else(config::usable_cores),
            steering: self.steering,
            receive_buffer_bytes: self.receive_buffer_bytes,
            max_length: self.max_length,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ParseOptions {
    /// What to make of a datagram: the event of Vector's `socket` source, or of its `syslog` source
    #[arg(long, value_enum, default_value = "none")]
    parse: Mode,
    /// A VRL program that every event goes through
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// What does not parse: keep it with `parse_error`, or drop and count it
    #[arg(long, value_enum, default_value = "keep")]
    on_error: OnError,
    /// Send the untouched datagram along as `raw`
    #[arg(long)]
    keep_raw: bool,
    /// Zone of dates without one: `local`, or a name such as Europe/Berlin
    #[arg(long, value_name = "TZ", default_value = "local")]
    timezone: Zone,
    /// Name of the host field; empty leaves it out
    #[arg(long, value_name = "NAME", default_value = "host")]
    host_key: String,
    /// Name of the port field (with `--parse none`); empty leaves it out
    #[arg(long, value_name = "NAME", default_value = "port")]
    port_key: String,
    /// A field for every event, such as node=${NODE_NAME}; may be repeated
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = field)]
    fields: Vec<(String, String)>,
}

impl ParseOptions {
    pub(super) fn options(&self) -> Result<Options, Failure> {
        let program = self.program.as_ref().map(|path| {
            let unreadable = |error| format!("cannot read the VRL program {}: {error}", path.display());
            let source = std::fs::read_to_string(path).map_err(|error| Failure::usage(unreadable(error)))?;
            Program::compile(&source).map_err(Failure::usage)
        });
        Ok(Options {
            mode: self.parse,
            program: program.transpose()?,
            on_error: self.on_error,
            timezone: self.timezone,
            shape: Shape {
                host_key: self.host_key.clone(),
                port_key: self.port_key.clone(),
                fields: self.fields.clone(),
                keep_raw: self.keep_raw,
            },
        })
    }
}

fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("`{text}` is no field: write NAME=VALUE"))?;
    if name.is_empty() {
        return Err(format!("`{text}` has no name: write NAME=VALUE"));
    }
    Ok((name.to_owned(), expand(value, |variable| std::env::var(variable).ok())?))
}

#[derive(Debug, Args)]
pub(super) struct BatchOptions {
    /// A batch closes at this size
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = units::bytes)]
    batch_max_bytes: usize,
    /// A batch closes at this many events
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    batch_max_events: usize,
    /// A batch closes at this age
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = units::duration)]
    batch_timeout: Duration,
    /// Memory for batches that wait to be pushed
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = units::bytes)]
    buffer_max_bytes: usize,
    /// When that is full: stop reading, or shed new batches
    #[arg(long, value_enum, default_value = "block")]
    when_full: WhenFull,
}

#[derive(Debug, Args)]
pub(super) struct PushOptions {
    /// HTTP/2 connections to each Vector
    #[arg(long, value_name = "N", default_value_t = 2)]
    connections: usize,
    /// Requests in flight on each connection
    #[arg(long, value_name = "N", default_value_t = 4)]
    streams: usize,
    /// Deadline of a request
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::duration)]
    request_timeout: Duration,
    /// First pause after a failure; it doubles up to 5 s
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = units::duration)]
    retry_initial_backoff: Duration,
    /// How long a stop may wait for acknowledgements
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::duration)]
    shutdown_timeout: Duration,
}

/// The options of a whole pipeline.
#[derive(Debug, Args)]
pub(super) struct PipelineOptions {
    #[command(flatten)]
    receive: ReceiveOptions,
    #[command(flatten)]
    parse: ParseOptions,
    #[command(flatten)]
    batch: BatchOptions,
    #[command(flatten)]
    push: PushOptions,
}

impl PipelineOptions {
    /// The whole configuration, or everything that is wrong with it in one line.
    pub(super) fn config(
        &self,
        addresses: &[SocketAddr],
        endpoints: Vec<Endpoint>,
    ) -> Result<Config, Failure> {
        let (batch, push) = (&self.batch, &self.push);
        let config = Config {
            listeners: addresses.iter().map(|address| self.receive.listener(*address)).collect(),
            parse: self.parse.options()?,
            batch: config::Batch {
                max_bytes: batch.batch_max_bytes,
                max_events: batch.batch_max_events,
                timeout: batch.batch_timeout,
            },
            buffer: config::Buffer { max_bytes: batch.buffer_max_bytes, when_full: batch.when_full },
            vector: config::Vector {
                endpoints,
                connections: push.connections,
                streams: push.streams,
                request_timeout: push.request_timeout,
                retry_initial_backoff: push.retry_initial_backoff,
            },
            shutdown_timeout: push.shutdown_timeout,
        };
        config.checked().map_err(|found| {
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            Failure::usage(found.join("; "))
        })
    }
}
