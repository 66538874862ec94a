//! One HTTP/2 connection, for as long as it lasts, and then the next one.

use std::time::{Duration, Instant};

use chrono::Utc;
use futures_util::future::join_all;
use tokio::time::sleep;
use tracing::{info, warn};

use super::dial::{Connection, dial};
use super::place::Place;
use super::stream::{self, End};
use super::tls::Seen;
use super::{Backoff, Context, Target};
use crate::books::{Certificates, Counted, Holder};
use crate::config::Endpoint;
use crate::tls::shown_time;

/// The connection that tries a place which is not trusted.
const PIONEER: usize = 0;

/// A connection that ends sooner, with nothing acknowledged, was not wanted; after so many of them that is worth a word.
const SHORT_LIFE: Duration = Duration::from_secs(2);
const SUSPICIOUS: u32 = 3;

/// Keeps a connection to the place until all work is done, or the place is retired.
pub(super) async fn keep(place: Place, number: usize, context: Context) {
    let Target { endpoint, books, .. } = &place.target;
    let mut backoff = Backoff::new(context.vector.retry_initial_backoff);
    let (mut failing, mut short_lives) = (None, 0);
    loop {
        let mut seen = Seen::default();
        let dialling = async {
            // One connection finds out whether a place that failed is well again.
            if number != PIONEER {
                place.until_trusted_is(true).await;
            }
            dial(endpoint, place.address, &context.vector.tls, &mut seen).await
        };
        // No work can come any more: a connection that is down need not be made again.
        let dialled = tokio::select! {
            dialled = dialling => dialled,
            () = context.dismissed() => return,
        };
        note(&seen, endpoint, &context.books.push.certificates);
        match dialled {
            Ok(connection) => {
                info!(%endpoint, address = %place.address, connection = number, "connected");
                failing = None;
                let begun = Instant::now();
                let _connected = Counted::at(&books.connected);
                match use_up(&connection, &place, number, &context).await {
                    End::Finished => return,
                    End::Broken { useful: true } => {
                        backoff.reset();
                        short_lives = 0;
                    }
                    End::Broken { useful: false } if begun.elapsed() < SHORT_LIFE => {
                        short_lives += 1;
                        if short_lives == SUSPICIOUS && number == PIONEER {
                            let address = place.address;
                            warn!(%endpoint, %address, "connections are closed as soon as they are made: is this the address of a `vector` source, and is its TLS off as http:// says?");
                        }
                    }
                    End::Broken { useful: false } => {}
                }
            }
            // Said once for each cause of an outage; the log line every ten seconds shows that it lasts.
            Err(error) => {
                let error = error.to_string();
                books.failed(&error);
                place.set_trusted(false);
                if failing.as_ref() != Some(&error) {
                    warn!(%endpoint, address = %place.address, connection = number, error, "cannot connect; trying on");
                    failing = Some(error);
                }
            }
        }
        tokio::select! {
            () = sleep(backoff.next(fastrand::f64())) => {}
            () = context.dismissed() => return,
        }
    }
}

/// Runs the connection's streams until they end.
async fn use_up(connection: &Connection, place: &Place, number: usize, context: &Context) -> End {
    let stream = |stream| {
        let is_pioneer = (number, stream) == (PIONEER, 0);
        stream::run(connection.clone(), place.clone(), is_pioneer, context.clone())
    };
    let ends = join_all((0..context.vector.streams).map(stream)).await;
    ends.into_iter().fold(End::Finished, End::and)
}

fn note(seen: &Seen, endpoint: &Endpoint, certificates: &Certificates) {
    let ours = seen.client.as_ref().map(|certificate| (Holder::Client, "", certificate));
    let name = endpoint.to_string();
    let theirs = seen.server.as_ref().map(|certificate| (Holder::Server, name.as_str(), certificate));
    for (holder, place, certificate) in ours.into_iter().chain(theirs) {
        let now = Utc::now();
        if certificates.note(holder, place, certificate.expires, now) {
            let what = if certificate.expires < now { "has expired" } else { "expires within 14 days" };
            let (which, expires) = (holder.name(), shown_time(certificate.expires));
            let subject = &certificate.subject;
            warn!(%endpoint, which, subject, expires, "a certificate {what}: renew it");
        }
    }
}
