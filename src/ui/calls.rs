//! Calls: one line for each request, with its lane. The moment for it: "what is going on, and what
//! takes so long?"

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::act;
use super::ink::Ink;
use super::lane::{self, Window};
use super::outcome::{self, Outcome};
use super::paint::{self, Scroll};
use super::session::{Column, Session};
use super::state::{State, Zoom};
use super::units;
use super::words;
use crate::config::keys::Action;
use crate::config::theme::Role;
use crate::event::Dir;
use crate::model::{Call, CallIdx};
use crate::time::Mono;

/// The keys that mean something in the list.
pub(super) const HINTS: [(Action, &str); 12] = [
    (Action::Open, "open"),
    (Action::Filter, "filter"),
    (Action::Follow, "follow"),
    (Action::ZoomIn, "zoom in"),
    (Action::ZoomOut, "out"),
    (Action::Fit, "fit"),
    (Action::Sort, "sort"),
    (Action::NextError, "next error"),
    (Action::Pane, "pane"),
    (Action::Copy, "copy"),
    (Action::Pause, "pause"),
    (Action::Mark, "mark"),
];

/// Widths of the columns before the lane, in cells; 0: not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cells {
    n: usize,
    start: usize,
    id: usize,
    method: usize,
    target: usize,
    lane: u16,
}

const OUTCOME: usize = 9;
const DURATION: usize = 8;

impl Cells {
    /// Wide screens give every column its room; narrow ones join method and target.
    fn of(width: u16) -> Cells {
        let (n, start, id, method, target) = match width {
            0..100 => (0, 0, 6, 0, 24),
            100..160 => (7, 11, 7, 15, 16),
            _ => (8, 13, 10, 24, 30),
        };
        // The gutter, a blank before the lane, and the scroll bar.
        let used = 1 + n + start + id + method + target + OUTCOME + DURATION + 2;
        Cells {
            n,
            start,
            id,
            method,
            target,
            lane: width.saturating_sub(u16::try_from(used).unwrap_or(width)),
        }
    }

