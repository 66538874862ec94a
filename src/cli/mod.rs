//! The command line: what was typed becomes a valid [`Config`](crate::config::Config), or one clear line.
//!
//! Exit codes: 0 clean, 1 failed, 2 bad usage or configuration. Results go to stdout, logs and errors to stderr.

mod admin_port;
mod bench;
mod check;
mod config;
mod demo;
mod flags;
mod load;
mod parse;
mod receive;
mod run;
mod supervise;
mod table;
mod top;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

/// Drains UDP syslog on every core and streams it to Vector; what it received is delivered, or counted with the reason.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The sidecar: receive UDP, push to Vector
    Run(run::Args),
    /// Would `run` do well on this host, and if not, what mends it
    Check(check::Args),
    /// See it work: one flow of load through a sidecar into an embedded receiver
    Demo(demo::Args),
    /// Send numbered UDP messages
    Load(load::Args),
    /// Be a Vector source: print events, or count them
    Receive(receive::Args),
    /// Watch a running sluicegate: rates, loss, queue, endpoints, senders
    Top(top::Args),
    /// Show what becomes of messages: datagrams in, events out
    Parse(parse::Args),
    /// Show the effective configuration, every key with its comment
    Config(config::Args),
    /// Measure the pipeline, each stage a process of its own
    Bench(bench::Args),
    /// Receive UDP and throw it away: what receiving alone costs
    #[command(hide = true)]
    Discard(bench::DiscardArgs),
    /// Count lines over TCP: what a peer of ours is measured into
    #[command(hide = true)]
    CountLines(bench::SinkArgs),
    /// Count events of Vector's protocol: what we are measured into
    #[command(hide = true)]
    CountEvents(bench::SinkArgs),
    /// Make events of messages, batch and queue them: what a test counts the instructions of
    #[command(hide = true)]
    HotPath(bench::HotPathArgs),
}

/// Why a command ended early: one line for a person, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    fn usage(message: impl Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    fn failed(message: impl Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return fail(&Failure::usage(one_line(&error))),
        Err(help) => {
            help.print().ok(); // a closed stdout is no reason to fail
            return ExitCode::SUCCESS;
        }
    };
    let _logs = crate::logs::start();
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Receive(args) => receive::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Parse(args) => parse::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Discard(args) => bench::discard(&args),
        Command::CountLines(args) => bench::lines(&args),
        Command::CountEvents(args) => bench::events(&args),
        Command::HotPath(args) => bench::hot_path(&args),
    };
    result.map_or_else(|failure| fail(&failure), |()| ExitCode::SUCCESS)
}

fn fail(failure: &Failure) -> ExitCode {
    // Nothing is left to tell it to when stderr is closed.
    if !failure.message.is_empty() {
        writeln!(io::stderr(), "sluicegate: {}", failure.message).ok();
    }
    failure.code.into()
}

/// clap's message without its usage text, which `--help` has.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let said = text.split("\n\nUsage:").next().unwrap_or(&text).split("\n\nFor more").next().unwrap_or(&text);
    let words: Vec<_> = said.trim_start_matches("error: ").split_whitespace().collect();
    format!("{} (--help lists what there is)", words.join(" "))
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string(value).map_err(Failure::failed)?)
}

fn print(text: &str) -> Result<(), Failure> {
    match writeln!(io::stdout(), "{text}") {
        // `| head` has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(Failure { code: 1, message: String::new() })
        }
        written => written.map_err(|error| Failure::failed(format!("cannot write to stdout: {error}"))),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    // Pushing is a third of the work: more threads than this only wake each other (bench/HISTORY.md).
    let threads = (crate::config::usable_cores() / 2).clamp(1, 4);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("push")
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start a runtime: {error}")))
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// SIGTERM, SIGINT.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
}

/// The signals that a person or a supervisor sends. They do nothing by themselves once this listens.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    /// Whether the process was told to stop.
    stopped: bool,
}

impl Signals {
    /// Call it on a runtime.
    fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            stopped: false,
        })
    }

    /// Completes with a signal that was meant as a second one: some senders give the first one twice.
    async fn stop_in_earnest(&mut self) {
        const SAME: Duration = Duration::from_secs(1);
        let ignore = async {
            loop {
                self.next().await;
            }
        };
        tokio::time::timeout(SAME, ignore).await.unwrap_or(());
        self.stop().await;
    }

    /// Completes when the process is to stop.
    async fn stop(&mut self) {
        while self.next().await != Ask::Stop {}
    }

    async fn next(&mut self) -> Ask {
        let ask = tokio::select! {
            _ = self.terminate.recv() => Ask::Stop,
            _ = self.interrupt.recv() => Ask::Stop,
            _ = self.hangup.recv() => Ask::Reload,
        };
        self.stopped |= ask == Ask::Stop;
        ask
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_wrong_flag_is_answered_in_one_line() {
        let error = Cli::try_parse_from(["sluicegate", "run", "--lisen", "x"]).unwrap_err();
        let line = one_line(&error);
        assert!(line.contains("--lisen") && line.contains("'--listen'") && !line.contains('\n'), "{line}");
    }
}
