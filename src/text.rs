//! Texts of others, fit to be shown.

/// What a peer or a file says, as one line of at most 200 characters: it must not forge a line of a log, nor move a
/// terminal's cursor.
pub(crate) fn harmless(text: &str) -> String {
    const LONGEST: usize = 200;
    let harmless = |c: char| if c.is_control() || is_marked(c) { '?' } else { c };
    text.chars().take(LONGEST).map(harmless).collect()
}

/// Characters that have no width of their own and change the direction of others.
fn is_marked(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(harmless("a\x1B[31mb\n\u{202E}c é"), "a?[31mb??c é");
        assert_eq!(harmless(&"x".repeat(1_000)).len(), 200);
    }
}
