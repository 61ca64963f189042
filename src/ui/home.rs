//! Home: running taps and saved recordings. The moment for it: "what is there to look at?"
//!
//! Running ones stand first, then recordings, newest first. Where there is nothing yet, it says
//! what to do and offers the demo.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::ink::Ink;
use super::msg::{Command, Entry, Feed};
use super::paint::{self, Scroll};
use super::state::State;
use super::{units, words};
use crate::config::keys::Action;
use crate::config::theme::Role;

/// The keys that mean something here.
pub(super) fn hints(state: &State) -> Vec<(Action, &'static str)> {
    if state.library.as_ref().is_some_and(Vec::is_empty) {
        return vec![(Action::Open, "start the demo"), (Action::Help, "help"), (Action::Close, "quit")];
    }
    vec![
        (Action::Open, "open"),
        (Action::Down, "down"),
        (Action::Up, "up"),
        (Action::Help, "help"),
        (Action::Command, "command"),
        (Action::Close, "quit"),
    ]
}

/// Lines of the list that fit, the same for moving and for drawing.
pub(super) fn lines_on_screen(list_height: u16) -> usize {
    usize::from(list_height)
}

/// Answers a key.
pub(super) fn act(state: &mut State, action: Action, count: Option<usize>) -> Vec<Command> {
    let height = lines_on_screen(state.areas().list.height);
    let Some(entries) = &state.library else { return Vec::new() };
    if action == Action::Open {
        return match entries.get(state.home.at) {
            Some(entry) => vec![Command::Open(entry.key)],
            None => vec![Command::StartDemo],
        };
    }
    state.home.act(action, count.unwrap_or(1), entries.len(), height);
    Vec::new()
}

/// Draws the list, or the welcome where there is nothing.
pub(super) fn draw(state: &State, columns: Rect, list: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    match &state.library {
        None => frame.render_widget(ink.span(" looking for taps and recordings …", Role::Muted), list),
        Some(entries) if entries.is_empty() => welcome(list, ink, frame),
        Some(entries) => {
            let cells = Cells::of(list.width);
            frame.render_widget(cells.names(ink), columns);
            let height = lines_on_screen(list.height);
            for (y, line) in state.home.visible(entries.len(), height).enumerate() {
                let Some(entry) = entries.get(line) else { continue };
                let drawn = cells.line(entry, ink);
                paint::item(drawn, paint::line_at(list, y), line == state.home.at, true, ink, frame);
            }
            paint::scroll_bar(list, Scroll { top: state.home.top, len: entries.len() }, ink, frame);
        }
    }
}

/// Widths of the columns, in cells.
struct Cells {
    what: usize,
    label: usize,
}

const STATE: usize = 10;
const STARTED: usize = 20;
const KIND: usize = 6;
const EVENTS: usize = 8;
const SIZE: usize = 10;

impl Cells {
    fn of(width: u16) -> Cells {
        // The gutter, the fixed columns, and a blank at the right edge.
        let rest = usize::from(width).saturating_sub(1 + STATE + STARTED + KIND + EVENTS + SIZE + 1);
        let label = if rest >= 60 { 20 } else { 0 };
        Cells { what: rest.saturating_sub(label), label }
    }

    fn names(&self, ink: &Ink<'_>) -> Line<'static> {
        let set = ink.charset;
        let label = if self.label > 0 { "label" } else { "" };
        let text = [
            set.pad(" state", STATE + 1),
            set.pad("started", STARTED),
            set.pad("path", KIND),
            set.pad("command or upstream", self.what),
            set.pad(label, self.label),
            set.pad_left("events", EVENTS),
            set.pad_left("size", SIZE),
        ];
        Line::from(Span::styled(text.concat(), ink.style(Role::Muted)))
    }

    fn line(&self, entry: &Entry, ink: &Ink<'_>) -> Line<'static> {
        let set = ink.charset;
        let glyphs = &ink.glyphs().outcome;
        let (glyph, word, role) = match entry.feed {
            Feed::Live => (glyphs.run, "LIVE", Role::Open),
            Feed::Whole => (glyphs.ok, "WHOLE", Role::Ok),
            Feed::Cut => (glyphs.cut, "CUT", Role::Warn),
        };
        let runs = if entry.runs > 1 { format!("{} runs: ", entry.runs) } else { String::new() };
        let narrow_label = entry.label.as_ref().filter(|_| self.label == 0);
        let what = match narrow_label {
            Some(label) => format!("{runs}{label}: {}", entry.what),
            None => format!("{runs}{}", entry.what),
        };
        let label = entry.label.clone().unwrap_or_default();
        let events = entry.events.map_or(String::new(), units::count);
        Line::from(vec![
            Span::styled(set.pad(&format!("{glyph} {word}"), STATE), ink.style(role)),
            Span::styled(set.pad(&entry.started, STARTED), ink.style(Role::Muted)),
            Span::styled(set.pad(words::transport(entry.transport), KIND), ink.style(Role::Muted)),
            Span::styled(set.pad(&what, self.what), ink.style(Role::Text)),
            Span::styled(set.pad(&label, self.label), ink.style(Role::Midwire)),
            Span::styled(set.pad_left(&events, EVENTS), ink.style(Role::Text)),
            Span::styled(set.pad_left(&units::size(entry.size_bytes), SIZE), ink.style(Role::Muted)),
        ])
    }
}

fn welcome(area: Rect, ink: &Ink<'_>, frame: &mut Frame<'_>) {
    let key = |text: &str| ink.span(text, Role::Key);
    let text = |text: &str| ink.span(text, Role::Text);
    let muted = |text: &str| ink.span(text, Role::Muted);
    let lines = [
        Line::from(ink.span("midwire", Role::Title)),
        Line::from(muted("a man in the middle for MCP: who did what when, and who was right")),
        Line::default(),
        Line::from(text("No tap is running and nothing has been recorded yet.")),
        Line::default(),
        Line::from(vec![key("enter  "), text("starts the demo: a guided tour of trouble, offline")]),
        Line::default(),
        Line::from(muted("or put midwire in the path of your own traffic, in another terminal:")),
        Line::default(),
        Line::from(vec![
            key("  midwire stdio -- CMD ARGS      "),
            muted("in place of CMD ARGS in your client"),
        ]),
        Line::from(vec![key("  midwire http --upstream URL    "), muted("and point your client at it")]),
        Line::default(),
        Line::from(muted("whatever runs appears here by itself; no order of starting is needed")),
    ];
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let width = lines.iter().map(Line::width).max().and_then(|w| u16::try_from(w).ok()).unwrap_or(0);
    let left = area.x + area.width.saturating_sub(width) / 2;
    let top = area.height.saturating_sub(height) / 3;
    for (y, line) in lines.into_iter().enumerate() {
        let at = paint::line_at(area, usize::from(top) + y);
        frame.render_widget(line, Rect { x: left, width: area.right().saturating_sub(left), ..at });
    }
}
