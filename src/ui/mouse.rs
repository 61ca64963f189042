//! The mouse, when it is on: a click selects, a second click on the same line opens, the wheel
//! scrolls what is under it.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

use super::act;
use super::detail::Part;
use super::msg::Command;
use super::state::{State, View};
use crate::config::keys::Action;

/// Takes a report of the mouse.
pub(super) fn update(state: &mut State, event: MouseEvent) -> Vec<Command> {
    if state.overlay.is_some() || state.prompt.is_some() {
        return Vec::new();
    }
    let at = Position::new(event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollDown => wheel(state, at, true),
        MouseEventKind::ScrollUp => wheel(state, at, false),
        MouseEventKind::Down(MouseButton::Left) => return click(state, at),
        _ => {}
    }
    Vec::new()
}

fn wheel(state: &mut State, at: Position, is_down: bool) {
    let areas = state.areas();
    let action = if is_down { Action::Down } else { Action::Up };
    if areas.list.contains(at) {
        let opened = state.opened.take();
        act::act(state, action, Some(3));
        state.opened = opened;
        return;
    }
    let inside = state.detail.areas(areas.detail);
    let part = if inside.messages.contains(at) { Part::Messages } else { Part::Body };
    if let Some(session) = state.session.as_ref().filter(|_| areas.detail.contains(at)) {
        state.detail.scroll(part, is_down, inside.room(), session);
    }
}

fn click(state: &mut State, at: Position) -> Vec<Command> {
    let areas = state.areas();
    if areas.tabs.contains(at) {
        return click_tab(state, at);
    }
    if areas.list.contains(at) {
        return click_list(state, areas.list, usize::from(at.y - areas.list.y));
    }
    if areas.detail.contains(at) && state.subject().is_some() {
        let inside = state.detail.areas(areas.detail);
        state.is_following = false;
        state.opened = Some(if inside.messages.contains(at) { Part::Messages } else { Part::Body });
    }
    Vec::new()
}

fn click_list(state: &mut State, list: Rect, y: usize) -> Vec<Command> {
    let height = usize::from(list.height);
    let (cursor, len) = match state.view {
        View::Home => (&mut state.home, state.library.as_ref().map_or(0, Vec::len)),
        View::Hands => {
            let len = super::hands::len(state);
            (&mut state.hands, len)
        }
        View::Findings => (&mut state.findings, state.session.as_ref().map_or(0, |s| s.findings().len())),
        View::Calls => (&mut state.calls.cursor, state.session.as_ref().map_or(0, |s| s.calls.len())),
        View::Stream => (&mut state.stream.cursor, state.session.as_ref().map_or(0, |s| s.rows.len())),
    };
    let line = cursor.top + y;
    if line >= len {
        return Vec::new();
    }
    let is_again = cursor.at == line && !state.is_following;
    cursor.go(line, len, height);
    state.is_following = false;
    state.opened = None;
    if is_again { act::act(state, Action::Open, None) } else { Vec::new() }
}

fn click_tab(state: &mut State, at: Position) -> Vec<Command> {
    let mut from = 1;
    for view in View::ALL {
        let key = state.keys.keys_of(view.action()).into_iter().next().unwrap_or_default();
        // Brackets or blanks, the key, a blank, the name.
        let width = u16::try_from(key.len() + view.name().len() + 3).unwrap_or(u16::MAX);
        if (from..from + width).contains(&at.x) {
            return act::act(state, view.action(), None);
        }
        from += width;
    }
    Vec::new()
}
