//! States that never were, in the JSON that the admin port answers with.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::top::model::Model;
use crate::top::screen::Screen;
use crate::top::status::Snapshot;

const WORKERS: u64 = 8;

/// A sluicegate that goes on second by second: 100,000 messages each.
pub(super) struct MadeUp {
    pub(super) live: Result<(), String>,
    pub(super) ready: Result<(), String>,
    screen: Screen,
    status: Json,
    start: Instant,
    seconds: u64,
}

impl MadeUp {
    pub(super) fn new() -> Self {
        let model = Model::new("127.0.0.1:9615".into(), Duration::from_secs(1));
        Self {
            live: Ok(()),
            ready: Ok(()),
            screen: Screen::new(model, true),
            status: status(5_000),
            start: Instant::now(),
            seconds: 0,
        }
    }

    pub(super) fn screen(&self) -> &Screen {
        &self.screen
    }

    pub(super) fn screen_mut(&mut self) -> &mut Screen {
        &mut self.screen
    }

    /// A second passes, with 100,000 messages and what else happens.
    pub(super) fn next(&mut self, happens: impl FnOnce(&mut Json)) {
        self.pass(100_000, happens);
    }

    fn pass(&mut self, messages: u64, happens: impl FnOnce(&mut Json)) {
        self.flow(messages);
        happens(&mut self.status);
        let snapshot = Snapshot {
            status: serde_json::from_value(self.status.clone()).unwrap(),
            senders: Some(serde_json::from_value(senders()).unwrap()),
            live: self.live.clone(),
            ready: self.ready.clone(),
        };
        self.screen.take(self.now(), Ok(snapshot));
    }

    /// A second passes without an answer.
    pub(super) fn fail(&mut self, why: &str) {
        self.seconds += 1;
        self.screen.take(self.now(), Err(why.to_owned()));
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_secs(self.seconds)
    }

    fn flow(&mut self, messages: u64) {
        self.seconds += 1;
        for key in ["received", "delivered"] {
            add(&mut self.status[key], messages);
        }
        add(&mut self.status["received_bytes"], messages * 1_012);
        add(&mut self.status["parse_failures"], messages / 50);
        add(&mut self.status["parse_failures_by_reason"]["timestamp"], messages / 60);
        add(&mut self.status["parse_failures_by_reason"]["header"], messages / 300);
        for worker in self.status["workers"].as_array_mut().unwrap() {
            add(&mut worker["received"], messages / WORKERS);
        }
        for endpoint in self.status["endpoints"].as_array_mut().unwrap() {
            add(&mut endpoint["delivered"], messages / 2);
        }
        self.status["uptime_secs"] = json!(self.status["uptime_secs"].as_f64().unwrap() + 1.0);
    }
}

/// Three looks, nothing amiss.
pub(super) fn steady() -> Screen {
    let mut state = MadeUp::new();
    (0..3).for_each(|_| state.next(|_| {}));
    state.screen
}

/// Two looks at a sluicegate that tells no more than it has to.
pub(super) fn bare() -> Screen {
    let mut screen = Screen::new(Model::new("127.0.0.1:9615".into(), Duration::from_secs(1)), true);
    let start = Instant::now();
    for seconds in [0, 1] {
        let status = json!({
            "received": seconds * 100, "received_bytes": 0, "delivered": 0, "rejected": 0, "shed": 0, "spooled": 0,
            "in_memory": 7, "kernel_drops": 0, "parse_failures": 0,
        });
        let status = serde_json::from_value(status).unwrap();
        let snapshot = Snapshot { status, senders: None, live: Ok(()), ready: Ok(()) };
        screen.take(start + Duration::from_secs(seconds), Ok(snapshot));
    }
    screen
}

