//! The lines of the chosen message under the chosen tab. Only the lines on the screen are made.

use ratatui::text::{Line, Span};

use super::{Detail, Known, Subject, Tab, is_message};
use crate::config::theme::Role;
use crate::event::{Dir, Transport};
use crate::model::{Call, ClientView, Model, Row, ServerView};
use crate::ui::ink::Ink;
use crate::ui::outcome;
use crate::ui::session::Session;
use crate::ui::units::{moment, span};
use crate::ui::words;

/// What the body really shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Face {
    /// Nothing is chosen.
    Empty,
    /// The bytes have not come yet.
    Waiting,
    /// They cannot be had.
    Failed,
    Tree,
    Raw,
    /// Rows without bytes: what their event says.
    Facts,
    Headers,
    Timing,
}

impl Detail {
    pub(super) fn face(&self, session: &Session) -> Face {
        let Some(idx) = self.row() else { return Face::Empty };
        match self.tab {
            Tab::Headers => return Face::Headers,
            Tab::Timing => return Face::Timing,
            Tab::Tree | Tab::Raw => {}
        }
        let is_message = session.model.row(idx).is_some_and(|row| is_message(row.kind));
        match self.known(idx) {
            None | Some(Known::Asked) => Face::Waiting,
            Some(Known::Failed(_)) => Face::Failed,
            Some(Known::Here(content)) if content.bytes.is_empty() => {
                if content.head.is_some() {
                    Face::Headers
                } else {
                    Face::Facts
                }
            }
            Some(Known::Here(_)) if self.tab == Tab::Tree && is_message => Face::Tree,
            Some(Known::Here(_)) => Face::Raw,
        }
    }

    /// How many lines the body has.
    pub(super) fn body_len(&self, session: &Session) -> usize {
        match self.face(session) {
            Face::Empty => 0,
            Face::Waiting | Face::Failed => 1,
            Face::Tree => self.tree.as_ref().map_or(0, |(_, tree)| tree.len()),
            Face::Raw => self.raw.as_ref().map_or(0, |(_, raw)| raw.len()),
            Face::Facts => self.facts().len(),
            Face::Headers => self.header_lines(session).len(),
            Face::Timing => self.call(session).map_or(0, |call| TIMING_HEAD + call.marks.len()),
        }
    }

    /// One line of the body.
    pub(super) fn body_line(
        &self,
        session: &Session,
        line: usize,
        width: usize,
        ink: &Ink<'_>,
    ) -> Line<'static> {
        match self.face(session) {
            Face::Empty => Line::default(),
            Face::Waiting => text("reading …", width, Role::Muted, ink),
            Face::Failed => match self.row().and_then(|row| self.known(row)) {
                Some(Known::Failed(why)) => text(why, width, Role::Error, ink),
                _ => Line::default(),
            },
            Face::Tree => self.tree.as_ref().map(|(_, tree)| tree.draw(line, width, ink)).unwrap_or_default(),
            Face::Raw => self.raw.as_ref().map(|(_, raw)| raw.draw(line, ink)).unwrap_or_default(),
            Face::Facts => match self.facts().get(line) {
                Some((name, value)) => pair(name, value, width, ink),
                None => Line::default(),
            },
            Face::Headers => match self.header_lines(session).into_iter().nth(line) {
                Some((None, value)) => text(&value, width, Role::Title, ink),
                Some((Some(name), value)) => pair(&name, &value, width, ink),
                None => Line::default(),
            },
            Face::Timing => match self.call(session) {
                Some(call) => timing_line(session, call, line, width, ink),
                None => Line::default(),
            },
        }
    }

    fn facts(&self) -> &[(&'static str, String)] {
        self.row().and_then(|row| self.content(row)).map_or(&[], |content| content.facts.as_slice())
    }

    /// The call of the subject, where it has one.
    fn call<'a>(&self, session: &'a Session) -> Option<&'a Call> {
        let idx = match self.subject? {
            Subject::Call(idx) => idx,
            Subject::Row(row) => session.model.row(row)?.call?,
        };
        session.model.call(idx)
    }

    /// The heads of the exchange: titles without a name, fields with one.
    fn header_lines(&self, session: &Session) -> Vec<(Option<String>, String)> {
        let row = self.row().and_then(|row| session.model.row(row));
        if row.is_some_and(|row| row.transport == Transport::Stdio) {
            return vec![(None, "stdio has no headers: a message is one line".to_owned())];
        }
        let mut lines = Vec::new();
        for idx in self.heads(session) {
            match self.known(idx) {
                Some(Known::Here(content)) => {
                    let Some(head) = &content.head else { continue };
                    lines.push((None, head.line.clone()));
                    let fields = head.headers.0.iter();
                    lines.extend(fields.map(|(name, value)| (Some(name.clone()), value.clone())));
                }
                Some(Known::Failed(why)) => lines.push((None, why.clone())),
                _ => lines.push((None, "reading …".to_owned())),
            }
            lines.push((None, String::new()));
        }
        lines.push((None, "the order of different names is not known to be the sender's".to_owned()));
        lines
    }
}

