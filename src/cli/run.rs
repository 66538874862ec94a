//! `sluicegate run`: the sidecar.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::options::{BatchOptions, PushOptions, ReceiveOptions, config};
use super::{Failure, Signals, print_json, runtime};
use crate::config::{Config, Endpoint};
use crate::pipeline::Pipeline;
use crate::receiver::{self, JsonLines};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address and UDP port to listen on, such as [::]:5514; may be repeated
    #[arg(long, value_name = "ADDR", required = true)]
    listen: Vec<SocketAddr>,
    /// A Vector source to push to, such as http://127.0.0.1:6000; may be repeated
    #[arg(long, value_name = "URL", required_unless_present = "stdout")]
    vector: Vec<Endpoint>,
    /// Push to an embedded receiver that prints one JSON object a line
    #[arg(long, conflicts_with = "vector")]
    stdout: bool,
    #[command(flatten)]
    receive: ReceiveOptions,
    #[command(flatten)]
    batch: BatchOptions,
    #[command(flatten)]
    push: PushOptions,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let listeners = args.listen.iter().map(|address| args.receive.listener(*address)).collect();
    let embedded = Endpoint { host: "127.0.0.1".into(), port: 0 };
    let endpoints = if args.stdout { vec![embedded] } else { args.vector.clone() };
    let config = config(listeners, endpoints, &args.batch, &args.push)?;
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        if args.stdout { run_to_stdout(config).await } else { run_until_signal(&config).await }
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

async fn run_until_signal(config: &Config) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let pipeline = Pipeline::start(config).map_err(Failure::failed)?;
    signals.next().await;
    // A second signal is impatience: what is left then is counted, not waited for.
    let report = pipeline.stop(config.shutdown_timeout, signals.next()).await;
    print_json(&report)
}

async fn run_to_stdout(mut config: Config) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot start the embedded receiver: {error}"));
    let listener = receiver::bind("127.0.0.1:0").await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    for endpoint in &mut config.vector.endpoints {
        endpoint.port = port;
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let sink = Arc::new(JsonLines::new(io::stdout()));
    let serving = tokio::spawn(receiver::serve(listener, sink, async { drop(stopped.await) }));
    let result = run_until_signal(&config).await;
    drop(stop);
    serving.abort();
    result
}
