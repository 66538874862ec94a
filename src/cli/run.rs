//! `sluicegate run`: the sidecar.

mod stage;

use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use self::stage::{Stage, Succession};
use super::flags::{All, Flags, warn_of_unknown_variables};
use super::{Ask, Failure, Signals, print_json, runtime, supervise};
use crate::books::Report;
use crate::config::{Config, Endpoint, WhenFull};
use crate::logs;
use crate::pipeline::Pipeline;
use crate::receiver::{self, JsonLines};
use crate::takeover::{self, Successor, Taken};

/// How long printing the books may take.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Push to an embedded receiver that prints one JSON object a line
    #[arg(long)]
    stdout: bool,
    /// Take over from the sluicegate whose takeover.path this is: its sockets, and no datagram lost
    #[arg(long, value_name = "PATH")]
    takeover: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags<All>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        // Before anything that takes time: a SIGHUP at the start must not end the process.
        let signals = Signals::listen()?;
        let flags = args.flags.clone();
        warn_of_unknown_variables();
        if args.stdout {
            let config = flags.config_between(None, Endpoint::here(0))?;
            logs::configure(&config.log);
            let taken = take_over(args, &config)?;
            run_to_stdout(config, flags, signals, taken).await
        } else {
            let config = flags.config()?;
            logs::configure(&config.log);
            let taken = take_over(args, &config)?;
            run_until_signal(&config, signals, move || flags.config(), pending(), taken).await
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

/// Asks the running process for its sockets, if that is wanted. The configuration is known to be good by then.
fn take_over(args: &Args, config: &Config) -> Result<Option<Taken>, Failure> {
    let ask = |path: &PathBuf| takeover::ask(path, config).map_err(Failure::failed);
    Ok(args.takeover.as_ref().map(ask).transpose()?.flatten())
}

/// Runs until a signal comes, a successor takes over, or it cannot go on: `load` reads the configuration again, and `closed`
/// completes when nobody takes the events any more.
async fn run_until_signal(
    config: &Config,
    mut signals: Signals,
    load: impl Fn() -> Result<Config, Failure> + Clone + Send + 'static,
    closed: impl Future<Output = ()>,
    taken: Option<Taken>,
) -> Result<(), Failure> {
    let Stage { mut pipeline, notifier, mut succession } = Stage::set(config, taken).await?;
    let mut closed = pin!(closed);
    // A file may take its time, as on a network that hangs: a stop does not wait for it.
    let mut loading: Option<JoinHandle<Result<Config, Failure>>> = None;
    let mut again = false;
    let ending = loop {
        tokio::select! {
            ask = signals.next() => match ask {
                Ask::Stop => break succession.outcome(&pipeline).await.map_or(Ending::Asked, Ending::Succeeded),
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
            successor = succession.next(&pipeline) => break Ending::Succeeded(successor),
            () = pipeline.broken() => break Ending::Broken("a worker panicked; see the log"),
            () = &mut closed => break Ending::Broken("nobody reads standard output any more"),
        }
    };
    succession.close();
    notifier.stopping(config.shutdown_timeout + PATIENCE);
    let report = finish(pipeline, config, &ending, &succession, &mut signals).await;
    // Standard output may be a pipe that nobody reads: the process ends all the same.
    let printing = tokio::task::spawn_blocking(move || print_json(&report));
    let printed = tokio::time::timeout(PATIENCE, printing).await;
    match ending {
        Ending::Succeeded(successor) if config.takeover_stay => stay(successor, signals).await,
        Ending::Broken(failure) => Err(Failure::failed(failure)),
        Ending::Asked | Ending::Succeeded(_) => printed.map_or_else(
            |_| Err(Failure::failed("nobody reads standard output")),
            |printed| printed.map_err(Failure::failed)?,
        ),
    }
}

/// Why a run comes to its end.
enum Ending {
    Asked,
    /// A successor reads the groups with these numbers.
    Succeeded(Successor),
    Broken(&'static str),
}

/// Stops the pipeline, in the way that the ending asks for.
async fn finish(
    pipeline: Pipeline,
    config: &Config,
    ending: &Ending,
    succession: &Succession,
    signals: &mut Signals,
) -> Report {
    let timeout = config.shutdown_timeout;
    match ending {
        Ending::Broken(_) => pipeline.stop(timeout, async {}).await,
        // A second signal is impatience: what is left then is counted, not waited for. So is a reader who has gone.
        Ending::Asked => pipeline.stop(timeout, signals.stop_in_earnest()).await,
        Ending::Succeeded(successor) => {
            succession.release(&pipeline, successor).await;
            // What can wait on disk is the successor's as soon as this ends; what cannot is worth waiting for: nothing
            // is held up by it. Nor is a process that stays in a hurry. A signal begins the usual deadline.
            let held_up = config.buffer.when_full == WhenFull::Overflow && !config.takeover_stay;
            let timeout = if held_up { timeout } else { Duration::MAX };
            let hurry = async {
                signals.stop().await;
                tokio::time::timeout(config.shutdown_timeout, signals.stop_in_earnest()).await.ok();
            };
            let report = pipeline.stop(timeout, hurry).await;
            succession.answered().await;
            report
        }
    }
}

/// Waits for the signal to stop, with nothing left to do. Where the successor ends first, this process ends too: whoever starts it again
/// has it listen anew.
async fn stay(successor: Successor, mut signals: Signals) -> Result<(), Failure> {
    if signals.stopped {
        return Ok(());
    }
    tracing::info!("all is settled; staying until told to stop, or the successor ends");
    successor.finish();
    let ended = tokio::task::spawn_blocking(move || successor.wait_for_end());
    tokio::select! {
        () = signals.stop() => {}
        _ = ended => tracing::warn!("the successor has ended"),
    }
    Ok(())
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

async fn run_to_stdout(
    mut config: Config,
    flags: Flags<All>,
    signals: Signals,
    taken: Option<Taken>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot start the embedded receiver: {error}"));
    let listener = receiver::bind("127.0.0.1:0").await.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    config.vector.endpoints = vec![Endpoint::here(port)];
    let sink = Arc::new(JsonLines::new(io::stdout()));
    let serving = tokio::spawn(receiver::serve(listener, Arc::clone(&sink), pending()));
    let load = move || flags.config_between(None, Endpoint::here(port));
    let result = run_until_signal(&config, signals, load, sink.closed(), taken).await;
    serving.abort();
    result
}
