//! The admin port of a command that runs a pipeline.

use std::net::{SocketAddr, TcpListener};

use tracing::{info, warn};

use super::Failure;
use crate::admin::{self, Admin};
use crate::config::Config;
use crate::pipeline::Pipeline;
use crate::takeover::Taken;

/// The admin port: the one of the process before, or a new one.
pub(super) fn bind(
    config: &Config,
    taken: Option<&mut Taken>,
) -> Result<Option<(SocketAddr, TcpListener)>, Failure> {
    let Some(address) = config.admin.address else { return Ok(None) };
    let listener = match taken.and_then(|taken| taken.take_admin(address)) {
        Some(listener) => Ok(listener),
        None => TcpListener::bind(address),
    };
    match listener {
        Ok(listener) => Ok(Some((address, listener))),
        Err(error) if config.admin.required => Err(Failure::failed(format!(
            "cannot serve the admin port on {address}: {error}. Choose a free one with --admin, or none with --admin ''"
        ))),
        // The default port: a second sluicegate on the machine has it, and its datagrams matter more.
        Err(error) => {
            warn!(%address, %error, "no admin port; choose a free one with --admin");
            Ok(None)
        }
    }
}

/// Serves there for as long as the pipeline is there.
pub(super) fn serve((address, listener): (SocketAddr, TcpListener), pipeline: &Pipeline) -> Option<Admin> {
    match admin::start(listener, pipeline.view()) {
        Ok(admin) => {
            info!(%address, "admin port: /metrics, /livez, /readyz, /status, /top, /config, and gRPC health");
            Some(admin)
        }
        Err(error) => {
            warn!(%address, %error, "no admin port");
            None
        }
    }
}