/// The picture in the documentation: one Vector of two is gone, and the queue fills.
pub(super) fn picture() -> Screen {
    const TOO_MANY: u64 = 9_000; // for the other one, each second
    let mut state = MadeUp::new();
    for second in 0..200_u64 {
        let outage = second.saturating_sub(180);
        let messages = (100_000.0 + (second as f64 / 15.0).sin() * 25_000.0) as u64 / 8 * 8;
        state.pass(messages, |status| {
            status["queue"]["waiting_events"] = json!(outage * TOO_MANY + 1_200);
            status["queue"]["waiting_bytes"] = json!((outage * TOO_MANY + 1_200) * 1_100);
            if outage > 0 {
                subtract(&mut status["delivered"], TOO_MANY);
                add(&mut status["endpoints"][0]["delivered"], messages / 2 - TOO_MANY);
                let gone = &mut status["endpoints"][1];
                subtract(&mut gone["delivered"], messages / 2);
                (gone["state"], gone["connected"]) = ("down".into(), 0.into());
                (gone["failures"], gone["last_error"]) = (outage.into(), "Connection refused".into());
                status["retries"] = json!(4);
            }
            if second == 90 {
                status["kernel_drops"] = json!(1_240);
                status["host"]["udp_rcvbuf_errors"] = json!(1_240);
            }
        });
    }
    state.screen
}

fn add(value: &mut Json, more: u64) {
    *value = json!(value.as_u64().unwrap() + more);
}

fn subtract(value: &mut Json, less: u64) {
    *value = json!(value.as_u64().unwrap() - less);
}

/// `/status` after so many seconds of 100,000 messages.
pub(super) fn status(seconds: u64) -> Json {
    let received = seconds * 100_000;
    let worker = |number: u64| {
        json!({
            "listener": "[::]:5514", "worker": number, "steering": "spread", "received": received / WORKERS,
            "kernel_drops": 0, "socket_queue_bytes": 256 << 10, "buffer_bytes": 8 << 20,
        })
    };
    let endpoint = |url: &str| {
        json!({
            "endpoint": url, "state": "connected", "connections": 2, "connected": 2, "delivered": received / 2,
            "failures": 0, "last_error": null,
        })
    };
    json!({
        "version": "0.1.0", "uptime_secs": 269_318 + seconds,
        "received": received, "received_bytes": received * 1_012, "delivered": received, "rejected": 0, "shed": 0,
        "spooled": 0, "in_memory": 24_000, "kernel_drops": 0, "parse_failures": received / 50,
        "cpu_us_per_event": 3.7, "requests": received / 1_000, "retries": 0, "possible_duplicates": 0,
        "shed_by_reason": {"queue_full": 0, "too_long": 0, "shutdown": 0},
        "parse_failures_by_reason": {"timestamp": received / 60, "header": received / 300, "blank": 0},
        "batches_by_reason": {"bytes": 80, "age": 20, "stop": 0},
        "queue": {
            "waiting_events": 20_000, "waiting_bytes": 21 << 20, "limit_bytes": 256 << 20,
            "in_flight_events": 4_000, "in_flight_bytes": 4 << 20,
        },
        "push_latency_secs": {"p50": 0.012, "p99": 0.048}, "receive_to_ack_secs": {"p50": 0.2, "p99": 0.31},
        "endpoints": [endpoint("http://10.0.0.11:6000"), endpoint("http://10.0.0.12:6000")],
        "host": {"udp_rcvbuf_errors": 0, "udp_mem_errors": 0, "softnet_dropped": 0},
        "workers": (0..WORKERS).map(worker).collect::<Vec<_>>(),
    })
}

fn senders() -> Json {
    let sender = |last: u64, count: u64, error: u64| json!({"sender": format!("192.0.2.{last}"), "count": count, "error": error});
    json!({
        "by_messages": [sender(1, 310_000_000, 0), sender(7, 95_000_000, 0), sender(9, 41_000_000, 12_000),
                        sender(30, 22_000_000, 90_000), sender(31, 11_000_000, 90_000)],
        "by_bytes": [sender(1, 401_000_000_000, 0), sender(9, 22_000_000_000, 0)],
        "by_parse_failures": [sender(7, 9_000_000, 0)],
    })
}
