//! `sluicegate run`: the sidecar.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::flags::{All, Flags};
use super::{Ask, Failure, Signals, print_json, runtime, supervise};
use crate::admin;
use crate::config::{Config, Endpoint};
use crate::logs;
use crate::pipeline::Pipeline;
use crate::receiver::{self, JsonLines};
use crate::systemd::Notifier;

/// How long printing the books may take.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Push to an embedded receiver that prints one JSON object a line
    #[arg(long)]
    stdout: bool,
    #[command(flatten)]
    flags: Flags<All>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        // Before anything that takes time: a SIGHUP at the start must not end the process.
        let signals = Signals::listen()?;
        let flags = args.flags.clone();
        if args.stdout {
            let config = flags.config_between(None, embedded(0))?;
            logs::configure(&config.log);
            run_to_stdout(config, flags, signals).await
        } else {
            let config = flags.config()?;
            logs::configure(&config.log);
            run_until_signal(&config, signals, move || flags.config(), pending()).await
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

/// Runs until a signal comes or it cannot go on: `load` reads the configuration again, and `closed` completes when
/// nobody takes the events any more.
async fn run_until_signal(
    config: &Config,
    mut signals: Signals,
    load: impl Fn() -> Result<Config, Failure> + Clone + Send + 'static,
    closed: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let mut pipeline = Pipeline::start(config).map_err(Failure::failed)?;
    serve_admin(config, &pipeline)?;
    let notifier = Arc::new(Notifier::from_environment());
    notifier.ready(&supervise::status(&pipeline.view()));
    tokio::spawn(supervise::report(Arc::clone(&notifier), pipeline.view()));
    let mut closed = pin!(closed);
    // A file may take its time, as on a network that hangs: a stop does not wait for it.
    let mut loading: Option<JoinHandle<Result<Config, Failure>>> = None;
    let mut again = false;
    let failure = loop {
        tokio::select! {
            ask = signals.next() => match ask {
                Ask::Stop => break None,
                Ask::Reload if loading.is_some() => {
                    tracing::warn!("a reload is still reading its files; another follows it");
                    again = true;
                }
                Ask::Reload => {
                    notifier.reloading();
                    loading = Some(tokio::task::spawn_blocking(load.clone()));
                }
            },
            loaded = loaded(&mut loading) => {
                // The files may have changed since they were read.
                loading = std::mem::take(&mut again).then(|| tokio::task::spawn_blocking(load.clone()));
                match loaded {
                    Ok(config) => pipeline.apply(config).await,
                    Err(problem) => pipeline.refuse(&problem),
                }
                if loading.is_none() {
                    notifier.ready(&supervise::status(&pipeline.view()));
                }
            }
            () = pipeline.broken() => break Some("a worker panicked; see the log"),
            () = &mut closed => break Some("nobody reads standard output any more"),
        }
    };
    notifier.stopping(config.shutdown_timeout + PATIENCE);
    // A second signal is impatience: what is left then is counted, not waited for. So is a reader who has gone.
    let hurry = async {
        match failure {
            Some(_) => {}
            None => signals.stop_in_earnest().await,
        }
    };
    let report = pipeline.stop(config.shutdown_timeout, hurry).await;
    // Standard output may be a pipe that nobody reads: the process ends all the same.
    let printing = tokio::task::spawn_blocking(move || print_json(&report));
    let printed = tokio::time::timeout(PATIENCE, printing).await;
    match failure {
        Some(failure) => Err(Failure::failed(failure)),
        None => printed.map_or_else(
            |_| Err(Failure::failed("nobody reads standard output")),
            |printed| printed.map_err(Failure::failed)?,
        ),
    }
}

/// What a reload has read, once it has; never, where none is under way.
async fn loaded(loading: &mut Option<JoinHandle<Result<Config, Failure>>>) -> Result<Config, String> {
    match loading {
        None => pending().await,
        Some(loading) => match loading.await {
            Ok(loaded) => loaded.map_err(|failure| failure.to_string()),
            Err(panic) => Err(panic.to_string()),
        },
    }
}

fn embedded(port: u16) -> Endpoint {
    Endpoint { tls: false, host: "127.0.0.1".into(), port }
}

fn serve_admin(config: &Config, pipeline: &Pipeline) -> Result<(), Failure> {
    let Some(address) = config.admin.address else { return Ok(()) };
    match admin::start(address, pipeline.view()) {
        Ok(()) => {
            tracing::info!(%address, "admin port: /metrics, /livez, /readyz, /status, /top, /config, and gRPC health");
        }
        Err(error) if config.admin.required => {
            return Err(Failure::failed(format!(
                "cannot serve the admin port on {address}: {error}. Choose a free one with --admin, or none with --admin ''"
            )));
        }
        // The default port: a second sluicegate on the machine has it, and its datagrams matter more.
        Err(error) => tracing::warn!(%address, %error, "no admin port; choose a free one with --admin"),
    }
    Ok(())
}

async fn run_to_stdout(mut config: Config, flags: Flags<All>, signals: Signals) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot start the embedded receiver: {error}"));
    let listener = receiver::bind("127.0.0.1:0").await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    config.vector.endpoints = vec![embedded(port)];
    let sink = Arc::new(JsonLines::new(io::stdout()));
    let serving = tokio::spawn(receiver::serve(listener, Arc::clone(&sink), pending()));
    let load = move || flags.config_between(None, embedded(port));
    let result = run_until_signal(&config, signals, load, sink.closed()).await;
    serving.abort();
    result
}
