//! `sluicegate load`: a numbered load from one flow or many.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::{Failure, Signals, print_json};
use crate::config::units;
use crate::load::{Corpus, Load, Sent, Until};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to send, such as 127.0.0.1:5514
    address: String,
    /// Messages a second [default: as many as go]
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Send this many messages
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    count: Option<u64>,
    /// Send for this long [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    seconds: Option<Duration>,
    /// Bytes of each message
    #[arg(long, value_name = "BYTES", default_value_t = 1_100)]
    size: usize,
    /// Source ports that take turns
    #[arg(long, value_name = "N", default_value_t = 1)]
    flows: usize,
    /// Makes the messages' text, and marks the run [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Send the lines of this file, over and over, instead of numbered messages; a dead-letter file's as they came
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// Send each line of the corpus once
    #[arg(long, requires = "corpus", conflicts_with_all = ["seconds", "count"])]
    once: bool,
    /// Give the kernel each datagram by itself (no UDP_SEGMENT)
    #[arg(long)]
    no_segment: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let load = args.load()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    let sent = runtime.block_on(send(load))?;
    print_json(&sent)
}

impl Args {
    fn load(&self) -> Result<Load, Failure> {
        let unreadable = |path: &PathBuf, error| {
            Failure::failed(format!("cannot use the corpus {}: {error}", path.display()))
        };
        let corpus =
            self.corpus.as_ref().map(|path| Corpus::read(path).map_err(|error| unreadable(path, error)));
        let corpus = corpus.transpose()?;
        let elapsed = Until::Elapsed(self.seconds.unwrap_or(Duration::from_secs(10)));
        let once = corpus.as_ref().filter(|_| self.once).map(Corpus::messages);
        let load = Load {
            target: resolve(&self.address)?,
            rate: self.rate,
            until: self.count.or(once).map_or(elapsed, Until::Count),
            size: self.size,
            flows: self.flows,
            seed: self.seed.unwrap_or_else(|| fastrand::u64(..)),
            corpus,
            segment: !self.no_segment,
        };
        load.checked().map_err(Failure::usage)
    }
}

fn resolve(address: &str) -> Result<SocketAddr, Failure> {
    let advice = "write IP:PORT, [IPV6]:PORT, or NAME:PORT with a name that this machine can look up";
    let mut found = address
        .to_socket_addrs()
        .map_err(|error| Failure::failed(format!("cannot send to `{address}`: {error}; {advice}")))?;
    found.next().ok_or_else(|| Failure::failed(format!("`{address}` has no address; {advice}")))
}

/// Sends on a thread of its own, until it is done or a signal comes.
pub(super) async fn send(load: Load) -> Result<Sent, Failure> {
    let mut signals = Signals::listen()?;
    let stop = Arc::new(AtomicBool::new(false));
    let target = load.target;
    let mut sending = tokio::task::spawn_blocking({
        let stop = Arc::clone(&stop);
        move || load.run(&stop)
    });
    let done = tokio::select! {
        done = &mut sending => done,
        () = signals.stop() => {
            stop.store(true, Relaxed);
            sending.await
        }
    };
    done.map_err(Failure::failed)?.map_err(|error| {
        Failure::failed(format!("cannot send to {target}: {error}; is there a route to it?"))
    })
}
