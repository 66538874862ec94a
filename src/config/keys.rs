//! Every option, once: its place in the file, its flag, its meaning, how it is read and how it is shown.
//!
//! Flags, environment variables, the file, `sluicegate config` and its schema all come from this table, so none can
//! know what another does not.

mod senders;
mod values;
mod vector;

use serde_json::{Map, Value, json};

use super::draft::Draft;
use super::{Admin, Config, LogFormat, LogLevel, Steering, WhenFull};
use crate::parse::{Mode, OnError};
use values::{
    address, choice, fields, file, integer, shown_file, shown_size, shown_time, size, switch, text, time,
};

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its place in the file; `listeners[].` stands for each listener.
    pub path: &'static str,
    /// Its flag, without the dashes.
    pub flag: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What it does, in a line.
    pub help: &'static str,
    pub(super) set: fn(&mut Draft, &Value) -> Result<(), String>,
    /// Its value in a configuration; of the listener by this number, where it is a listener's.
    pub show: fn(&Config, usize) -> Value,
}

/// What an option holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text; the word stands for it in `--help`.
    Text(&'static str),
    /// A whole number.
    Integer,
    /// Bytes: a number, or one with a unit.
    Size,
    /// Seconds: a number, or one with a unit.
    Time,
    /// Yes or no.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts; the word stands for one in `--help`.
    Texts(&'static str),
    /// Names and texts.
    Table(&'static str),
}

/// Every option, in the order in which they are shown.
pub const KEYS: &[Key] = &joined();

const GROUPS: [&[Key]; 4] = [EVENTS, senders::KEYS, vector::KEYS, PROCESS];
const COUNT: usize = EVENTS.len() + senders::KEYS.len() + vector::KEYS.len() + PROCESS.len();

/// One table of its groups.
const fn joined() -> [Key; COUNT] {
    let mut all = [EVENTS[0]; COUNT];
    let (mut group, mut row, mut next) = (0, 0, 0);
    while group < GROUPS.len() {
        if row < GROUPS[group].len() {
            all[next] = GROUPS[group][row];
            (row, next) = (row + 1, next + 1);
        } else {
            (group, row) = (group + 1, 0);
        }
    }
    all
}

/// From a datagram to a batch that waits.
const EVENTS: &[Key] = &[
    Key {
        path: "listeners[].address",
        flag: "listen",
        kind: Kind::Text("ADDR"),
        help: "Address and UDP port to listen on, such as [::]:5514; the flag may be repeated",
        set: |draft, value| text(value).and_then(address).map(|a| draft.each_listener(|l| l.address = a)),
        show: |config, at| json!(config.listeners[at].address.to_string()),
    },
    Key {
        path: "listeners[].workers",
        flag: "workers",
        kind: Kind::Integer,
        help: "Sockets for each address, and threads at the most; as many read as the load needs",
        set: |draft, value| integer(value).map(|n| draft.each_listener(|l| l.workers = n)),
        show: |config, at| json!(config.listeners[at].workers),
    },
    Key {
        path: "listeners[].steering",
        flag: "steering",
        kind: Kind::Choice(&["spread", "flow", "cpu"]),
        help: "Which worker gets a datagram: `spread` uses every core for one flow, `flow` keeps each sender's order",
        set: |draft, value| choice::<Steering>(value).map(|s| draft.each_listener(|l| l.steering = s)),
        show: |config, at| json!(config.listeners[at].steering),
    },
    Key {
        path: "listeners[].receive_buffer_bytes",
        flag: "receive-buffer-bytes",
        kind: Kind::Size,
        help: "Kernel receive buffer of each address, over all its sockets",
        set: |draft, value| size(value).map(|n| draft.each_listener(|l| l.receive_buffer_bytes = n)),
        show: |config, at| shown_size(config.listeners[at].receive_buffer_bytes),
    },
    Key {
        path: "listeners[].max_length",
        flag: "max-length",
        kind: Kind::Size,
        help: "Longest datagram taken; longer ones are counted and discarded",
        set: |draft, value| size(value).map(|n| draft.each_listener(|l| l.max_length = n)),
        show: |config, at| shown_size(config.listeners[at].max_length),
    },
    Key {
        path: "parse.mode",
        flag: "parse",
        kind: Kind::Choice(&["none", "syslog"]),
        help: "What to make of a datagram: the event of Vector's `socket` source, or of its `syslog` source",
        set: |draft, value| choice::<Mode>(value).map(|mode| draft.config.parse.mode = mode),
        show: |config, _| json!(config.parse.mode),
    },
    Key {
        path: "parse.program",
        flag: "program",
        kind: Kind::Text("FILE"),
        help: "A VRL program that every event goes through, after parsing",
        set: |draft, value| file(value).map(|path| draft.program = path),
        show: |config, _| json!(config.parse.program.as_ref().map_or("", |program| program.name())),
    },
    Key {
        path: "parse.on_error",
        flag: "on-error",
        kind: Kind::Choice(&["keep", "drop"]),
        help: "What does not parse: keep it with `parse_error`, or drop and count it",
        set: |draft, value| choice::<OnError>(value).map(|on_error| draft.config.parse.on_error = on_error),
        show: |config, _| json!(config.parse.on_error),
    },
    Key {
        path: "parse.keep_raw",
        flag: "keep-raw",
        kind: Kind::Switch,
        help: "Send the untouched datagram along as `raw`",
        set: |draft, value| switch(value).map(|keep| draft.config.parse.shape.keep_raw = keep),
        show: |config, _| json!(config.parse.shape.keep_raw),
    },
    Key {
        path: "parse.timezone",
        flag: "timezone",
        kind: Kind::Text("TZ"),
        help: "Zone of dates without one: `local`, or a name such as Europe/Berlin",
        set: |draft, value| text(value)?.parse().map(|zone| draft.config.parse.timezone = zone),
        show: |config, _| json!(config.parse.timezone.to_string()),
    },
    Key {
        path: "parse.host_key",
        flag: "host-key",
        kind: Kind::Text("NAME"),
        help: "Name of the host field; empty leaves it out",
        set: |draft, value| text(value).map(|name| draft.config.parse.shape.host_key = name.to_owned()),
        show: |config, _| json!(config.parse.shape.host_key),
    },
    Key {
        path: "parse.port_key",
        flag: "port-key",
        kind: Kind::Text("NAME"),
        help: "Name of the port field (mode `none`); empty leaves it out",
        set: |draft, value| text(value).map(|name| draft.config.parse.shape.port_key = name.to_owned()),
        show: |config, _| json!(config.parse.shape.port_key),
    },
    Key {
        path: "parse.sequence_key",
        flag: "sequence-key",
        kind: Kind::Text("NAME"),
        help: "Name of a field by which events sort in the order of arrival; empty leaves it out",
        set: |draft, value| text(value).map(|name| draft.config.parse.shape.sequence_key = name.to_owned()),
        show: |config, _| json!(config.parse.shape.sequence_key),
    },
    Key {
        path: "parse.fields",
        flag: "field",
        kind: Kind::Table("NAME=VALUE"),
        help: "Fields for every event, such as node=${NODE_NAME}; the flag may be repeated",
        set: |draft, value| fields(value).map(|fields| draft.config.parse.shape.fields = fields),
        show: |config, _| {
            let fields = config.parse.shape.fields.iter().map(|(name, value)| (name.clone(), json!(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        },
    },
    Key {
        path: "batch.max_bytes",
        flag: "batch-max-bytes",
        kind: Kind::Size,
        help: "A batch closes at this size",
        set: |draft, value| size(value).map(|n| draft.config.batch.max_bytes = n),
        show: |config, _| shown_size(config.batch.max_bytes),
    },
    Key {
        path: "batch.max_events",
        flag: "batch-max-events",
        kind: Kind::Integer,
        help: "A batch closes at this many events",
        set: |draft, value| integer(value).map(|n| draft.config.batch.max_events = n),
        show: |config, _| json!(config.batch.max_events),
    },
    Key {
        path: "batch.timeout_secs",
        flag: "batch-timeout",
        kind: Kind::Time,
        help: "A batch closes at this age",
        set: |draft, value| time(value).map(|time| draft.config.batch.timeout = time),
        show: |config, _| shown_time(config.batch.timeout),
    },
    Key {
        path: "buffer.max_bytes",
        flag: "buffer-max-bytes",
        kind: Kind::Size,
        help: "Memory for batches that wait to be pushed",
        set: |draft, value| size(value).map(|n| draft.config.buffer.max_bytes = n),
        show: |config, _| shown_size(config.buffer.max_bytes),
    },
    Key {
        path: "buffer.when_full",
        flag: "when-full",
        kind: Kind::Choice(&["block", "drop_newest", "overflow"]),
        help: "When that is full: stop reading, shed new batches, or keep them on disk in data_dir",
        set: |draft, value| {
            choice::<WhenFull>(value).map(|when_full| draft.config.buffer.when_full = when_full)
        },
        show: |config, _| json!(config.buffer.when_full),
    },
    Key {
        path: "buffer.max_disk_bytes",
        flag: "buffer-max-disk-bytes",
        kind: Kind::Size,
        help: "Disk for batches, with --when-full overflow",
        set: |draft, value| size(value).map(|n| draft.config.buffer.max_disk_bytes = n),
        show: |config, _| shown_size(config.buffer.max_disk_bytes),
    },
];

/// The process itself.
const PROCESS: &[Key] = &[
    Key {
        path: "admin.address",
        flag: "admin",
        kind: Kind::Text("ADDR"),
        help: "Address and TCP port for metrics, health and state; empty for none",
        set: |draft, value| {
            let address = Some(text(value)?).filter(|text| !text.is_empty()).map(address).transpose()?;
            draft.config.admin = Admin { address, required: true, ..draft.config.admin };
            Ok(())
        },
        show: |config, _| json!(config.admin.address.map_or_else(String::new, |address| address.to_string())),
    },
    Key {
        path: "admin.top_senders",
        flag: "top-senders",
        kind: Kind::Integer,
        help: "How many of the heaviest senders to keep in view, at /top; 0 for none",
        set: |draft, value| integer(value).map(|n| draft.config.admin.top_senders = n),
        show: |config, _| json!(config.admin.top_senders),
    },
    Key {
        path: "data_dir",
        flag: "data-dir",
        kind: Kind::Text("DIRECTORY"),
        help: "Where batches are kept on disk, with --when-full overflow",
        set: |draft, value| text(value).map(|path| draft.config.data_dir = path.into()),
        show: |config, _| json!(config.data_dir.display().to_string()),
    },
    Key {
        path: "takeover.path",
        flag: "takeover-path",
        kind: Kind::Text("PATH"),
        help: "Where the next process asks for the sockets (run --takeover PATH): a Unix socket's path, or @NAME; empty for none",
        set: |draft, value| file(value).map(|path| draft.config.takeover_path = path),
        show: |config, _| shown_file(config.takeover_path.as_deref()),
    },
    Key {
        path: "takeover.stay",
        flag: "takeover-stay",
        kind: Kind::Switch,
        help: "When the sockets are taken over, wait for SIGTERM instead of ending: for a supervisor that would start it again",
        set: |draft, value| switch(value).map(|stay| draft.config.takeover_stay = stay),
        show: |config, _| json!(config.takeover_stay),
    },
    Key {
        path: "self_metrics",
        flag: "self-metrics",
        kind: Kind::Switch,
        help: "Send the metrics of /metrics to Vector too, as metric events",
        set: |draft, value| switch(value).map(|send| draft.config.self_metrics = send),
        show: |config, _| json!(config.self_metrics),
    },
    Key {
        path: "log.level",
        flag: "log-level",
        kind: Kind::Choice(&["trace", "debug", "info", "warn", "error", "off"]),
        help: "The least grave lines to log; RUST_LOG, where it is set, says more",
        set: |draft, value| choice::<LogLevel>(value).map(|level| draft.config.log.level = level),
        show: |config, _| json!(config.log.level),
    },
    Key {
        path: "log.format",
        flag: "log-format",
        kind: Kind::Choice(&["auto", "text", "json"]),
        help: "How a log line looks: `auto` is text on a terminal and JSON elsewhere",
        set: |draft, value| choice::<LogFormat>(value).map(|format| draft.config.log.format = format),
        show: |config, _| json!(config.log.format),
    },
    Key {
        path: "shutdown.timeout_secs",
        flag: "shutdown-timeout",
        kind: Kind::Time,
        help: "How long a stop may wait for acknowledgements",
        set: |draft, value| time(value).map(|time| draft.config.shutdown_timeout = time),
        show: |config, _| shown_time(config.shutdown_timeout),
    },
];

/// The key at a place of the file; a listener's number does not matter.
pub fn key_at(path: &str) -> Option<&'static Key> {
    let (before, after) = match (path.find('['), path.find(']')) {
        (Some(open), Some(close)) => (path.get(..=open)?, path.get(close..)?),
        _ => (path, ""),
    };
    KEYS.iter().find(|key| key.path.strip_prefix(before) == Some(after))
}

/// The flag of the key at a place of the file.
pub fn flag_of(path: &str) -> Option<&'static str> {
    key_at(path).map(|key| key.flag)
}
