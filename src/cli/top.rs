//! `sluicegate top`: a running sluicegate, live in a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use rustix::termios::tcgetwinsize;

use super::{Failure, Signals};
use crate::config::units;
use crate::top;

/// The size of a frame where there is no terminal to ask.
const NO_TERMINAL: (u16, u16) = (80, 24);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The admin port of a running sluicegate
    #[arg(default_value = "127.0.0.1:9615", value_parser = address)]
    address: String,
    /// Time from look to look
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print one frame as text and exit
    #[arg(long)]
    once: bool,
}

/// HOST:PORT, also as the URL that it is part of.
fn address(text: &str) -> Result<String, String> {
    let address = text.trim_start_matches("http://").trim_end_matches('/');
    let port = address.rsplit_once(':').and_then(|(host, port)| {
        let has_host = !host.is_empty() && (host.starts_with('[') == host.contains(':'));
        port.parse::<u16>().ok().filter(|port| *port > 0 && has_host)
    });
    match port {
        Some(_) => Ok(address.to_owned()),
        None => {
            Err(format!("`{text}` is no address of an admin port: write HOST:PORT, such as 127.0.0.1:9615"))
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    match units::duration(text)? {
        interval if interval < Duration::from_millis(100) => {
            Err(format!("`{text}` is too often: write 100ms or more"))
        }
        interval if interval > Duration::from_secs(3_600) => {
            Err(format!("`{text}` is too seldom: write 1h or less"))
        }
        interval => Ok(interval),
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let result = runtime.block_on(async { if args.once { once(args).await } else { watch(args).await } });
    runtime.shutdown_background(); // a name that is being looked up does not hold up the end
    result
}

async fn once(args: &Args) -> Result<(), Failure> {
    let frame = top::once(&args.address, args.interval, size()).await.map_err(Failure::failed)?;
    let written = io::stdout().write_all(frame.as_bytes());
    written.map_err(|error| Failure::failed(format!("cannot write to stdout: {error}")))
}

async fn watch(args: &Args) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::usage("top needs a terminal; --once prints one frame where there is none"));
    }
    let Signals { mut terminate, mut interrupt, mut hangup, .. } = Signals::listen()?;
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    };
    let watched = top::watch(&args.address, args.interval, stop).await;
    watched.map_err(|error| Failure::failed(format!("cannot use the terminal: {error}")))
}

/// Columns and rows of the terminal that is written to, or that errors go to.
fn size() -> (u16, u16) {
    let sizes = [tcgetwinsize(io::stdout()), tcgetwinsize(io::stderr())];
    let mut known = sizes.into_iter().flatten().filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.next().map_or(NO_TERMINAL, |size| (size.ws_col, size.ws_row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        for (text, expected) in [
            ("127.0.0.1:9615", "127.0.0.1:9615"),
            ("http://node-1:9615/", "node-1:9615"),
            ("[::1]:9615", "[::1]:9615"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(expected));
        }
        for wrong in ["node-1", ":9615", "node-1:0", "node-1:http", "::1:9615", ""] {
            assert!(address(wrong).unwrap_err().contains("HOST:PORT"), "{wrong}");
        }
    }

    #[test]
    fn intervals_have_bounds() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        assert!(interval("0").unwrap_err().contains("100ms"));
        assert!(interval("2h").unwrap_err().contains("1h"));
    }
}
