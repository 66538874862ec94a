//! `sluicegate receive`: a `vector` source without a Vector.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::{Failure, Signals, print_json, runtime};
use crate::receiver::{self, Counter, JsonLines, Sink};

/// Connections that are still open this long after the signal are cut.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address and TCP port, such as 127.0.0.1:6000
    address: String,
    /// Print each event as a JSON object (the default)
    #[arg(long, conflicts_with = "count")]
    json: bool,
    /// Only count events
    #[arg(long)]
    count: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        if args.count {
            let counter = Arc::new(Counter::default());
            serve(&args.address, Arc::clone(&counter)).await?;
            print_json(&counter.received())
        } else {
            let printer = Arc::new(JsonLines::new(io::stdout()));
            serve(&args.address, Arc::clone(&printer)).await?;
            print_json(&printer.received())
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

async fn serve(address: &str, sink: Arc<impl Sink>) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let listener = receiver::bind(address).await.map_err(|error| {
        Failure::failed(format!(
            "cannot listen on {address}: {error}. Give an address of this machine and a free TCP port"
        ))
    })?;
    tracing::info!(address, "receiving");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = receiver::serve(listener, sink, async { drop(stopped.await) });
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => return result.map_err(Failure::failed),
        () = signals.stop() => drop(stop),
    }
    // Cut after the grace: what was not answered by then, its sender still has.
    tokio::time::timeout(GRACE, serving).await.ok();
    Ok(())
}
