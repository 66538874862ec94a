//! The configuration file: TOML or YAML, variables put in, every key known, every problem found.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use super::Draft;
use super::keys::{KEYS, key_at};
use super::variables::expand;
use crate::text::harmless;

/// Reads a file into the draft; what is wrong with it is kept there.
pub(super) fn read(path: &Path, draft: &mut Draft) {
    let place = path.display().to_string();
    match read_text(path).and_then(|text| parse(path, &text)) {
        Err(problem) => draft.refuse_file(&place, problem),
        Ok(Value::Object(root)) => take_table("", &root, draft),
        Ok(Value::Null) => {} // an empty YAML file
        Ok(_) => draft.refuse_file(&place, "it has no keys at its top".to_owned()),
    }
}

/// The file's text; a configuration is never as long as what must not be taken into memory.
pub(super) fn read_text(path: &Path) -> Result<String, String> {
    const LONGEST: u64 = 1 << 20;
    let mut text = String::new();
    let file = File::open(path).map_err(|error| format!("cannot read it: {error}"))?;
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| format!("cannot read it: {error}"))?;
    if text.len() as u64 > LONGEST {
        return Err("it is longer than 1 MiB: is it the right file?".to_owned());
    }
    Ok(text)
}

fn parse(path: &Path, text: &str) -> Result<Value, String> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => toml::from_str(text).map_err(|error| {
            // Not the line itself: it may hold a secret.
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            format!("line {}: {}", before.matches('\n').count() + 1, harmless(error.message()))
        }),
        Some("yaml" | "yml") => serde_saphyr::from_str(text)
            .map_err(|error| harmless(error.to_string().lines().next().unwrap_or_default())),
        _ => Err("name it .toml, .yaml or .yml, so that its format is known".to_owned()),
    }
}

fn take_table(prefix: &str, table: &Map<String, Value>, draft: &mut Draft) {
    for (name, value) in table {
        let path = format!("{prefix}{name}");
        match (value, path.as_str()) {
            (Value::Array(listeners), "listeners") => take_listeners(listeners, draft),
            (_, "listeners") => draft.refuse(&path, "write it as a list: [[listeners]] in TOML"),
            (value, path) => take(path, value, draft),
        }
    }
}

fn take_listeners(listeners: &[Value], draft: &mut Draft) {
    for (at, listener) in listeners.iter().enumerate() {
        draft.add_listener(None);
        draft.for_listener(Some(at));
        match listener {
            Value::Object(keys) => {
                for (name, value) in keys {
                    take(&format!("listeners[{at}].{name}"), value, draft);
                }
            }
            _ => draft.refuse(&format!("listeners[{at}]"), "write an address and what belongs to it"),
        }
    }
    draft.for_listener(None);
}

fn take(path: &str, value: &Value, draft: &mut Draft) {
    match (key_at(path), value) {
        (Some(key), value) => match expanded(value) {
            Ok(value) => draft.set(key, path, &value),
            Err(problem) => draft.refuse(path, problem),
        },
        (None, Value::Object(table)) if is_section(path) => take_table(&format!("{path}."), table, draft),
        (None, _) => draft.refuse(path, unknown(path)),
    }
}

fn is_section(path: &str) -> bool {
    KEYS.iter().any(|key| key.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// What to write instead of a key that does not exist.
fn unknown(path: &str) -> String {
    let name = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let sections = KEYS.iter().filter_map(|key| Some(key.path.rsplit_once('.')?.0.trim_end_matches("[]")));
    let known = KEYS.iter().map(|key| key.path).chain(sections);
    let likeness = |known: &&str| {
        let whole = strsim::jaro_winkler(known, path);
        whole.max(strsim::jaro_winkler(&name(known), &name(path)) - 0.05)
    };
    match known.max_by(|a, b| likeness(a).total_cmp(&likeness(b))) {
        Some(nearest) if likeness(&nearest) > 0.75 => format!("there is no such key; perhaps `{nearest}`"),
        _ => "there is no such key; `sluicegate config` shows all there are".to_owned(),
    }
}

/// The value with environment variables put into its texts.
fn expanded(value: &Value) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(expand(text, |name| std::env::var(name).ok())?),
        Value::Array(items) => Value::Array(items.iter().map(expanded).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let pairs = fields.iter().map(|(name, value)| Ok((name.clone(), expanded(value)?)));
            Value::Object(pairs.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}
