//! One key press with its modifiers, as read from the keyboard and as written in files.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with its modifiers. Shift is part of a character (`G`), and of nothing else but `tab`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chord {
    /// The key.
    pub code: KeyCode,
    /// Control and alt.
    pub mods: KeyModifiers,
}

/// The keys that have names, and their names.
const NAMED: [(KeyCode, &str); 15] = [
    (KeyCode::Enter, "enter"),
    (KeyCode::Esc, "esc"),
    (KeyCode::Tab, "tab"),
    (KeyCode::BackTab, "shift-tab"),
    (KeyCode::Backspace, "backspace"),
    (KeyCode::Delete, "delete"),
    (KeyCode::Up, "up"),
    (KeyCode::Down, "down"),
    (KeyCode::Left, "left"),
    (KeyCode::Right, "right"),
    (KeyCode::Home, "home"),
    (KeyCode::End, "end"),
    (KeyCode::PageUp, "pgup"),
    (KeyCode::PageDown, "pgdn"),
    (KeyCode::Char(' '), "space"),
];

impl Chord {
    /// The chord of a key event.
    #[must_use]
    pub fn of(event: KeyEvent) -> Chord {
        let mods = event.modifiers & (KeyModifiers::CONTROL | KeyModifiers::ALT);
        let code = match event.code {
            KeyCode::Tab if event.modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
            KeyCode::Char(c) if mods.contains(KeyModifiers::CONTROL) => KeyCode::Char(c.to_ascii_lowercase()),
            code => code,
        };
        Chord { code, mods }
    }

    /// Reads `ctrl-d`, `alt-x`, `f1`, `enter`, `G`, `]`; `None` when it names no key.
    #[must_use]
    pub fn parse(text: &str) -> Option<Chord> {
        let mut rest = text;
        let mut mods = KeyModifiers::NONE;
        loop {
            if let Some(after) = rest.strip_prefix("ctrl-").filter(|after| !after.is_empty()) {
                mods |= KeyModifiers::CONTROL;
                rest = after;
            } else if let Some(after) = rest.strip_prefix("alt-").filter(|after| !after.is_empty()) {
                mods |= KeyModifiers::ALT;
                rest = after;
            } else {
                break;
            }
        }
        let mut chars = rest.chars();
        let code = match (chars.next(), chars.next()) {
            (Some(c), None) => KeyCode::Char(c),
            _ => match NAMED.iter().find(|(_, name)| *name == rest) {
                Some((code, _)) => *code,
                None => KeyCode::F(rest.strip_prefix('f')?.parse().ok().filter(|n| (1..=24).contains(n))?),
            },
        };
        Some(Chord { code, mods })
    }

    /// Reads one or more chords with spaces between them, such as `] e`.
    #[must_use]
    pub fn parse_sequence(text: &str) -> Option<Vec<Chord>> {
        let chords: Option<Vec<_>> = text.split_whitespace().map(Chord::parse).collect();
        chords.filter(|chords| !chords.is_empty())
    }

    /// The digit, when it is one without modifiers.
    #[must_use]
    pub fn digit(self) -> Option<u32> {
        match (self.code, self.mods) {
            (KeyCode::Char(c), KeyModifiers::NONE) => c.to_digit(10),
            _ => None,
        }
    }
}

impl std::fmt::Display for Chord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.mods.contains(KeyModifiers::CONTROL) {
            f.write_str("ctrl-")?;
        }
        if self.mods.contains(KeyModifiers::ALT) {
            f.write_str("alt-")?;
        }
        match (NAMED.iter().find(|(code, _)| *code == self.code), self.code) {
            (Some((_, name)), _) => f.write_str(name),
            (None, KeyCode::Char(c)) => write!(f, "{c}"),
            (None, KeyCode::F(n)) => write!(f, "f{n}"),
            (None, other) => write!(f, "{other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in
            ["ctrl-d", "alt-x", "ctrl-alt-x", "f1", "enter", "G", "]", "-", "ctrl--", "space", "shift-tab"]
        {
            assert_eq!(Chord::parse(text).map(|c| c.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_names_no_key_is_refused() {
        for text in ["", "ctrl-", "f0", "f99", "entr", "hyper-x", "xy"] {
            assert_eq!(Chord::parse(text), None, "{text}");
        }
        assert_eq!(Chord::parse_sequence("] e").map(|s| s.len()), Some(2));
        assert_eq!(Chord::parse_sequence("  "), None);
    }

    #[test]
    fn terminals_that_report_shift_with_a_character_mean_the_same_key() {
        let shifted = KeyEvent::new(KeyCode::Char('G'), KeyModifiers::SHIFT);
        assert_eq!(Some(Chord::of(shifted)), Chord::parse("G"));
        let tab = KeyEvent::new(KeyCode::Tab, KeyModifiers::SHIFT);
        assert_eq!(Some(Chord::of(tab)), Chord::parse("shift-tab"));
    }
}
