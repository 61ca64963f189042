//! One call or one row, opened: its messages, and the chosen one as tree, raw bytes, headers or
//! timing.
//!
//! The moment for it: "what exactly was sent, and what came back?"
//!
//! Bodies are not in the model. What is opened is fetched (`Msg::Fetched`), and only that is ever
//! read as JSON.

mod body;
mod content;
mod draw;
mod json;
mod raw;
mod tree;

use body::Face;
use content::Content;

use super::cursor::Cursor;
use super::msg::Command;
use super::session::Session;
use super::text::Charset;
use crate::config::keys::Action;
use crate::event::Event;
use crate::model::{CallIdx, MarkKind, RowIdx, RowKind};
use raw::Raw;
use tree::Tree;

/// How many fetched rows are kept, newest first.
const KEPT: usize = 8;

/// What is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// A call with everything that belongs to it.
    Call(CallIdx),
    /// One row.
    Row(RowIdx),
}

/// How the chosen message is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tab {
    /// As a JSON tree.
    #[default]
    Tree,
    /// Byte by byte.
    Raw,
    /// HTTP heads.
    Headers,
    /// When what passed, and how long it took.
    Timing,
}

impl Tab {
    /// Every tab, in the order shown.
    pub(super) const ALL: [Tab; 4] = [Tab::Tree, Tab::Raw, Tab::Headers, Tab::Timing];

    /// Its name.
    #[must_use]
    pub(super) fn name(self) -> &'static str {
        match self {
            Tab::Tree => "Tree",
            Tab::Raw => "Raw",
            Tab::Headers => "Headers",
            Tab::Timing => "Timing",
        }
    }

    fn step(self, by: usize) -> Tab {
        let at = Tab::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Tab::ALL.get((at + by) % Tab::ALL.len()).copied().unwrap_or_default()
    }
}

/// Which part answers the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Part {
    /// The list of messages.
    #[default]
    Messages,
    /// The chosen message.
    Body,
}

/// Sizes of the parts on the screen, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Room {
    /// Lines of the list of messages.
    pub messages: usize,
    /// Lines of the body.
    pub body: usize,
    /// Columns of the body.
    pub width: usize,
}

/// What is known of a row that was asked for.
#[derive(Debug, Clone)]
enum Known {
    Asked,
    Here(Box<Content>),
    Failed(String),
}

/// An opened call or row.
#[derive(Debug, Clone, Default)]
pub(super) struct Detail {
    subject: Option<Subject>,
    /// The rows of the subject, in order.
    rows: Vec<RowIdx>,
    messages: Cursor,
    tab: Tab,
    body: Cursor,
    known: Vec<(RowIdx, Known)>,
    tree: Option<(RowIdx, Tree)>,
    raw: Option<(RowIdx, Raw)>,
}

impl Detail {
    /// Shows another subject; the same one keeps its place.
    pub(super) fn show(&mut self, subject: Option<Subject>) {
        if self.subject != subject {
            let known = std::mem::take(&mut self.known);
            *self = Detail { subject, tab: self.tab, known, ..Detail::default() };
        }
    }

    /// Forgets everything, as another session was opened.
    pub(super) fn reset(&mut self) {
        *self = Detail { tab: self.tab, ..Detail::default() };
    }

    /// The chosen row.
    #[must_use]
    pub(super) fn row(&self) -> Option<RowIdx> {
        self.rows.get(self.messages.at).copied()
    }

    /// Answers a key. Returns false when it means nothing here.
    pub(super) fn act(
        &mut self,
        action: Action,
        times: usize,
        part: Part,
        room: Room,
        session: &Session,
    ) -> bool {
        match (action, part) {
            (Action::Tab, _) => self.set_tab(self.tab.step(1)),
            (Action::TabBack, _) => self.set_tab(self.tab.step(Tab::ALL.len() - 1)),
            (Action::Left | Action::Right, Part::Messages) => {
                self.set_tab(self.tab.step(if action == Action::Right { 1 } else { Tab::ALL.len() - 1 }));
            }
            (Action::Left | Action::Right | Action::Open, Part::Body) => return self.fold(action),
            (_, Part::Messages) => {
                let before = self.messages.at;
                if !self.messages.act(action, times, self.rows.len(), room.messages) {
                    return false;
                }
                if before != self.messages.at {
                    self.body = Cursor::default();
                }
            }
            (_, Part::Body) => {
                let len = self.body_len(session);
                return self.body.act(action, times, len, room.body);
            }
        }
        true
    }

    fn set_tab(&mut self, tab: Tab) {
        self.tab = tab;
        self.body = Cursor::default();
    }

    fn fold(&mut self, action: Action) -> bool {
        let chosen = self.row().filter(|_| self.tab == Tab::Tree);
        let Some((_, tree)) = self.tree.as_mut().filter(|(row, _)| Some(*row) == chosen) else {
            return false;
        };
        self.body.at = match action {
            Action::Left => tree.fold(self.body.at, true),
            Action::Right => tree.fold(self.body.at, false),
            _ => tree.toggle(self.body.at),
        };
        true
    }

    /// Scrolls one part by lines, as a wheel does.
    pub(super) fn scroll(&mut self, part: Part, is_down: bool, room: Room, session: &Session) {
        let action = if is_down { Action::Down } else { Action::Up };
        self.act(action, 3, part, room, session);
    }

