//! `sluicegate receive`: a `vector` source without a Vector.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Failure, Signals, print_json, runtime};
use crate::receiver::{self, Counter, Files, JsonLines, Sink};

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
    /// Speak TLS and nothing else, with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    tls_crt_file: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_crt_file")]
    tls_key_file: Option<PathBuf>,
    /// Demand client certificates that these CAs signed (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_crt_file")]
    tls_ca_file: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        if args.count {
            let counter = Arc::new(Counter::default());
            serve(args, Arc::clone(&counter)).await?;
            print_json(&counter.received())
        } else {
            let printer = Arc::new(JsonLines::new(io::stdout()));
            serve(args, Arc::clone(&printer)).await?;
            print_json(&printer.received())
        }
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

async fn serve(args: &Args, sink: Arc<impl Sink>) -> Result<(), Failure> {
    let address = &args.address;
    let files = args.tls_crt_file.clone().zip(args.tls_key_file.clone());
    let files =
        files.map(|(crt_file, key_file)| Files { crt_file, key_file, ca_file: args.tls_ca_file.clone() });
    let tls = files.map(|files| files.read()).transpose().map_err(Failure::usage)?;
    let mut signals = Signals::listen()?;
    let listener = receiver::bind(address).await.map_err(|error| {
        Failure::failed(format!(
            "cannot listen on {address}: {error}. Give an address of this machine and a free TCP port"
        ))
    })?;
    tracing::info!(address, tls = tls.is_some(), "receiving");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let serving = async {
        match tls {
            Some(tls) => receiver::serve_tls(listener, tls, sink, stopped).await,
            None => receiver::serve(listener, sink, stopped).await,
        }
    };
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => return result.map_err(Failure::failed),
        () = signals.stop() => drop(stop),
    }
    // Cut after the grace: what was not answered by then, its sender still has.
    tokio::time::timeout(GRACE, serving).await.ok();
    Ok(())
}
