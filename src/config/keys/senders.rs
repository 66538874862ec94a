//! Who may send, and how much.

use serde_json::json;

use super::values::{integer, shown_time, texts, time};
use super::{Key, Kind};
use crate::config::Origins;

pub(super) const KEYS: &[Key] = &[
    Key {
        path: "listeners[].permit_origin",
        flag: "permit-origin",
        kind: Kind::Texts("CIDR"),
        help: "Networks that may send, such as 10.0.0.0/8 or ::1; others are counted and discarded; empty lets everyone send",
        set: |draft, value| {
            let origins = Origins::parse(&texts(value)?)?;
            draft.each_listener(|l| l.permit_origin = origins.clone());
            Ok(())
        },
        show: |config, at| json!(config.listeners[at].permit_origin.written()),
    },
    Key {
        path: "rate_limit.threshold",
        flag: "rate-limit-threshold",
        kind: Kind::Integer,
        help: "Datagrams that each sender may send in a window; more are counted and discarded; 0 for no limit",
        set: |draft, value| integer(value).map(|n| draft.config.rate_limit.threshold = n),
        show: |config, _| json!(config.rate_limit.threshold),
    },
    Key {
        path: "rate_limit.window_secs",
        flag: "rate-limit-window",
        kind: Kind::Time,
        help: "That window; the threshold is also how many may come at once",
        set: |draft, value| time(value).map(|time| draft.config.rate_limit.window = time),
        show: |config, _| shown_time(config.rate_limit.window),
    },
];
