//! Sizes (`64MiB`) and durations (`200ms`, `30`) as people write them.

use std::time::Duration;

use bytesize::ByteSize;

/// Bytes: a number, or one with a unit (`64MiB`, `10GB`).
///
/// # Errors
/// What is wrong and what to write instead.
pub fn bytes(text: &str) -> Result<usize, String> {
    let size: ByteSize =
        text.parse().map_err(|_| format!("`{text}` is no size: write bytes, or a unit as in 64MiB"))?;
    usize::try_from(size.as_u64()).map_err(|_| format!("`{text}` is more than this machine can address"))
}

/// A duration: seconds as a number (`0.2`, `30`), or one with a unit (`200ms`, `2m`).
///
/// # Errors
/// What is wrong and what to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("`{text}` is no duration: write seconds, or a unit as in 200ms");
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| invalid()),
        Err(_) => humantime::parse_duration(text).map_err(|_| invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_as_people_write_them() {
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("1000"), Ok(1_000));
        assert_eq!(bytes("1.5 KiB"), Ok(1_536));
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("0.2"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
    }

    #[test]
    fn nonsense_is_answered_with_an_example() {
        assert_eq!(bytes("lots").unwrap_err(), "`lots` is no size: write bytes, or a unit as in 64MiB");
        for wrong in ["soon", "-1", "NaN", "inf", ""] {
            assert!(duration(wrong).unwrap_err().contains("200ms"), "{wrong}");
        }
    }
}
