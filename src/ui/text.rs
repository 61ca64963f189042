//! Text for cells: hostile characters made visible, widths as the terminal counts them.
//!
//! Whatever comes from the wire passes through here before it reaches a cell, so no byte of the
//! traffic can move the cursor, change a colour, reverse the reading direction or hide itself.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What may be drawn: the glyph set in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset {
    /// Only ASCII reaches the terminal.
    pub is_ascii: bool,
}

impl Charset {
    /// The text with everything that is not plain to see replaced by something that is.
    #[must_use]
    pub fn clean(self, text: &str) -> Cow<'_, str> {
        if text.chars().all(|c| self.is_plain(c)) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len() + 8);
        for c in text.chars() {
            self.push_clean(&mut out, c);
        }
        Cow::Owned(out)
    }

    /// Appends one character as [`Charset::clean`] shows it.
    pub fn push_clean(self, out: &mut String, c: char) {
        if self.is_plain(c) {
            out.push(c);
        } else if self.is_ascii && (c as u32) < 0x20 {
            out.push('^');
            out.push(char::from_u32(c as u32 + 0x40).unwrap_or('?'));
        } else if let Some(symbol) = control_symbol(c).filter(|_| !self.is_ascii) {
            out.push(symbol);
        } else {
            out.push('<');
            let digits = format!("{:X}", c as u32);
            out.push_str(&digits);
            out.push('>');
        }
    }

    fn is_plain(self, c: char) -> bool {
        if c.is_ascii() {
            return !c.is_ascii_control();
        }
        !self.is_ascii && !is_hidden(c)
    }

    /// The text cleaned and cut to `width` cells; a cut is shown by a mark in the last cell.
    #[must_use]
    pub fn fit(self, text: &str, width: usize) -> String {
        // A cell holds at most a few bytes of text; what lies far beyond the width is never looked at.
        let near: Cow<'_, str> = match text.char_indices().nth(width.saturating_mul(4) + 16) {
            Some((end, _)) => Cow::Owned(text.get(..end).unwrap_or_default().to_owned()),
            None => Cow::Borrowed(text),
        };
        let clean = self.clean(&near);
        if clean.width() <= width {
            return clean.into_owned();
        }
        let mut out = String::new();
        let mut used = 0;
        for c in clean.chars() {
            let cells = c.width().unwrap_or(0);
            if used + cells + 1 > width {
                break;
            }
            out.push(c);
            used += cells;
        }
        if width > 0 {
            out.push(if self.is_ascii { '~' } else { '…' });
        }
        out
    }

    /// The text cut to `width` cells and filled up with blanks on the right.
    #[must_use]
    pub fn pad(self, text: &str, width: usize) -> String {
        let mut out = self.fit(text, width);
        let used = out.width();
        out.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
        out
    }

    /// The text cut to `width` cells and filled up with blanks on the left.
    #[must_use]
    pub fn pad_left(self, text: &str, width: usize) -> String {
        let cut = self.fit(text, width);
        let mut out = " ".repeat(width.saturating_sub(cut.width()));
        out.push_str(&cut);
        out
    }
}

/// The picture of a C0 control character or of DEL.
fn control_symbol(c: char) -> Option<char> {
    match c as u32 {
        code @ 0..=0x1f => char::from_u32(0x2400 + code),
        0x7f => Some('␡'),
        _ => None,
    }
}

/// Characters that draw nothing or rearrange what stands around them: C1 controls, direction
/// marks and overrides, zero-width and filler characters, line separators, tags.
fn is_hidden(c: char) -> bool {
    matches!(c as u32,
        0x80..=0x9f | 0xad | 0x034f | 0x061c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180e
        | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff
        | 0xffa0 | 0xfff9..=0xfffb | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDE: Charset = Charset { is_ascii: false };
    const ASCII: Charset = Charset { is_ascii: true };

    #[test]
    fn hostile_characters_are_shown_as_symbols() {
        let cases = [
            ("plain", "plain", "plain"),
            ("a\x1b[2Jb", "a␛[2Jb", "a^[[2Jb"),
            ("tab\there\r\n", "tab␉here␍␊", "tab^Ihere^M^J"),
            ("\u{9b}31m", "<9B>31m", "<9B>31m"),
            ("\u{202e}evil", "<202E>evil", "<202E>evil"),
            ("x\u{200b}y\u{feff}", "x<200B>y<FEFF>", "x<200B>y<FEFF>"),
            ("del\x7f", "del␡", "del<7F>"),
            ("ä 中", "ä 中", "<E4> <4E2D>"),
        ];
        for (text, wide, ascii) in cases {
            assert_eq!(WIDE.clean(text), wide);
            assert_eq!(ASCII.clean(text), ascii);
        }
    }

    #[test]
    fn text_is_cut_by_cells_not_by_bytes() {
        assert_eq!(WIDE.fit("abcdef", 4), "abc…");
        assert_eq!(ASCII.fit("abcdef", 4), "abc~");
        assert_eq!(WIDE.fit("中文字", 4), "中…");
        assert_eq!(WIDE.pad("中", 4), "中  ");
        assert_eq!(WIDE.pad_left("7", 3), "  7");
        assert_eq!(WIDE.fit("abc", 0), "");
    }

    proptest! {
        #[test]
        fn nothing_that_reaches_a_cell_controls_the_terminal(text in any::<String>(), width in 0usize..40) {
            for set in [WIDE, ASCII] {
                let out = set.pad(&text, width);
                prop_assert_eq!(out.width(), width);
                prop_assert!(!out.chars().any(|c| c.is_control() || is_hidden(c)));
                if set.is_ascii {
                    prop_assert!(out.is_ascii());
                }
            }
        }
    }
}