fn text(text: &str, width: usize, role: Role, ink: &Ink<'_>) -> Line<'static> {
    Line::from(Span::styled(ink.charset.fit(text, width), ink.style(role)))
}

fn pair(name: &str, value: &str, width: usize, ink: &Ink<'_>) -> Line<'static> {
    let name = ink.charset.fit(name, width / 2);
    let left = width.saturating_sub(unicode_width::UnicodeWidthStr::width(name.as_str()) + 2);
    Line::from(vec![
        Span::styled(name, ink.style(Role::JsonKey)),
        Span::styled(": ", ink.style(Role::Faint)),
        Span::styled(ink.charset.fit(value, left), ink.style(Role::Text)),
    ])
}

/// Lines of the timing tab before the marks.
const TIMING_HEAD: usize = 8;

fn timing_line(session: &Session, call: &Call, line: usize, width: usize, ink: &Ink<'_>) -> Line<'static> {
    let now = session.now();
    let end = call.ended.unwrap_or(now);
    let first = call.marks.iter().find(|mark| mark.at > call.started);
    match line {
        0 => pair("began", &moment(call.started), width, ink),
        1 => pair("took", &span(outcome::duration_ns(call, now)), width, ink),
        2 => {
            let text = first.map_or("none".to_owned(), |mark| span(mark.at.ns_since(call.started)));
            pair("first sign of the other side after", &text, width, ink)
        }
        3 => pair("progress", &progress(call, end), width, ink),
        4 => pair("client", client_view(call.client), width, ink),
        5 => pair("server", server_view(call.server), width, ink),
        6 => pair("linked to", &links(&session.model, call), width, ink),
        7 => text("        at     +start    +before  handed on  row", width, Role::Muted, ink),
        _ => {
            let at = line - TIMING_HEAD;
            let Some(mark) = call.marks.get(at) else { return Line::default() };
            let before =
                at.checked_sub(1).and_then(|before| call.marks.get(before)).map_or(mark.at, |m| m.at);
            let Some(row) = session.model.row(mark.row) else { return Line::default() };
            let handed = row.out.map_or("-".to_owned(), |out| span(out.ns_since(row.at)));
            let columns = format!(
                "{:>10} {:>10} {:>10} {:>10}  ",
                moment(mark.at),
                span(mark.at.ns_since(call.started)),
                span(mark.at.ns_since(before)),
                handed
            );
            let name = format!("#{} {}", row.n, words::kind(row.kind));
            Line::from(vec![
                Span::styled(ink.charset.fit(&columns, width), ink.style(Role::JsonNumber)),
                Span::styled(
                    ink.charset.fit(&name, width.saturating_sub(columns.len())),
                    ink.style(words::kind_role(row)),
                ),
            ])
        }
    }
}

fn progress(call: &Call, end: crate::time::Mono) -> String {
    let progress = &call.progress;
    let Some(last_at) = progress.last_at else {
        return if call.token.is_some() { "asked for, none came" } else { "not asked for" }.to_owned();
    };
    let rejected = match progress.rejected {
        0 => String::new(),
        n => format!(", {n} that did not rise"),
    };
    format!("{} accepted{rejected}, the last {} before the end", progress.count, span(end.ns_since(last_at)))
}

fn client_view(view: ClientView) -> &'static str {
    match view {
        ClientView::Waiting => "waits, as far as can be seen",
        ClientView::Answered => "has its answer",
        ClientView::Abandoned => "has given up",
    }
}

fn server_view(view: ServerView) -> &'static str {
    match view {
        ServerView::Unknown => "not known: nothing has come from it",
        ServerView::Working => "has shown life",
        ServerView::Completed => "has answered",
        ServerView::Cancelled => "has seen the cancel",
        ServerView::Gone => "is gone",
    }
}

fn links(model: &Model, call: &Call) -> String {
    let name = |idx| model.call(idx).map_or(String::new(), |other| format!("id {}", other.id));
    let mut parts = Vec::new();
    parts.extend(call.retry_of.map(|idx| format!("repeats {}", name(idx))));
    parts.extend(call.round_of.map(|idx| format!("continues {}", name(idx))));
    if parts.is_empty() { "no other call".to_owned() } else { parts.join(", ") }
}

/// One line of the list of messages.
pub(super) fn message_line(session: &Session, row: &Row, width: usize, ink: &Ink<'_>) -> Line<'static> {
    let start = row.call.and_then(|idx| session.model.call(idx)).map_or(row.at, |call| call.started);
    let (glyph, role) = words::direction(row.dir, ink.glyphs());
    let at = format!("+{}", span(row.at.ns_since(start)));
    let size = if row.source.len > 0 { crate::ui::units::size(row.source.len) } else { String::new() };
    // Glyph, blank, kind, subject, time, size, each with a blank between.
    let room = width.saturating_sub(2 + 13 + 8 + 9 + 1);
    let subject = if row.dir == Dir::Tap || row.kind == crate::model::RowKind::Request || room > 20 {
        words::subject(&session.model, row, ink)
    } else {
        String::new()
    };
    Line::from(vec![
        Span::styled(format!("{glyph} "), ink.style(role)),
        Span::styled(ink.charset.pad(words::kind(row.kind), 13), ink.style(words::kind_role(row))),
        Span::styled(ink.charset.pad(&subject, room), ink.style(Role::Muted)),
        Span::styled(ink.charset.pad_left(&at, 8), ink.style(Role::Text)),
        Span::styled(ink.charset.pad_left(&size, 10), ink.style(Role::Muted)),
    ])
}
