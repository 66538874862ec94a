//! The mark that makes a message countable: its number, how many there are, whose run and flow it is.

use std::fmt;

/// A numbered message's mark, written at a fixed width: `seq=000000000042 of=000000500000 run=1a2b3c4d flow=00003`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// The message's number, from 0.
    pub number: u64,
    /// How many messages the run has; 0 where the sender did not know.
    pub of: u64,
    /// Tells runs apart.
    pub run: u32,
    /// The flow that it was sent on.
    pub flow: u32,
}

impl Marker {
    /// What a mark begins with.
    pub const START: &[u8] = b"seq=";
    /// Bytes of a mark.
    pub const LENGTH: usize = 56;
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seq={:012} of={:012} run={:08x} flow={:05}", self.number, self.of, self.run, self.flow)
    }
}

/// Reads the mark at the front of `bytes`; none when it is not one.
pub fn parse_marker(bytes: &[u8]) -> Option<Marker> {
    let text = std::str::from_utf8(bytes.get(..Marker::LENGTH)?).ok()?;
    let mut parts = text.split(' ');
    let mut part = |name: &str| parts.next()?.strip_prefix(name);
    Some(Marker {
        number: part("seq=")?.parse().ok()?,
        of: part("of=")?.parse().ok()?,
        run: u32::from_str_radix(part("run=")?, 16).ok()?,
        flow: part("flow=")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_back_and_nothing_else_is_one() {
        let marker = Marker { number: 42, of: 500_000, run: 0x1a2b_3c4d, flow: 3 };
        let text = marker.to_string();
        assert_eq!(text.len(), Marker::LENGTH);
        assert_eq!(parse_marker(text.as_bytes()), Some(marker));
        assert_eq!(parse_marker(&text.as_bytes()[..55]), None);
        assert_eq!(parse_marker(text.replace("of=", "ov=").as_bytes()), None);
        assert_eq!(parse_marker(&[0xFF; 56]), None);
    }
}
