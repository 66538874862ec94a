//! Whether the kernel takes the program that spreads datagrams over workers.

use std::net::SocketAddr;

use super::finding::Finding;
use crate::config::{Listener, Steering};
use crate::receive::try_steering;

/// What came of attaching it; none where none is needed.
pub(super) fn read(listener: &Listener) -> Option<Result<(), String>> {
    let needed = listener.steering != Steering::Flow && listener.workers > 1;
    needed.then(|| try_steering(listener.steering).map_err(|error| error.to_string()))
}

pub(super) fn judge(address: SocketAddr, tried: Option<&Result<(), String>>) -> Finding {
    let found = |found: String, means: &str| Finding::ok("steering", address, found, means);
    match tried {
        None => found("by flow, or one worker".to_owned(), "one sender is read by one worker"),
        Some(Ok(())) => found("SO_ATTACH_REUSEPORT_CBPF allowed".to_owned(), "one sender is read by every worker"),
        Some(Err(error)) => found(
            format!("SO_ATTACH_REUSEPORT_CBPF refused: {error}"),
            "one sender would be read by one worker, as with `flow`",
        )
        .fail([
            "allow setsockopt in the container's seccomp profile (Docker's and Kubernetes' RuntimeDefault do)".to_owned(),
            "or be content with it: --steering flow".to_owned(),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_refused_program_matters_where_one_is_asked_for() {
        let address = "[::]:5514".parse().unwrap();
        assert_eq!(judge(address, Some(&Ok(()))).level, Level::Ok);
        let refused = judge(address, Some(&Err("Operation not permitted".into())));
        assert!(refused.level == Level::Fail && refused.found.contains("not permitted"), "{refused:?}");
        let listener = Listener { workers: 2, steering: Steering::Flow, ..Listener::new(address) };
        let content = read(&listener);
        assert_eq!(judge(address, content.as_ref()).level, Level::Ok);
        let listener = Listener { steering: Steering::Spread, ..listener };
        assert_eq!(read(&listener), Some(Ok(())));
    }
}