    fn names(&self, session: &Session, ink: &Ink<'_>) -> Vec<Span<'static>> {
        let set = ink.charset;
        let sorted = |column: Column, name: &str| {
            let (by, is_reverse) = session.sort;
            let mark = match (by == column && by != Column::Time, is_reverse) {
                (false, _) => "",
                (true, false) => "v",
                (true, true) => "^",
            };
            format!("{name}{mark}")
        };
        let target =
            if self.method == 0 { sorted(Column::Method, "method target") } else { "target".to_owned() };
        let text = [
            " ".to_owned(),
            set.pad_left(if self.n > 0 { "#  " } else { "" }, self.n),
            set.pad_left(if self.start > 0 { "start  " } else { "" }, self.start),
            set.pad("id", self.id),
            set.pad(&sorted(Column::Method, "method"), self.method),
            set.pad(&target, self.target),
            set.pad(&sorted(Column::Outcome, "state"), OUTCOME),
            set.pad_left(&sorted(Column::Duration, "took"), DURATION - 1),
            "  ".to_owned(),
        ];
        vec![Span::styled(text.concat(), ink.style(Role::Muted))]
    }

    fn line(&self, session: &Session, call: &Call, window: Window, ink: &Ink<'_>) -> Line<'static> {
        let set = ink.charset;
        let model = &session.model;
        let outcome = Outcome::of(call);
        let glyph = (outcome.glyph)(&ink.glyphs().outcome);
        let method = model.text(call.method);
        let target = call.target.map_or("", |name| model.text(name));
        // A request of the server is told apart by its colour and by the direction before its id.
        let (asker, sign) = if call.sender == Dir::S2c {
            (Role::Server, ink.glyphs().s2c.to_string())
        } else {
            (Role::Text, String::new())
        };
        let (method_cell, target_cell) = if self.method == 0 {
            let joined = if target.is_empty() {
                method.to_owned()
            } else {
                format!("{} {target}", words::short_method(method))
            };
            (String::new(), set.pad(&joined, self.target - 1))
        } else {
            (set.pad(method, self.method - 1) + " ", set.pad(target, self.target - 1))
        };
        let open = if call.ended.is_none() { "+" } else { " " };
        let took = units::span(outcome::duration_ns(call, session.now())) + open;
        let start = if session.reference == Mono(0) {
            units::moment(call.started)
        } else {
            units::moment_from(call.started, session.reference)
        };
        let n = model.row(call.row).map_or(String::new(), |row| format!("{}  ", row.n));
        let mut spans = vec![
            Span::styled(set.pad_left(&n, self.n), ink.style(Role::Faint)),
            Span::styled(set.pad_left(&format!("{start}  "), self.start), ink.style(Role::Muted)),
            Span::styled(set.pad(&format!("{sign}{} ", call.id), self.id), ink.style(Role::Muted)),
            Span::styled(method_cell, ink.style(if target.is_empty() { asker } else { Role::Muted })),
            Span::styled(target_cell + " ", ink.style(asker)),
            Span::styled(set.pad(&format!("{glyph} {}", outcome.word), OUTCOME), ink.style(outcome.role)),
            Span::styled(set.pad_left(&took, DURATION), ink.style(Role::Text)),
            Span::raw(" "),
        ];
        spans.extend(lane_spans(&lane::lane(call, window, session.now(), ink.glyphs()), ink));
        Line::from(spans)
    }
}

/// Cells of the same role next to each other become one span.
fn lane_spans(cells: &[lane::Cell], ink: &Ink<'_>) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let mut rest = cells;
    while let Some((_, role)) = rest.first() {
        let length = rest.iter().take_while(|(_, other)| other == role).count();
        let (run, after) = rest.split_at(length);
        spans.push(Span::styled(run.iter().map(|(c, _)| c).collect::<String>(), ink.style(*role)));
        rest = after;
    }
    spans
}

/// The part of time that the lanes show.
fn window(state: &State, session: &Session, columns: u16, visible: std::ops::Range<usize>) -> Window {
    match state.zoom.step_ns {
        Some(step_ns) => Window { origin_ns: state.zoom.origin_ns, step_ns, columns },
        None => fitting(session, columns, visible),
    }
}

/// The window that fits the calls on the screen.
fn fitting(session: &Session, columns: u16, visible: std::ops::Range<usize>) -> Window {
    let now = session.now();
    let calls = visible
        .filter_map(|line| session.calls.item(line))
        .filter_map(|item| session.model.call(CallIdx(item)));
    let ends = calls.map(|call| {
        let last = call.marks.last().map_or(call.started, |mark| mark.at);
        (call.started, call.ended.unwrap_or(now).max(last))
    });
    let (from, to) = ends
        .reduce(|(from, to), (start, end)| (from.min(start), to.max(end)))
        .unwrap_or((Mono(0), Mono(1_000_000)));
    Window::fitting(from, to, columns)
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
    let len = session.calls.len();
    let visible = state.calls.cursor.visible(len, usize::from(list.height));
    let window = window(state, session, cells.lane, visible.clone());
    let mut names = cells.names(session, ink);
    names.push(Span::styled(lane::axis(window, session.reference, ink), ink.style(Role::Faint)));
    frame.render_widget(Line::from(names), columns);
    if len == 0 {
        let text = match &session.filter {
            Some(_) if session.calls.score().1 < session.model.calls().len() => " still filtering …",
            Some(_) => " no call matches the filter; / changes it",
            None if session.feed() == super::msg::Feed::Live => " no call yet; they appear as they pass",
            None if session.recording.as_ref().is_none_or(|recording| !recording.is_read) => " reading …",
            None => " no call in this recording; 3 shows what passed",
        };
        frame.render_widget(ink.span(text, Role::Muted), list);
        if let Some(welcome) = session.facts.welcome.as_ref().filter(|_| session.model.calls().is_empty()) {
            frame.render_widget(ink.span(&format!(" {welcome}"), Role::Title), paint::line_at(list, 2));
        }
    }
    for (y, line) in visible.enumerate() {
        let Some(item) = session.calls.item(line) else { continue };
        let Some(call) = session.model.call(CallIdx(item)) else { continue };
        let drawn = cells.line(session, call, window, ink);
        let at = paint::line_at(list, y);
        paint::item(drawn, at, line == state.calls.cursor.at, state.opened.is_none(), ink, frame);
        if session.calls.is_marked(item) {
            paint::found(at, ink, frame);
        }
    }
    paint::scroll_bar(list, Scroll { top: state.calls.cursor.top, len }, ink, frame);
}

/// The lanes' columns on the screen as it is.
fn lane_columns(state: &State) -> u16 {
    Cells::of(state.areas().list.width).lane
}

/// Zooms in or out around the selected call, or fits again.
pub(super) fn zoom(state: &mut State, action: Action) {
    if action == Action::Fit {
        state.zoom = Zoom::default();
        return;
    }
    let Some(session) = &state.session else { return };
    let columns = lane_columns(state);
    let visible = state.calls.cursor.visible(session.calls.len(), state.list_height());
    let before = window(state, session, columns, visible);
    let step = act::step(before.step_ns, action);
    // The start of the selected call keeps its column; without one, the middle does.
    let selected =
        session.calls.item(state.calls.cursor.at).and_then(|item| session.model.call(CallIdx(item)));
    let middle = Mono(before.origin_ns + before.step_ns * u64::from(columns / 2));
    let anchor = selected.map_or(middle, |call| call.started);
    let column = anchor.0.saturating_sub(before.origin_ns) / before.step_ns;
    let origin = anchor.0.saturating_sub(column.min(u64::from(columns)) * step);
    state.zoom = Zoom { step_ns: Some(step), origin_ns: origin / step * step };
}

/// Moves the lanes in time.
pub(super) fn pan(state: &mut State, is_later: bool, times: usize) {
    let Some(session) = &state.session else { return };
    let columns = lane_columns(state);
    let visible = state.calls.cursor.visible(session.calls.len(), state.list_height());
    let window = window(state, session, columns, visible);
    let by = window.step_ns.saturating_mul(u64::from(columns / 4).max(1)).saturating_mul(times as u64);
    let origin = window.origin_ns;
    let origin_ns = if is_later { origin.saturating_add(by) } else { origin.saturating_sub(by) };
    state.zoom = Zoom { step_ns: Some(window.step_ns), origin_ns };
    state.is_following = false;
}

/// While following, fixed zoom keeps the present at the right edge.
pub(super) fn settle_zoom(state: &mut State) {
    let (Some(session), Some(step)) = (&state.session, state.zoom.step_ns) else { return };
    if state.is_following {
        let span = step * u64::from(lane_columns(state).saturating_sub(2));
        state.zoom.origin_ns = session.now().0.saturating_sub(span).div_ceil(step) * step;
    }
}
