//! What has to hold of a configuration, all of it looked at before anything is said.

mod tls;

use std::time::Duration;

use super::{Config, Invalid, MAX_DATAGRAM, MAX_REQUEST, MAX_WORKERS, Steering};
use crate::encode::Shape;
use crate::push::Backoff;

impl Config {
    /// Takes a configuration as valid, or says everything that is wrong with it.
    ///
    /// # Errors
    /// One [`Invalid`] for each finding.
    pub fn checked(self) -> Result<Self, Vec<Invalid>> {
        let mut check = Check::default();
        let nowhere = "nowhere to listen: name an address, such as [::]:5514";
        check.that(!self.listeners.is_empty(), "listeners[].address", nowhere);
        let nowhere = "nowhere to push: name a Vector, such as http://127.0.0.1:6000, or give `run` --stdout";
        check.that(!self.vector.endpoints.is_empty(), "vector.endpoints", nowhere);
        for (at, endpoint) in self.vector.endpoints.iter().enumerate() {
            let twice = self.vector.endpoints[..at].contains(endpoint);
            let problem = format!("{endpoint} is there twice: vector.connections makes more connections");
            check.that(!twice, "vector.endpoints", &problem);
        }
        for (at, listener) in self.listeners.iter().enumerate() {
            let path = |name: &str| format!("listeners[{at}].{name}");
            let address = listener.address;
            // Where no address is given at all, there is this one.
            let problem = "no address with a port is given: name one, such as [::]:5514";
            check.that(address.port() != 0, &path("address"), problem);
            let twice = self.listeners[..at].iter().any(|other| other.address == address);
            check.that(
                !twice,
                &path("address"),
                &format!("{address} is there twice: give each address once"),
            );
            check.range(&path("workers"), listener.workers, 1, MAX_WORKERS);
            check.range(&path("max_length"), listener.max_length, 1, MAX_DATAGRAM);
            // The kernel takes no more for a socket.
            let most = listener.workers.max(1) << 30;
            check.range(&path("receive_buffer_bytes"), listener.receive_buffer_bytes, 4_096, most);
        }
        check.range("batch.max_bytes", self.batch.max_bytes, 1_024, MAX_REQUEST);
        check.range("batch.max_events", self.batch.max_events, 1, 1_000_000);
        check.range("buffer.max_bytes", self.buffer.max_bytes, 1, usize::MAX);
        // Less than a batch would never take one.
        check.range("buffer.max_disk_bytes", self.buffer.max_disk_bytes, 1 << 20, usize::MAX);
        check.range("dead_letter.max_bytes", self.dead_letter.max_bytes, 1_024, usize::MAX);
        check.range("rate_limit.threshold", self.rate_limit.threshold, 0, 1_000_000_000);
        check.lasts("rate_limit.window_secs", self.rate_limit.window);
        check.range("vector.connections", self.vector.connections, 1, 1_024);
        check.range("vector.streams", self.vector.streams, 1, 1_024);
        check.range("admin.top_senders", self.admin.top_senders, 0, 1_000);
        check.lasts("batch.timeout_secs", self.batch.timeout);
        check.lasts("vector.request.timeout_secs", self.vector.request_timeout);
        let backoff = self.vector.retry_initial_backoff;
        let problem = "give more than 0 and 5 s at the most, which is the longest pause";
        let right = !backoff.is_zero() && backoff <= Backoff::LONGEST;
        check.that(right, "vector.request.retry_initial_backoff_secs", problem);
        check.names(&self.parse.shape);
        if self.vector.ordered {
            check.order(&self);
        }
        check.tls(&self.vector);
        if check.found.is_empty() { Ok(self) } else { Err(check.found) }
    }
}

#[derive(Default)]
struct Check {
    found: Vec<Invalid>,
}

impl Check {
    fn that(&mut self, right: bool, path: &str, problem: &str) {
        if !right {
            self.found.push(Invalid { path: path.to_owned(), problem: problem.to_owned() });
        }
    }

    fn range(&mut self, path: &str, value: usize, low: usize, high: usize) {
        let right = (low..=high).contains(&value);
        self.that(right, path, &format!("{value} is out of range: give {low} to {high}"));
    }

    /// Fields that a person names must not overwrite what the event is about, or each other.
    fn names(&mut self, shape: &Shape) {
        let mut taken = vec!["message", "timestamp", "source_type", "parse_error"];
        taken.extend(shape.keep_raw.then_some("raw"));
        let fields = shape.fields.iter().map(|(name, _)| ("parse.fields", name.as_str()));
        let keys = [
            ("parse.host_key", shape.host_key.as_str()),
            ("parse.port_key", shape.port_key.as_str()),
            ("parse.sequence_key", shape.sequence_key.as_str()),
        ];
        for (path, name) in keys.into_iter().chain(fields).filter(|(_, name)| !name.is_empty()) {
            self.that(
                !taken.contains(&name),
                path,
                &format!("`{name}` would overwrite another field of that name"),
            );
            taken.push(name);
        }
    }

    /// What would let events of one sender overtake each other.
    fn order(&mut self, config: &Config) {
        for (at, listener) in config.listeners.iter().enumerate() {
            let right = listener.steering == Steering::Flow;
            let problem = "vector.ordered needs `flow`: any other gives a sender's datagrams to several workers, which overtake each other";
            self.that(right, &format!("listeners[{at}].steering"), problem);
        }
        let problem =
            "vector.ordered needs one endpoint: by several ways, events of one sender overtake each other";
        self.that(config.vector.endpoints.len() < 2, "vector.endpoints", problem);
    }

    fn lasts(&mut self, path: &str, time: Duration) {
        const DAY: Duration = Duration::from_secs(86_400);
        let right = time >= Duration::from_millis(1) && time <= DAY;
        self.that(
            right,
            path,
            &format!("{} s is out of range: give a millisecond to a day", time.as_secs_f64()),
        );
    }
}
