//! What an action does, wherever it came from: a key, the command line, the mouse, a test.

use crossterm::event::KeyCode;

use super::copy;
use super::detail::Part;
use super::filtering::Filter;
use super::lane;
use super::layout;
use super::msg::Command;
use super::pick::Mode;
use super::prompt::Kind;
use super::session::Column;
use super::state::{Notice, Overlay, State, View};
use super::update::open_prompt;
use crate::config::chord::Chord;
use crate::config::keys::{Action, Lookup};
use crate::model::{CallIdx, RowIdx, RowKind};
use crate::time::Mono;

/// Does an action; `count`: a number typed before it.
pub(super) fn act(state: &mut State, action: Action, count: Option<usize>) -> Vec<Command> {
    match action {
        Action::Quit => return quit(state),
        Action::Close => return close(state),
        Action::Back => back(state),
        Action::Help => state.overlay = Some(Overlay::Help(super::cursor::Cursor::default())),
        Action::Command => open_prompt(state, Kind::Command, ""),
        Action::Redraw => return vec![Command::Redraw],
        Action::Suspend => return vec![Command::Suspend],
        Action::Mouse => {
            state.is_mouse_on = !state.is_mouse_on;
            let text = if state.is_mouse_on { "mouse on; f2 gives text selection back" } else { "mouse off" };
            tell(state, text);
            return vec![Command::Mouse(state.is_mouse_on)];
        }
        Action::Hints => state.has_hints = !state.has_hints,
        Action::Home => return show(state, View::Home),
        Action::Calls => return show(state, View::Calls),
        Action::Stream => return show(state, View::Stream),
        Action::Findings => return show(state, View::Findings),
        Action::Hands => return show(state, View::Hands),
        Action::Interrupt => tell(state, "ctrl-c quits"),
        _ if state.view == View::Home => return super::home::act(state, action, count),
        _ => return act_in_session(state, action, count),
    }
    Vec::new()
}

fn act_in_session(state: &mut State, action: Action, count: Option<usize>) -> Vec<Command> {
    if let Some(commands) = super::hands::act(state, action) {
        return commands;
    }
    match action {
        Action::Pause => pause(state),
        Action::Follow => {
            state.is_following = !state.is_following;
            tell(state, if state.is_following { "following" } else { "not following" });
        }
        Action::Copy => state.overlay = Some(Overlay::CopyMenu),
        Action::Open if state.opened.is_none() => open(state),
        Action::Pane => turn_pane(state, true),
        Action::PaneBack => turn_pane(state, false),
        Action::Preview => state.wants_preview = !state.wants_preview,
        Action::Maximise => {
            state.is_full = !state.is_full;
            if state.is_full && state.opened.is_none() {
                open(state);
            }
        }
        Action::Taller => state.split = state.split.saturating_sub(5).max(20),
        Action::Shorter => state.split = (state.split + 5).min(80),
        Action::Filter => {
            let text = state.session.as_ref().and_then(|session| session.filter.as_ref());
            let text = text.map(|filter| filter.text.clone()).unwrap_or_default();
            let mode = state.session.as_ref().map_or(Mode::Only, |session| session.mode);
            open_prompt(state, Kind::Filter(mode), &text);
        }
        Action::Mark => state.overlay = Some(Overlay::MarkLetter),
        Action::Jump => state.overlay = Some(Overlay::JumpLetter),
        Action::Reference => reference(state),
        Action::ZoomIn | Action::ZoomOut | Action::Fit => super::calls::zoom(state, action),
        Action::Sort | Action::Reverse => sort(state, action == Action::Reverse),
        Action::NextMatch => seek(state, true, count, Target::Match),
        Action::PreviousMatch => seek(state, false, count, Target::Match),
        Action::NextError => seek(state, true, count, Target::Error),
        Action::PreviousError => seek(state, false, count, Target::Error),
        Action::NextGap => seek(state, true, count, Target::Gap),
        Action::PreviousGap => seek(state, false, count, Target::Gap),
        _ => return move_in_pane(state, action, count),
    }
    Vec::new()
}

