//! The Vectors behind an endpoint's name: each address has connections of its own.
//!
//! A headless Service of Kubernetes has an address for each pod, and they come and go; so the name is asked for again every few
//! seconds. An address that is gone takes no more batches and ends what it has; a new one gets its share at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::dial::{CONNECT_TIMEOUT, DialError};
use super::place::Place;
use super::{Backoff, Context, Target, supervise};
use crate::config::Endpoint;

/// How often a name is looked up again while one of its addresses is connected.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Addresses of one name that are used: each may hold `connections` × `streams` batches in memory.
const MOST: usize = 64;

/// Keeps connections to every address behind the endpoint's name until all work is done. All of them are in this one
/// task: they mostly wait, and when it is cancelled, every batch is back in the queue before anybody looks.
pub(super) async fn keep(target: Target, context: Context) {
    let mut backoff = Backoff::new(context.vector.retry_initial_backoff);
    let mut places = Places::new(target.clone(), context.clone());
    let mut look = resolve(target.endpoint.clone(), Duration::ZERO).boxed();
    loop {
        tokio::select! {
            found = &mut look => {
                places.follow(found);
                let wait = match target.books.connected.load(Relaxed) {
                    0 => backoff.next(fastrand::f64()),
                    _ => {
                        backoff.reset();
                        LOOK_AGAIN
                    }
                };
                look = match target.endpoint.host.parse::<IpAddr>() {
                    Ok(_) => std::future::pending().boxed(),
                    Err(_) => resolve(target.endpoint.clone(), wait).boxed(),
                };
            }
            Some(()) = places.connections.next() => {}
            () = context.dismissed() => break,
        }
    }
    places.retire_all();
    while places.connections.next().await.is_some() {}
}

/// The addresses behind the name, after a while.
async fn resolve(endpoint: Endpoint, wait: Duration) -> Result<Vec<SocketAddr>, DialError> {
    sleep(wait).await;
    let found = timeout(CONNECT_TIMEOUT, lookup_host((endpoint.host.as_str(), endpoint.port))).await;
    found.map_err(|_| DialError::Timeout)?.map(Iterator::collect).map_err(DialError::Resolve)
}

/// What an endpoint's connections go to.
struct Places {
    target: Target,
    context: Context,
    /// The switch that retires each.
    retire: BTreeMap<SocketAddr, watch::Sender<bool>>,
    connections: FuturesUnordered<BoxFuture<'static, ()>>,
    /// What was wrong with the name, as far as it was logged.
    complaint: Option<String>,
}

impl Places {
    fn new(target: Target, context: Context) -> Self {
        let (retire, connections) = (BTreeMap::new(), FuturesUnordered::new());
        Self { target, context, retire, connections, complaint: None }
    }

    /// Follows what the resolver says; where it says nothing, those that are known stay.
    fn follow(&mut self, found: Result<Vec<SocketAddr>, DialError>) {
        let endpoint = &self.target.endpoint;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let error = error.to_string();
                if self.retire.is_empty() {
                    self.target.books.failed(&error);
                }
                if self.complaint.as_ref() != Some(&error) {
                    warn!(%endpoint, error, known = self.retire.len(), "cannot look the name up; trying on");
                    self.complaint = Some(error);
                }
                return;
            }
        };
        self.complaint = None;
        let is_down = self.target.books.connected.load(Relaxed) == 0;
        let v4 = is_v4_wanted(&found, self.retire.keys().next().map(SocketAddr::is_ipv4), is_down);
        let of_family = found.iter().filter(|address| address.is_ipv4() == v4);
        let wanted: BTreeSet<_> = match self.context.vector.ordered {
            false => of_family.take(MOST).collect(),
            // Several Vectors would be several ways for one sender's events.
            true => {
                let in_use = |address: &&SocketAddr| self.retire.contains_key(*address);
                let mut choice: Vec<_> = of_family.collect();
                choice.sort_by_key(|address| in_use(address) == is_down); // that in use first, or last when it is down
                choice.into_iter().take(1).collect()
            }
        };
        self.retire.retain(|address, retire| {
            let stays = wanted.contains(address);
            if !stays {
                retire.send_replace(true);
            }
            if !found.contains(address) {
                info!(%endpoint, %address, "an address is gone: it takes no more batches");
            }
            stays
        });
        for address in wanted {
            if !self.retire.contains_key(address) {
                self.begin(*address);
            }
        }
        self.target.books.connections.store(self.retire.len() * self.context.vector.connections, Relaxed);
    }

    fn begin(&mut self, address: SocketAddr) {
        let (retire, retired) = watch::channel(false);
        self.retire.insert(address, retire);
        let context = Context { retired, ..self.context.clone() };
        let place = Place::new(self.target.clone(), address);
        for number in 0..context.vector.connections {
            self.connections.push(supervise(place.clone(), number, context.clone()).boxed());
        }
    }

    fn retire_all(&self) {
        for retire in self.retire.values() {
            retire.send_replace(true);
        }
    }
}

/// Whether a name's IPv4 addresses are used, or its IPv6 ones: they are two ways to the same Vectors. The resolver's first
/// choice is followed, and then what is in use, unless that is `down` and there is another way.
fn is_v4_wanted(found: &[SocketAddr], in_use: Option<bool>, down: bool) -> bool {
    let has = |v4| found.iter().any(|address| address.is_ipv4() == v4);
    match in_use {
        Some(v4) if down || !has(v4) => v4 != has(!v4),
        Some(v4) => v4,
        None => found.first().is_some_and(SocketAddr::is_ipv4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_in_use_stays_unless_it_is_down_and_there_is_another() {
        let addresses =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let both = addresses(&["[::1]:1", "127.0.0.1:1"]);
        let (only_v4, only_v6) = (addresses(&["127.0.0.1:1"]), addresses(&["[::1]:1"]));
        for (found, in_use, down, expected) in [
            (&both, None, true, false),
            (&both, Some(false), true, true),
            (&both, Some(true), true, false),
            (&both, Some(true), false, true),
            (&only_v4, None, true, true),
            (&only_v4, Some(true), true, true),
            (&only_v4, Some(false), false, true),
            (&only_v6, Some(true), false, false),
            (&vec![], Some(true), true, true),
            (&vec![], Some(false), false, false),
        ] {
            assert_eq!(is_v4_wanted(found, in_use, down), expected, "{found:?} {in_use:?} {down}");
        }
    }
}
