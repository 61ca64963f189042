//! Stream: every row in causal order. The moment for it: "what happened, exactly in this order?"

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::ink::Ink;
use super::paint::{self, Scroll};
use super::session::Session;
use super::state::State;
use super::{units, words};
use crate::config::keys::Action;
use crate::config::theme::Role;
use crate::model::{Row, RowIdx};
use crate::time::Mono;

/// The keys that mean something in the list.
pub(super) const HINTS: [(Action, &str); 10] = [
    (Action::Open, "open"),
    (Action::Filter, "filter"),
    (Action::Follow, "follow"),
    (Action::NextError, "next error"),
    (Action::NextGap, "next gap"),
    (Action::Reference, "count time from here"),
    (Action::Pane, "pane"),
    (Action::Copy, "copy"),
    (Action::Pause, "pause"),
    (Action::Mark, "mark"),
];

const N: usize = 9;
const TIME: usize = 13;
const KIND: usize = 14;
const SIZE: usize = 11;
const HOP: usize = 8;

/// Widths of the columns that depend on the screen, in cells; 0: not shown.
struct Cells {
    id: usize,
    stream: usize,
    hop: usize,
    text: usize,
}

impl Cells {
    fn of(width: u16) -> Cells {
        let (id, stream, hop) = if width < 100 { (6, 0, 0) } else { (10, 6, HOP) };
        let used = 1 + N + TIME + 2 + KIND + id + stream + hop + SIZE + 1;
        Cells { id, stream, hop, text: usize::from(width).saturating_sub(used) }
    }

    fn names(&self, ink: &Ink<'_>) -> Line<'static> {
        let set = ink.charset;
        let text = [
            set.pad_left("#  ", N + 1),
            set.pad_left("time  ", TIME),
            set.pad("", 2),
            set.pad("what", KIND),
            set.pad("id", self.id),
            set.pad("strm", self.stream),
            set.pad("method, text", self.text),
            set.pad_left(if self.hop > 0 { "hop" } else { "" }, self.hop),
            set.pad_left("size", SIZE),
        ];
        Line::from(Span::styled(text.concat(), ink.style(Role::Muted)))
    }

    fn line(&self, session: &Session, row: &Row, ink: &Ink<'_>) -> Line<'static> {
        let set = ink.charset;
        let time = if session.reference == Mono(0) {
            units::moment(row.at)
        } else {
            units::moment_from(row.at, session.reference)
        };
        let (arrow, arrow_role) = words::direction(row.dir, ink.glyphs());
        let role = words::kind_role(row);
        let call = row.call.and_then(|idx| session.model.call(idx));
        let id = call.map_or(String::new(), |call| call.id.to_string());
        let stream = row.stream.map_or(String::new(), |stream| stream.to_string());
        let hop = row.out.map_or(String::new(), |out| units::span(out.ns_since(row.at)));
        let size = if row.source.len > 0 { units::size(row.source.len) } else { String::new() };
        Line::from(vec![
            Span::styled(set.pad_left(&format!("{}  ", row.n), N), ink.style(Role::Faint)),
            Span::styled(set.pad_left(&format!("{time}  "), TIME), ink.style(Role::Muted)),
            Span::styled(format!("{arrow} "), ink.style(arrow_role)),
            Span::styled(set.pad(words::kind(row.kind), KIND), ink.style(role)),
            Span::styled(set.pad(&format!("{id} "), self.id), ink.style(Role::Muted)),
            Span::styled(set.pad(&stream, self.stream), ink.style(Role::Faint)),
            Span::styled(set.pad(&words::subject(&session.model, row, ink), self.text), ink.style(role)),
            Span::styled(
                set.pad_left(if self.hop > 0 { &hop } else { "" }, self.hop),
                ink.style(Role::Faint),
            ),
            Span::styled(set.pad_left(&size, SIZE), ink.style(Role::Muted)),
        ])
    }
}

/// Draws the list.
pub(super) fn draw(
    state: &State,
    session: &Session,
    columns: Rect,
    list: Rect,
    ink: &Ink<'_>,
    frame: &mut Frame<'_>,
) {
    let cells = Cells::of(list.width);
    frame.render_widget(cells.names(ink), columns);
    let len = session.rows.len();
    let cursor = state.stream.cursor;
    if len == 0 {
        let text = match &session.filter {
            Some(_) if session.rows.score().1 < session.model.rows().len() => " still filtering …",
            Some(_) => " nothing matches the filter; / changes it",
            None => " nothing has passed yet",
        };
        frame.render_widget(ink.span(text, Role::Muted), list);
    }
    for (y, line) in cursor.visible(len, usize::from(list.height)).enumerate() {
        let Some(item) = session.rows.item(line) else { continue };
        let Some(row) = session.model.row(RowIdx(item)) else { continue };
        let at = paint::line_at(list, y);
        paint::item(cells.line(session, row, ink), at, line == cursor.at, state.opened.is_none(), ink, frame);
        if session.rows.is_marked(item) {
            paint::found(at, ink, frame);
        }
    }
    paint::scroll_bar(list, Scroll { top: cursor.top, len }, ink, frame);
}
