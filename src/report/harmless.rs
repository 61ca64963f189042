//! Foreign text that steers nothing.

/// The text with a mark in place of each control character and direction mark, so that nothing in
/// it steers a terminal.
#[must_use]
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a terminal, or the eye of a reader, could be led astray by it.
pub(super) fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
