//! What a view draws with: the looks of the theme and the glyphs of the character set.

use ratatui::style::Style;
use ratatui::text::Span;

use super::text::Charset;
use crate::config::theme::{Role, Theme};

/// The drawing glyphs; each is one cell wide.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Glyphs {
    /// Beside the selected line.
    pub pointer: char,
    /// A horizontal line.
    pub rule: char,
    /// Between two panes side by side.
    pub wall: char,
    /// A folded branch.
    pub folded: char,
    /// An unfolded branch.
    pub unfolded: char,
    /// From the client to the server.
    pub c2s: char,
    /// From the server to the client.
    pub s2c: char,
    /// Separates facts in a line.
    pub dot: char,
    /// Thumb of a scroll bar.
    pub thumb: char,
    /// The outcomes.
    pub outcome: OutcomeGlyphs,
    /// The parts of a lane.
    pub lane: LaneGlyphs,
}

/// One glyph for each outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutcomeGlyphs {
    /// Answered.
    pub ok: char,
    /// Answered with an error.
    pub error: char,
    /// Input is asked for.
    pub input: char,
    /// Cancelled.
    pub cancel: char,
    /// Left by the client.
    pub disconnect: char,
    /// No answer can come any more.
    pub lost: char,
    /// Answered after the client had given up.
    pub late: char,
    /// Answer and cancel passed each other.
    pub cross: char,
    /// Nothing has come back yet.
    pub open: char,
    /// At work.
    pub run: char,
    /// The recording ended first.
    pub cut: char,
}

/// The parts of a lane in the waterfall.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LaneGlyphs {
    /// The request.
    pub sent: char,
    /// Nothing has come back yet.
    pub silence: char,
    /// The server has shown life.
    pub busy: char,
    /// After the end, until something late.
    pub after: char,
    /// Head of an HTTP answer.
    pub head: char,
    /// Progress.
    pub progress: char,
    /// Another notification.
    pub notification: char,
    /// A subscription was acknowledged.
    pub acknowledged: char,
    /// midwire did something.
    pub injected: char,
    /// The result.
    pub result: char,
    /// Still open.
    pub open: char,
    /// Not known: the recording ended.
    pub unknown: char,
}

/// Drawn with Unicode.
pub(super) const UNICODE: Glyphs = Glyphs {
    pointer: '▌',
    rule: '─',
    wall: '│',
    folded: '▸',
    unfolded: '▾',
    c2s: '→',
    s2c: '←',
    dot: '·',
    thumb: '┃',
    outcome: OutcomeGlyphs {
        ok: '✓',
        error: '✗',
        input: '?',
        cancel: '⊘',
        disconnect: '⊣',
        lost: '†',
        late: '‼',
        cross: '×',
        open: '○',
        run: '◐',
        cut: '┄',
    },
    lane: LaneGlyphs {
        sent: '├',
        silence: '┄',
        busy: '━',
        after: '┈',
        head: '┝',
        progress: '•',
        notification: '▪',
        acknowledged: '◆',
        injected: '‡',
        result: '┫',
        open: '▸',
        unknown: '?',
    },
};

/// Drawn with ASCII only.
pub(super) const ASCII: Glyphs = Glyphs {
    pointer: '>',
    rule: '-',
    wall: '|',
    folded: '>',
    unfolded: 'v',
    c2s: '>',
    s2c: '<',
    dot: '-',
    thumb: '#',
    outcome: OutcomeGlyphs {
        ok: '+',
        error: 'x',
        input: 'i',
        cancel: 'C',
        disconnect: 'D',
        lost: '!',
        late: '*',
        cross: '%',
        open: 'o',
        run: '~',
        cut: '-',
    },
    lane: LaneGlyphs {
        sent: '#',
        silence: '.',
        busy: '=',
        after: '.',
        head: 'h',
        progress: 'p',
        notification: 'n',
        acknowledged: 'a',
        injected: 'M',
        result: ']',
        open: '>',
        unknown: '?',
    },
};

/// The theme and the character set together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ink<'a> {
    /// The looks.
    pub theme: &'a Theme,
    /// What may be drawn.
    pub charset: Charset,
}

impl Ink<'_> {
    /// The glyphs in force.
    #[must_use]
    pub(super) fn glyphs(&self) -> &'static Glyphs {
        if self.charset.is_ascii { &ASCII } else { &UNICODE }
    }

    /// The looks of a role.
    #[must_use]
    pub(super) fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }

    /// A piece of text from anywhere, cleaned, in a role.
    #[must_use]
    pub(super) fn span(&self, text: &str, role: Role) -> Span<'static> {
        Span::styled(self.charset.clean(text).into_owned(), self.style(role))
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthChar;

    use super::*;

    fn all(glyphs: &Glyphs) -> Vec<char> {
        let Glyphs { pointer, rule, wall, folded, unfolded, c2s, s2c, dot, thumb, outcome: o, lane: l } =
            glyphs;
        let mut all = vec![*pointer, *rule, *wall, *folded, *unfolded, *c2s, *s2c, *dot, *thumb];
        all.extend([
            o.ok,
            o.error,
            o.input,
            o.cancel,
            o.disconnect,
            o.lost,
            o.late,
            o.cross,
            o.open,
            o.run,
            o.cut,
        ]);
        all.extend([l.sent, l.silence, l.busy, l.after, l.head, l.progress, l.notification, l.acknowledged]);
        all.extend([l.result, l.open, l.unknown]);
        all
    }

    #[test]
    fn every_glyph_is_one_cell_and_ascii_is_ascii() {
        assert!(all(&UNICODE).iter().all(|c| c.width() == Some(1)));
        assert!(all(&ASCII).iter().all(char::is_ascii));
    }

    #[test]
    fn outcomes_differ_by_glyph() {
        for OutcomeGlyphs { ok, error, input, cancel, disconnect, lost, late, cross, open, run, cut } in
            [&UNICODE.outcome, &ASCII.outcome]
        {
            let mut seen = vec![ok, error, input, cancel, disconnect, lost, late, cross, open, run, cut];
            seen.sort();
            seen.dedup();
            assert_eq!(seen.len(), 11);
        }
    }
}
