//! How values are read, from a file's types or a flag's text, and shown.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::config::units;

pub(super) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("`{value}` is no text: put it in quotes"))
}

/// A file's path; none where the text is empty.
pub(super) fn file(value: &Value) -> Result<Option<PathBuf>, String> {
    text(value).map(|path| Some(PathBuf::from(path)).filter(|_| !path.is_empty()))
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no address: write IP:PORT, such as 0.0.0.0:5514 or [::]:5514"))
}

pub(super) fn integer(value: &Value) -> Result<usize, String> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|n| usize::try_from(n).ok()),
    };
    number.ok_or_else(|| format!("`{}` is no whole number", bare(value)))
}

pub(super) fn size(value: &Value) -> Result<usize, String> {
    units::bytes(&bare(value))
}

pub(super) fn time(value: &Value) -> Result<Duration, String> {
    units::duration(&bare(value))
}

pub(super) fn switch(value: &Value) -> Result<bool, String> {
    match bare(value).as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("`{other}` is neither true nor false")),
    }
}

pub(super) fn choice<T: ValueEnum>(value: &Value) -> Result<T, String> {
    let text = bare(value);
    T::from_str(&text, false).map_err(|_| {
        let names = T::value_variants()
            .iter()
            .filter_map(|variant| Some(variant.to_possible_value()?.get_name().to_owned()));
        format!("`{text}` is not known: write one of {}", names.collect::<Vec<_>>().join(", "))
    })
}

pub(super) fn texts(value: &Value) -> Result<Vec<&str>, String> {
    match value {
        Value::Array(items) => items.iter().map(text).collect(),
        one => Ok(vec![text(one)?]),
    }
}

pub(super) fn fields(value: &Value) -> Result<Vec<(String, String)>, String> {
    if let Value::Object(fields) = value {
        return Ok(fields.iter().map(|(name, value)| (name.clone(), bare(value))).collect());
    }
    let pair = |text: &str| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is no field: write NAME=VALUE")),
    };
    texts(value)?.into_iter().map(pair).collect()
}

/// A value as it was written, text without its quotes.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn shown_size(bytes: usize) -> Value {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let whole = |(_, shift): &&(&str, u32)| bytes > 0 && bytes.trailing_zeros() >= *shift;
    units
        .iter()
        .find(whole)
        .map_or_else(|| json!(bytes), |(unit, shift)| json!(format!("{}{unit}", bytes >> shift)))
}

pub(super) fn shown_file(path: Option<&Path>) -> Value {
    json!(path.map_or_else(String::new, |path| path.display().to_string()))
}

pub(super) fn shown_time(time: Duration) -> Value {
    let seconds = time.as_secs_f64();
    if seconds.fract() == 0.0 { json!(time.as_secs()) } else { json!(seconds) }
}
