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

/// `net.ipv4.udp_mem`: the three numbers, in pages; none in a network namespace of its own.
pub(super) fn udp_mem() -> Option<[u64; 3]> {
    three(&setting("net.ipv4.udp_mem")?)
}

fn three(text: &str) -> Option<[u64; 3]> {
    let numbers: Vec<_> = text.split_whitespace().map_while(|number| number.parse().ok()).collect();
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_or_none() {
        assert_eq!(three("575802\t767736\t1151604\n"), Some([575_802, 767_736, 1_151_604]));
        assert_eq!(three("1 2\n"), None);
        assert_eq!(setting("no.such.setting"), None);
    }
}
