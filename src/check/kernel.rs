//! Readers of /proc and /sys; what is not there, as in a container, is none.

use std::fs;
use std::path::Path;

/// A file's text, or nothing.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// A file's number.
pub(super) fn number(path: impl AsRef<Path>) -> Option<u64> {
    text(path)?.trim().parse().ok()
}

/// A kernel setting's text, by its dotted name.
pub(super) fn setting(name: &str) -> Option<String> {
    text(Path::new("/proc/sys").join(name.replace('.', "/")))
}

/// A kernel setting's number, by its dotted name.
pub(super) fn setting_number(name: &str) -> Option<u64> {
    setting(name)?.trim().parse().ok()
}
