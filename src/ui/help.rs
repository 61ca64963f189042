//! Help: every key, made from the key map and from what the current view answers, so that it
//! cannot say anything else than what is true.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::cursor::Cursor;
use super::foot;
use super::ink::Ink;
use super::lane;
use super::paint::{self, Scroll};
use super::state::State;
use crate::config::keys::Action;
use crate::config::theme::Role;

/// Words of outcomes and what they mean.
const OUTCOMES: [(&str, &str); 12] = [
    ("OK", "answered by a result"),
    ("FAIL", "answered by a tool result that says isError"),
    ("ERR", "answered by an error, or refused by HTTP"),
    ("INPUT", "answered by asking for input; a new request continues it"),
    ("OPEN", "nothing has come back yet"),
    ("RUN", "open, and the server has shown life"),
    ("CANCEL", "cancelled by the client, and no answer passed"),
    ("DISC", "the client left before an answer"),
    ("CROSS", "answer and cancel were under way at once; nobody is at fault"),
    ("LATE", "answered although the server must have seen the cancel"),
    ("LOST", "the stream or the process ended before an answer"),
    ("CUT", "the recording ended first"),
];

/// Lines of the page on the screen.
pub(super) fn height(state: &State) -> usize {
    usize::from(state.size.1).saturating_sub(3)
}

/// Lines of the whole page: four titles with a blank line before each but the first.
pub(super) fn len(state: &State) -> usize {
    foot::hints(state).len() + Action::ALL.len() + OUTCOMES.len() + 17 + 4 + 3
}

fn lines(state: &State, ink: &Ink<'_>) -> Vec<Line<'static>> {
    let title = |text: &str| Line::from(ink.span(text, Role::Title));
    let mut lines = vec![title("Here")];
    for (action, what) in foot::hints(state) {
        lines.push(key_line(state, action, what, ink));
    }
    lines.push(Line::default());
    lines.push(title("Everywhere: each has a name, for `:` and for [keys] in config.toml"));
    for action in Action::ALL {
        lines.push(key_line(state, *action, action.meaning(), ink));
    }
    lines.push(Line::default());
    lines.push(title("Outcomes"));
    for (word, meaning) in OUTCOMES {
        lines.push(Line::from(vec![
            Span::styled(format!("  {}", ink.charset.pad(word, 14)), ink.style(Role::Key)),
            ink.span(meaning, Role::Text),
        ]));
    }
    lines.push(Line::default());
    lines.push(title("Lanes: a column is a step of time; where several marks share one, the gravest shows"));
    for ((glyph, role), meaning) in lane::legend(ink.glyphs()) {
        lines.push(Line::from(vec![
            Span::styled(format!("  {}", ink.charset.pad(&glyph.to_string(), 14)), ink.style(role)),
            ink.span(meaning, Role::Text),
        ]));
    }
    lines
}

fn key_line(state: &State, action: Action, what: &str, ink: &Ink<'_>) -> Line<'static> {
    let keys = state.keys.keys_of(action).join(" ");
    Line::from(vec![
        Span::styled(format!("  {}", ink.charset.pad(&keys, 18)), ink.style(Role::Key)),
        Span::styled(ink.charset.pad(action.name(), 16), ink.style(Role::Muted)),
        ink.span(what, Role::Text),
    ])
}

/// Draws the page over the whole screen.
pub(super) fn draw(state: &State, cursor: Cursor, area: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let head = format!(" Help: {}", state.view.name());
    let bar = paint::two_sided(
        vec![ink.span(&head, Role::Title)],
        vec![ink.span("j k scroll  esc back ", Role::Muted)],
        area.width,
        ink,
    );
    frame.render_widget(bar.style(ink.style(Role::Bar)), Rect { height: 1, ..area });
    let page = Rect { y: area.y + 2, height: area.height.saturating_sub(3), ..area };
    let lines = lines(state, ink);
    let len = lines.len();
    for (y, line) in lines.into_iter().skip(cursor.top).take(usize::from(page.height)).enumerate() {
        frame.render_widget(
            line,
            Rect { x: page.x + 1, width: page.width.saturating_sub(2), ..paint::line_at(page, y) },
        );
    }
    paint::scroll_bar(page, Scroll { top: cursor.top, len }, ink, frame);
}
