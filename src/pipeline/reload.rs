//! A new configuration for a running pipeline: what needs no new socket, queue or batch.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tracing::{error, info, warn};

use super::Pipeline;
use super::start::{self, start_pushers};
use crate::config::{Config, Vector, keys};
use crate::logs;

impl Pipeline {
    /// Puts the sections `parse`, `rate_limit`, `vector` and `log` in force, and who may send. Batches that wait stay where they are, and
    /// those in flight end on the connections that they are on. What else has changed needs a restart, and is named.
    pub async fn apply(&mut self, new: Config) {
        let old = self.view.config();
        let changed = changed(&old, &new);
        let (live, waiting): (Vec<_>, Vec<_>) = changed.into_iter().partition(|path| is_live(path));
        // Lanes are the queue's, which stays.
        let vector = Vector { ordered: old.vector.ordered, ..new.vector };
        let mut config = Config {
            parse: new.parse,
            rate_limit: new.rate_limit,
            vector,
            log: new.log,
            ..Config::clone(&old)
        };
        for listener in &mut config.listeners {
            let same = new.listeners.iter().find(|other| other.address == listener.address);
            if let Some(other) = same {
                listener.permit_origin = other.permit_origin.clone();
            }
        }
        // Each was valid by itself; what stays of the old one may not go with the new.
        let config = match config.checked() {
            Ok(config) => config,
            Err(problems) => {
                let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
                return self.refuse(&problems.join("; "));
            }
        };
        logs::configure(&config.log);
        self.shared.parse.replace(config.parse.clone());
        // Another limit begins with full buckets; the same one goes on.
        if config.rate_limit != old.rate_limit {
            self.shared.limiter = start::limiter(&config);
        }
        let rules = start::rules(&config, self.shared.limiter.as_ref());
        self.shared.rules.iter().zip(rules).for_each(|(live, rules)| live.replace(rules));
        // TLS files may have changed where no option has.
        if config.vector != old.vector || config.vector.endpoints.iter().any(|endpoint| endpoint.tls) {
            self.replace_pushers(&config).await;
        }
        self.view.set_config(config);
        let books = &self.books.reloads;
        books.applied.fetch_add(1, Relaxed);
        books.last_refused.store(0, Relaxed);
        match live.is_empty() {
            true => info!(
                "the configuration was read again and is in force: nothing has changed that can be changed"
            ),
            false => info!(changed = live.join(", "), "the configuration was read again and is in force"),
        }
        if !waiting.is_empty() {
            let how = match old.takeover_path {
                Some(_) => "with run --takeover it loses nothing",
                None => {
                    "it would lose nothing with run --takeover, had this process a takeover.path, or with sockets of systemd's"
                }
            };
            warn!(
                keys = waiting.join(", "),
                how, "these changes need a restart; the old values stay in force"
            );
        }
    }

    /// Starts others in the pushers' place, which end with what they have in flight. Those of the reload before are told to
    /// let go, or a Vector that never answers would keep the batches of every generation in memory.
    async fn replace_pushers(&mut self, config: &Config) {
        while self.retired.try_join_next().is_some() {}
        if !self.retired.is_empty() {
            let in_flight = self.shared.queue.levels().in_flight.events;
            self.books.push.possible_duplicates.fetch_add(in_flight, Relaxed);
            self.retired.shutdown().await;
        }
        self.retired = std::mem::take(&mut self.pushers);
        let new =
            start_pushers(config, &self.shared.queue, &self.books, &self.dead_letters, &mut self.pushers);
        std::mem::replace(&mut self.retire, new).send_replace(true);
    }

    /// Notes that a configuration was refused: the old one stays in force.
    pub fn refuse(&self, problem: &str) {
        let books = &self.books.reloads;
        books.refused.fetch_add(1, Relaxed);
        books.last_refused.store(1, Relaxed);
        error!(problem, "the new configuration is refused; the old one stays in force");
    }
}

/// Whether a key of the configuration changes without a restart, by its path.
pub fn is_live(path: &str) -> bool {
    ["parse.", "rate_limit.", "vector.", "log.", "listeners[].permit_origin"]
        .iter()
        .any(|live| path.starts_with(live))
        && path != "vector.ordered"
}

/// The places of the file whose values differ.
fn changed(old: &Arc<Config>, new: &Config) -> Vec<String> {
    let both = old.listeners.len().min(new.listeners.len());
    let differs = |key: &&keys::Key| {
        let listeners = if key.path.starts_with("listeners[]") { 0..both } else { 0..1 };
        (old.listeners.len() != new.listeners.len() && key.flag == "listen")
            || listeners.into_iter().any(|at| (key.show)(old, at) != (key.show)(new, at))
    };
    keys::KEYS.iter().filter(differs).map(|key| key.path.to_owned()).collect()
}
