//! Where and how to push, and what becomes of what is refused.

use serde_json::json;

use super::values::{
    choice, file, integer, shown_file, shown_size, shown_time, size, switch, text, texts, time,
};
use super::{Key, Kind};
use crate::config::{Compression, OnRejected};

pub(super) const KEYS: &[Key] = &[
    Key {
        path: "vector.endpoints",
        flag: "vector",
        kind: Kind::Texts("URL"),
        help: "Vector sources to push to, such as http://127.0.0.1:6000, or https:// for TLS; the flag may be repeated",
        set: |draft, value| {
            let endpoints: Result<_, String> = texts(value)?.iter().map(|url| url.parse()).collect();
            endpoints.map(|endpoints| draft.config.vector.endpoints = endpoints)
        },
        show: |config, _| {
            config.vector.endpoints.iter().map(|endpoint| json!(endpoint.to_string())).collect()
        },
    },
    Key {
        path: "vector.connections",
        flag: "connections",
        kind: Kind::Integer,
        help: "HTTP/2 connections to each Vector",
        set: |draft, value| integer(value).map(|n| draft.config.vector.connections = n),
        show: |config, _| json!(config.vector.connections),
    },
    Key {
        path: "vector.streams",
        flag: "streams",
        kind: Kind::Integer,
        help: "Requests in flight on each connection",
        set: |draft, value| integer(value).map(|n| draft.config.vector.streams = n),
        show: |config, _| json!(config.vector.streams),
    },
    Key {
        path: "vector.compression",
        flag: "compression",
        kind: Kind::Choice(&["none", "gzip", "zstd"]),
        help: "How requests are compressed; a Vector that does not know it gets them uncompressed",
        set: |draft, value| {
            choice::<Compression>(value).map(|compression| draft.config.vector.compression = compression)
        },
        show: |config, _| json!(config.vector.compression),
    },
    Key {
        path: "vector.on_rejected",
        flag: "on-rejected",
        kind: Kind::Choice(&["drop", "split"]),
        help: "A batch of which a sink refused something: reject it whole, or halve it and send it again, good events twice",
        set: |draft, value| {
            choice::<OnRejected>(value).map(|on_rejected| draft.config.vector.on_rejected = on_rejected)
        },
        show: |config, _| json!(config.vector.on_rejected),
    },
    Key {
        path: "vector.ordered",
        flag: "ordered",
        kind: Kind::Switch,
        help: "Keep each sender's order, with steering flow: one request in flight for each worker",
        set: |draft, value| switch(value).map(|ordered| draft.config.vector.ordered = ordered),
        show: |config, _| json!(config.vector.ordered),
    },
    Key {
        path: "vector.request.timeout_secs",
        flag: "request-timeout",
        kind: Kind::Time,
        help: "Deadline of a request",
        set: |draft, value| time(value).map(|time| draft.config.vector.request_timeout = time),
        show: |config, _| shown_time(config.vector.request_timeout),
    },
    Key {
        path: "vector.request.retry_initial_backoff_secs",
        flag: "retry-initial-backoff",
        kind: Kind::Time,
        help: "First pause after a failure; it doubles up to 5 s",
        set: |draft, value| time(value).map(|time| draft.config.vector.retry_initial_backoff = time),
        show: |config, _| shown_time(config.vector.retry_initial_backoff),
    },
    Key {
        path: "vector.request.retry_max_duration_secs",
        flag: "retry-max-duration",
        kind: Kind::Time,
        help: "Batches that are older than this are rejected; 0 tries for ever",
        set: |draft, value| {
            let longest = time(value)?;
            draft.config.vector.retry_max_duration = Some(longest).filter(|longest| !longest.is_zero());
            Ok(())
        },
        show: |config, _| shown_time(config.vector.retry_max_duration.unwrap_or_default()),
    },
    Key {
        path: "vector.tls.ca_file",
        flag: "tls-ca-file",
        kind: Kind::Text("FILE"),
        help: "Certificates (PEM) of the CAs that sign Vector's; empty takes the system's roots",
        set: |draft, value| file(value).map(|path| draft.config.vector.tls.ca_file = path),
        show: |config, _| shown_file(config.vector.tls.ca_file.as_deref()),
    },
    Key {
        path: "vector.tls.crt_file",
        flag: "tls-crt-file",
        kind: Kind::Text("FILE"),
        help: "Certificate (PEM) to show to Vector, with what leads to its CA behind it",
        set: |draft, value| file(value).map(|path| draft.config.vector.tls.crt_file = path),
        show: |config, _| shown_file(config.vector.tls.crt_file.as_deref()),
    },
    Key {
        path: "vector.tls.key_file",
        flag: "tls-key-file",
        kind: Kind::Text("FILE"),
        help: "Private key (PEM) of that certificate",
        set: |draft, value| file(value).map(|path| draft.config.vector.tls.key_file = path),
        show: |config, _| shown_file(config.vector.tls.key_file.as_deref()),
    },
    Key {
        path: "vector.tls.server_name",
        flag: "tls-server-name",
        kind: Kind::Text("NAME"),
        help: "Name that Vector's certificate has to have; empty takes the URL's host",
        set: |draft, value| text(value).map(|name| draft.config.vector.tls.server_name = name.to_owned()),
        show: |config, _| json!(config.vector.tls.server_name),
    },
    Key {
        path: "vector.tls.verify_certificate",
        flag: "tls-verify-certificate",
        kind: Kind::Switch,
        help: "Whether Vector's certificate is looked at; with false, anybody may pretend to be Vector",
        set: |draft, value| switch(value).map(|verify| draft.config.vector.tls.verify_certificate = verify),
        show: |config, _| json!(config.vector.tls.verify_certificate),
    },
    Key {
        path: "vector.tls.verify_hostname",
        flag: "tls-verify-hostname",
        kind: Kind::Switch,
        help: "Whether its name is looked at; with false, any certificate of the CA will do",
        set: |draft, value| switch(value).map(|verify| draft.config.vector.tls.verify_hostname = verify),
        show: |config, _| json!(config.vector.tls.verify_hostname),
    },
    Key {
        path: "dead_letter.path",
        flag: "dead-letter-path",
        kind: Kind::Text("FILE"),
        help: "File for events that Vector refuses for good, a JSON line each; empty only counts them",
        set: |draft, value| file(value).map(|path| draft.config.dead_letter.path = path),
        show: |config, _| shown_file(config.dead_letter.path.as_deref()),
    },
    Key {
        path: "dead_letter.max_bytes",
        flag: "dead-letter-max-bytes",
        kind: Kind::Size,
        help: "Largest size of that file; when it is full, such events are only counted",
        set: |draft, value| size(value).map(|n| draft.config.dead_letter.max_bytes = n),
        show: |config, _| shown_size(config.dead_letter.max_bytes),
    },
];