/// What only the pane with the keys can answer.
fn move_in_pane(state: &mut State, action: Action, count: Option<usize>) -> Vec<Command> {
    let areas = state.areas();
    let height = usize::from(areas.list.height);
    let times = count.unwrap_or(1);
    let Some(session) = &state.session else { return Vec::new() };
    if let Some(part) =
        state.opened.or((action == Action::Tab || action == Action::TabBack).then_some(Part::Messages))
    {
        let room = state.detail.areas(areas.detail).room();
        state.detail.act(action, times, part, room, session);
        if action == Action::Open && part == Part::Messages {
            state.opened = Some(Part::Body);
        }
        return Vec::new();
    }
    if state.view == View::Hands {
        let len = super::hands::len(state);
        state.hands.act(action, times, len, height);
        return Vec::new();
    }
    if state.view == View::Findings {
        let len = session.findings().len();
        state.findings.act(action, times, len, height);
        return Vec::new();
    }
    let len = state.list().map_or(0, |(pick, _)| pick.len());
    match action {
        Action::Left | Action::Right => super::calls::pan(state, action == Action::Right, times),
        _ => {
            let Some(place) = state.place_mut() else { return Vec::new() };
            if place.cursor.act(action, times, len, height) {
                state.is_following = action == Action::End;
            }
        }
    }
    Vec::new()
}

/// Tells something in the status line.
pub(super) fn tell(state: &mut State, text: &str) {
    state.notice = Some(Notice { text: text.to_owned(), is_trouble: false });
}

fn quit(state: &mut State) -> Vec<Command> {
    let is_own = state
        .session
        .as_ref()
        .is_some_and(|session| session.facts.is_own_tap && session.feed() == super::msg::Feed::Live);
    if is_own && state.overlay != Some(Overlay::ConfirmQuit) {
        state.overlay = Some(Overlay::ConfirmQuit);
        return Vec::new();
    }
    vec![Command::Quit]
}

/// Goes one step back; from the first view it quits.
fn close(state: &mut State) -> Vec<Command> {
    if state.opened.is_some() || state.is_full {
        back(state);
        return Vec::new();
    }
    let has_home = state.library.is_some() && !state.session.as_ref().is_some_and(|s| s.facts.is_own_tap);
    if state.view != View::Home && has_home {
        return show(state, View::Home);
    }
    quit(state)
}

/// Goes one step back; never quits.
fn back(state: &mut State) {
    match state.opened {
        Some(Part::Body) if state.list().is_some() => state.opened = Some(Part::Messages),
        Some(_) => {
            state.opened = None;
            state.is_full = false;
        }
        None => state.is_full = false,
    }
}

fn show(state: &mut State, view: View) -> Vec<Command> {
    if view != View::Home && state.session.is_none() {
        tell(state, "open a tap or a recording first: enter");
        return Vec::new();
    }
    // The same call or row stays selected when the list changes.
    let before = state.subject();
    state.view = view;
    state.opened = None;
    state.is_full = false;
    if let (Some(subject), false) = (before, state.is_following) {
        super::goto::select(state, subject);
    }
    Vec::new()
}

fn open(state: &mut State) {
    if state.view == View::Findings {
        super::goto::open_finding(state);
    } else if state.subject().is_some() {
        state.is_following = false;
        state.opened = Some(if state.view == View::Stream { Part::Body } else { Part::Messages });
    }
}

/// The keys go to the next pane: list, messages, body, and round again.
fn turn_pane(state: &mut State, is_forward: bool) {
    if state.subject().is_none() {
        return;
    }
    let has_preview = layout::has_room_for_preview(state.size);
    let has_list = has_preview && !state.is_full;
    state.opened = match (state.opened, is_forward) {
        (Some(Part::Body), true) | (Some(Part::Messages), false) if has_list => None,
        (None | Some(Part::Body), true) | (Some(Part::Body), false) => Some(Part::Messages),
        (None, false) | (Some(Part::Messages), _) => Some(Part::Body),
    };
    if state.opened.is_some() {
        state.is_following = false;
    }
}

fn pause(state: &mut State) {
    state.is_paused = !state.is_paused;
    tell(state, if state.is_paused { "held still; recording goes on" } else { "goes on" });
}

fn reference(state: &mut State) {
    let item = state.item();
    let view = state.view;
    let Some(session) = &mut state.session else { return };
    let at = item.and_then(|item| match view {
        View::Stream => session.model.row(RowIdx(item)).map(|row| row.at),
        _ => session.model.call(CallIdx(item)).map(|call| call.started),
    });
    let Some(at) = at else { return };
    let is_back = session.reference == at;
    session.reference = if is_back { Mono(0) } else { at };
    tell(state, if is_back { "time counts from the start" } else { "time counts from this line" });
}

