//! A configuration as a file: every key with its comment, and the schema of such files.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::Config;
use super::keys::{KEYS, Key, Kind};

/// The configuration as TOML, each key behind what it does.
pub fn to_toml(config: &Config) -> String {
    let mut out = String::new();
    out.extend(keys_in("").map(|(key, leaf)| line(config, key, leaf, 0)));
    for at in 0..config.listeners.len() {
        section(&mut out, config, "listeners[]", at);
    }
    let mut sections: Vec<&str> = KEYS.iter().filter_map(|key| Some(key.path.rsplit_once('.')?.0)).collect();
    sections.dedup();
    for name in sections.into_iter().filter(|name| *name != "listeners[]") {
        section(&mut out, config, name, 0);
    }
    out
}

fn section(out: &mut String, config: &Config, name: &str, at: usize) {
    let head = match name.strip_suffix("[]") {
        Some(list) => format!("[[{list}]]"),
        None => format!("[{name}]"),
    };
    let lines = keys_in(name).map(|(key, leaf)| line(config, key, leaf, at));
    let gap = if out.is_empty() { "" } else { "\n" };
    // Writing to a String cannot fail.
    write!(out, "{gap}{head}\n{}", lines.collect::<String>()).ok();
}

fn line(config: &Config, key: &Key, leaf: &str, at: usize) -> String {
    let choices = match key.kind {
        Kind::Choice(words) => format!(" ({})", words.join(" | ")),
        _ => String::new(),
    };
    format!("# {}{choices}\n{leaf} = {}\n", key.help, literal(&(key.show)(config, at)))
}

fn keys_in(section: &str) -> impl Iterator<Item = (&'static Key, &'static str)> {
    KEYS.iter().filter_map(move |key| match key.path.rsplit_once('.').unwrap_or(("", key.path)) {
        (name, leaf) if name == section => Some((key, leaf)),
        _ => None,
    })
}

/// A value as TOML writes it; JSON's texts, numbers and lists are TOML's too.
fn literal(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let pairs: Vec<_> =
                fields.iter().map(|(name, value)| format!("{} = {}", json!(name), literal(value))).collect();
            if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
        other => other.to_string(),
    }
}

/// A JSON Schema (2020-12) of configuration files, for editors.
pub fn schema() -> Value {
    let mut root = object(Map::new());
    for key in KEYS {
        let mut at = &mut root;
        let mut parts: Vec<&str> = key.path.split('.').collect();
        let leaf = parts.pop().unwrap_or_default();
        for part in parts {
            at = match part.strip_suffix("[]") {
                Some(list) => {
                    let array = json!({ "type": "array", "items": object(Map::new()) });
                    &mut entry(at, list, array)["items"]
                }
                None => entry(at, part, object(Map::new())),
            };
        }
        entry(at, leaf, described(key));
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("sluicegate's configuration");
    root
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn entry<'a>(at: &'a mut Value, name: &str, new: Value) -> &'a mut Value {
    let property = &mut at["properties"][name];
    if property.is_null() {
        *property = new;
    }
    property
}

fn described(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Text(_) => json!({ "type": "string" }),
        Kind::Integer => json!({ "type": "integer", "minimum": 0 }),
        Kind::Size => json!({ "type": ["integer", "string"], "examples": ["64MiB"] }),
        Kind::Time => json!({ "type": ["number", "string"], "examples": [0.2, "200ms"] }),
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Texts(_) => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Table(_) => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
    };
    schema["description"] = json!(key.help);
    schema
}