    /// Brings everything up to date with the model and the size of the pane. Returns what has to
    /// be fetched for it.
    pub(super) fn sync(&mut self, session: &Session, room: Room, charset: Charset) -> Vec<Command> {
        self.refresh_rows(session);
        self.messages.settle(self.rows.len(), room.messages);
        let mut commands = Vec::new();
        for row in self.wanted(session) {
            commands.extend(self.ask(session, row));
        }
        self.build(session, room, charset);
        let len = self.body_len(session);
        self.body.settle(len, room.body);
        commands
    }

    fn refresh_rows(&mut self, session: &Session) {
        match self.subject {
            Some(Subject::Call(call)) => {
                self.rows.clear();
                self.rows.extend(session.model.rows_of(call));
            }
            Some(Subject::Row(row)) => self.rows = vec![row],
            None => self.rows.clear(),
        }
    }

    /// The rows whose bytes the current tab needs.
    fn wanted(&self, session: &Session) -> Vec<RowIdx> {
        match self.tab {
            Tab::Tree | Tab::Raw => self.row().into_iter().collect(),
            Tab::Headers => self.heads(session),
            Tab::Timing => Vec::new(),
        }
    }

    /// The rows that hold the heads of the exchange: that of the request, then that of the answer.
    fn heads(&self, session: &Session) -> Vec<RowIdx> {
        let Some(row) = self.row() else { return Vec::new() };
        let call = match self.subject {
            Some(Subject::Call(call)) => Some(call),
            _ => session.model.row(row).and_then(|row| row.call),
        };
        let Some(call) = call.and_then(|call| session.model.call(call)) else { return vec![row] };
        let head = call.marks.iter().find(|mark| mark.kind == MarkKind::Head).map(|mark| mark.row);
        std::iter::once(call.row).chain(head).collect()
    }

    fn ask(&mut self, session: &Session, row: RowIdx) -> Option<Command> {
        if self.known.iter().any(|(known, _)| *known == row) {
            return None;
        }
        let source = session.model.row(row)?.source;
        self.known.insert(0, (row, Known::Asked));
        self.known.truncate(KEPT);
        Some(Command::Fetch { row, first: source.first, last: source.last })
    }

    /// Takes what was fetched.
    pub(super) fn fetched(&mut self, session: &Session, row: RowIdx, events: Result<&[Event], String>) {
        let Some((_, known)) = self.known.iter_mut().find(|(known, _)| *known == row) else { return };
        *known = match (events, session.model.row(row)) {
            (Ok(events), Some(row)) => Known::Here(Box::new(Content::read(row, events))),
            (Ok(_), None) => Known::Failed("this row is not there any more".to_owned()),
            (Err(why), _) => Known::Failed(why),
        };
    }

    fn known(&self, row: RowIdx) -> Option<&Known> {
        self.known.iter().find(|(known, _)| *known == row).map(|(_, known)| known)
    }

    fn content(&self, row: RowIdx) -> Option<&Content> {
        match self.known(row) {
            Some(Known::Here(content)) => Some(content),
            _ => None,
        }
    }

    /// Builds what the current tab shows of the chosen row, once.
    fn build(&mut self, session: &Session, room: Room, charset: Charset) {
        let face = self.face(session);
        let Some(row) = self.row() else { return };
        match face {
            Face::Tree => match &mut self.tree {
                Some((of, tree)) if *of == row => tree.set_width(room.width),
                _ => {
                    let text = self.content(row).map(|content| content.text.clone()).unwrap_or_default();
                    self.tree = Some((row, Tree::new(text, room.width, charset)));
                }
            },
            Face::Raw => match &mut self.raw {
                Some((of, raw)) if *of == row => raw.set_layout(room.width, charset),
                _ => {
                    let bytes = self.content(row).map(|content| content.bytes.clone()).unwrap_or_default();
                    self.raw = Some((row, Raw::new(bytes, room.width, charset)));
                }
            },
            _ => {}
        }
    }

    /// What can be copied of what is selected: the value, its key, its path, and the frame.
    #[must_use]
    pub(super) fn copies(&self) -> Copies {
        let frame = self.row().and_then(|row| self.content(row));
        let frame = frame.map(|content| String::from_utf8_lossy(&content.bytes).into_owned());
        let tree = self.tree.as_ref().filter(|(row, _)| Some(*row) == self.row() && self.tab == Tab::Tree);
        let line = self.body.at;
        Copies {
            value: tree.and_then(|(_, tree)| tree.value(line)).map(str::to_owned),
            key: tree.and_then(|(_, tree)| tree.key(line)).map(str::to_owned),
            path: tree.and_then(|(_, tree)| tree.pointer(line)),
            frame,
        }
    }
}

/// What can be copied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Copies {
    /// The selected value as JSON.
    pub value: Option<String>,
    /// Its member name.
    pub key: Option<String>,
    /// Its JSON Pointer.
    pub path: Option<String>,
    /// The whole frame.
    pub frame: Option<String>,
}

/// A row of this kind is a message, so its bytes are read as JSON.
fn is_message(kind: RowKind) -> bool {
    matches!(
        kind,
        RowKind::Request
            | RowKind::Notification
            | RowKind::Progress
            | RowKind::Cancelled
            | RowKind::Result
            | RowKind::Error
            | RowKind::Invalid
            | RowKind::HttpBody
    )
}