fn sort(state: &mut State, is_reverse: bool) {
    if state.view != View::Calls {
        tell(state, "the stream stays in causal order; the calls can be sorted");
        return;
    }
    let item = state.item();
    let Some(session) = &mut state.session else { return };
    let (column, reversed) = session.sort;
    let sort = if is_reverse { (column, !reversed) } else { (column.next(), false) };
    session.set_sort(sort.0, sort.1);
    let order = match (sort.0, sort.1) {
        (Column::Time, false) => "by time, oldest first".to_owned(),
        (column, false) => format!("by {}", column.word()),
        (column, true) => format!("by {}, reversed", column.word()),
    };
    state.is_following &= sort == (Column::Time, false);
    if let Some(item) = item {
        super::goto::select_item(state, item);
    }
    tell(state, &format!("sorted {order}"));
}

/// Puts a filter in force; an empty text takes it away.
pub(super) fn set_filter(state: &mut State, text: &str, mode: Mode) -> Result<Vec<Command>, (usize, String)> {
    let filter = if text.is_empty() { None } else { Some(Filter::parse(text)?) };
    let item = state.item();
    let Some(session) = &mut state.session else { return Ok(Vec::new()) };
    let has_more = session.set_filter(filter, mode);
    if let Some(item) = item {
        super::goto::select_item(state, item);
    }
    Ok(if has_more { vec![Command::Continue] } else { Vec::new() })
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Match,
    Error,
    Gap,
}

fn seek(state: &mut State, is_forward: bool, count: Option<usize>, target: Target) {
    let Some(session) = &state.session else { return };
    let view = state.view;
    let Some((pick, place)) = state.list() else { return };
    let model = &session.model;
    let is_wanted = |item: u32| match (target, view) {
        (Target::Match, _) => session.filter.is_none() || session.mode == Mode::Only || pick.is_marked(item),
        (Target::Error, View::Calls) => model.call(CallIdx(item)).is_some_and(super::outcome::is_trouble),
        (Target::Error, _) => {
            model.row(RowIdx(item)).is_some_and(|row| matches!(row.kind, RowKind::Error | RowKind::Invalid))
        }
        (Target::Gap, View::Calls) => false,
        (Target::Gap, _) => model.row(RowIdx(item)).is_some_and(|row| row.kind == RowKind::Gap),
    };
    let mut line = place.cursor.at;
    let mut is_found = false;
    for _ in 0..count.unwrap_or(1) {
        let Some(next) = pick.seek(line, is_forward, is_wanted) else { break };
        (line, is_found) = (next, true);
    }
    let len = pick.len();
    let height = state.list_height();
    if is_found {
        state.is_following = false;
        if let Some(place) = state.place_mut() {
            place.cursor.go(line, len, height);
        }
    } else {
        let what = match target {
            Target::Match => "match",
            Target::Error => "error",
            Target::Gap => "gap",
        };
        tell(state, &format!("no {} {what}", if is_forward { "further" } else { "earlier" }));
    }
}

/// A key while something lies over the screen.
pub(super) fn overlay_key(state: &mut State, overlay: Overlay, chord: Chord) -> Vec<Command> {
    let action = match state.keys.lookup(&[chord]) {
        Lookup::Is(action) => Some(action),
        _ => None,
    };
    state.overlay = None;
    match overlay {
        Overlay::Help(mut cursor) => {
            let is_closing =
                matches!(action, Some(Action::Back | Action::Close | Action::Help | Action::Open));
            if !is_closing {
                let height = super::help::height(state);
                let len = super::help::len(state);
                // The page scrolls as a whole, so the selection runs ahead to its end.
                match action {
                    Some(Action::Down) => cursor.top += 1,
                    Some(Action::Up) => cursor.top = cursor.top.saturating_sub(1),
                    Some(Action::PageDown | Action::HalfDown) => cursor.top += height,
                    Some(Action::PageUp | Action::HalfUp) => cursor.top = cursor.top.saturating_sub(height),
                    Some(Action::Top) => cursor.top = 0,
                    Some(Action::End) => cursor.top = len,
                    _ => {}
                }
                cursor.top = cursor.top.min(len.saturating_sub(height));
                state.overlay = Some(Overlay::Help(cursor));
            }
        }
        Overlay::ConfirmQuit => {
            if matches!(chord.code, KeyCode::Char('y' | 'Y')) || action == Some(Action::Quit) {
                return vec![Command::Quit];
            }
            tell(state, "the session goes on");
        }
        Overlay::CopyMenu => return copy::chosen(state, chord),
        Overlay::MarkLetter => super::goto::mark(state, chord),
        Overlay::JumpLetter => super::goto::jump(state, chord),
    }
    Vec::new()
}

/// The smaller or the larger step of a zoom.
pub(super) fn step(current: u64, action: Action) -> u64 {
    lane::next_step(current, action == Action::ZoomOut)
}
