//! The exact bytes of a message, wrapped at the width of the pane.
//!
//! Control characters are drawn as symbols and bytes that are no UTF-8 as their two digits, so
//! that what is seen is what was sent.

use bytes::Bytes;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::config::theme::Role;
use crate::ui::ink::Ink;
use crate::ui::text::Charset;

/// Bytes with the places where lines break on the screen.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    bytes: Bytes,
    /// Byte offset of each line.
    starts: Vec<usize>,
    layout: (usize, Charset),
}

/// One character, or one byte that belongs to none.
enum Piece {
    Char(char, usize),
    Byte(u8),
}

impl Raw {
    /// Breaks bytes into lines of at most `width` cells.
    #[must_use]
    pub(super) fn new(bytes: Bytes, width: usize, charset: Charset) -> Raw {
        let mut raw = Raw { bytes, starts: Vec::new(), layout: (0, charset) };
        raw.set_layout(width, charset);
        raw
    }

    /// How many lines there are.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Breaks at another width.
    pub(super) fn set_layout(&mut self, width: usize, charset: Charset) {
        let width = width.max(10);
        if self.layout == (width, charset) && !self.starts.is_empty() {
            return;
        }
        self.layout = (width, charset);
        self.starts = vec![0];
        let (mut at, mut used) = (0, 0);
        let mut shown = String::new();
        while let Some(piece) = self.piece(at) {
            shown.clear();
            push(&piece, charset, &mut shown);
            let cells = shown.width();
            if used + cells > width {
                self.starts.push(at);
                used = 0;
            }
            used += cells;
            at += piece.len();
            if matches!(piece, Piece::Char('\n', _)) && at < self.bytes.len() {
                self.starts.push(at);
                used = 0;
            }
        }
    }

    /// Draws one line.
    #[must_use]
    pub(super) fn draw(&self, line: usize, ink: &Ink<'_>) -> Line<'static> {
        let Some(start) = self.starts.get(line).copied() else { return Line::default() };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.bytes.len());
        let mut spans: Vec<Span<'static>> = Vec::new();
        let (mut at, mut text, mut role) = (start, String::new(), Role::Text);
        while at < end {
            let Some(piece) = self.piece(at) else { break };
            at += piece.len();
            let next = match piece {
                Piece::Byte(_) => Role::Error,
                Piece::Char(c, _) if c.is_control() => Role::Faint,
                Piece::Char(..) => Role::Text,
            };
            if next != role && !text.is_empty() {
                spans.push(Span::styled(std::mem::take(&mut text), ink.style(role)));
            }
            role = next;
            push(&piece, ink.charset, &mut text);
        }
        spans.push(Span::styled(text, ink.style(role)));
        Line::from(spans)
    }

    fn piece(&self, at: usize) -> Option<Piece> {
        let rest = self.bytes.get(at..)?;
        let first = *rest.first()?;
        if first.is_ascii() {
            return Some(Piece::Char(char::from(first), 1));
        }
        let near = rest.get(..4).unwrap_or(rest);
        let text = match std::str::from_utf8(near) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(near.get(..error.valid_up_to())?).ok()?,
        };
        match text.chars().next() {
            Some(c) => Some(Piece::Char(c, c.len_utf8())),
            None => Some(Piece::Byte(first)),
        }
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Char(_, len) => *len,
            Piece::Byte(_) => 1,
        }
    }
}

/// A hexadecimal digit.
fn hex(half: u8) -> char {
    char::from_digit(half.into(), 16).unwrap_or('?').to_ascii_uppercase()
}

fn push(piece: &Piece, charset: Charset, out: &mut String) {
    match piece {
        Piece::Char(c, _) => charset.push_clean(out, *c),
        Piece::Byte(byte) => out.extend(['<', hex(byte >> 4), hex(byte & 15), '>']),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::colour::Depth;
    use crate::config::theme::Theme;

    fn drawn(bytes: &[u8], width: usize, is_ascii: bool) -> Vec<String> {
        let theme = Theme::load("dark", Depth::True).unwrap();
        let ink = Ink { theme: &theme, charset: Charset { is_ascii } };
        let raw = Raw::new(Bytes::copy_from_slice(bytes), width, ink.charset);
        (0..raw.len()).map(|line| raw.draw(line, &ink).to_string()).collect()
    }

    #[test]
    fn every_byte_is_seen() {
        assert_eq!(drawn(b"ab\r\ncd\n", 20, false), ["ab␍␊", "cd␊"]);
        assert_eq!(drawn(b"0123456789abc", 10, false), ["0123456789", "abc"]);
        assert_eq!(drawn(b"x\xff\xe4y\x1b[2J", 20, false), ["x<FF><E4>y␛[2J"]);
        assert_eq!(drawn("中文中文中文".as_bytes(), 10, false), ["中文中文中", "文"]);
        assert_eq!(drawn(b"a\n", 20, true), ["a^J"]);
        assert_eq!(drawn(b"", 20, true), [""]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_pane(bytes in proptest::collection::vec(any::<u8>(), 0..300), width in 10usize..60) {
            for line in drawn(&bytes, width, false) {
                prop_assert!(line.width() <= width);
                prop_assert!(!line.chars().any(char::is_control));
            }
        }
    }
}
