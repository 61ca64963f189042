//! What a message changes. No IO, no clock: the same messages give the same state.

use crossterm::event::{KeyEvent, KeyEventKind};

use super::act;
use super::cursor::Cursor;
use super::layout::DetailAreas;
use super::mouse;
use super::msg::{Command, Msg};
use super::prompt::{Kind, Prompt};
use super::session::Session;
use super::state::{Notice, Overlay, Pending, State, View};
use crate::config::chord::Chord;
use crate::config::keys::{Action, Lookup};
use crate::model::RowIdx;

/// Takes a message in. Returns what has to be done outside.
pub fn update(state: &mut State, msg: Msg) -> Vec<Command> {
    let mut commands = match msg {
        Msg::Key(event) => key(state, event),
        Msg::KeyPause => key_pause(state),
        Msg::Mouse(event) => mouse::update(state, event),
        Msg::Paste(text) => {
            if let Some(prompt) = &mut state.prompt {
                prompt.paste(&text);
            }
            Vec::new()
        }
        Msg::Resize(width, height) => {
            state.size = (width, height);
            Vec::new()
        }
        Msg::Clock(now) => {
            if let Some(session) = state.session.as_mut().filter(|_| !state.is_paused) {
                session.set_clock(now);
                session.resort();
            }
            Vec::new()
        }
        Msg::Library(entries) => {
            library(state, entries);
            Vec::new()
        }
        Msg::Opened(facts) => {
            open_session(state, Session::new(facts));
            Vec::new()
        }
        Msg::Events(events) => {
            let has_more = state.session.as_mut().is_some_and(|session| session.fold(&events));
            go_on(has_more)
        }
        Msg::Continue => {
            let has_more = state.session.as_mut().is_some_and(|session| session.extend());
            go_on(has_more)
        }
        Msg::Recording(recording) => {
            standing(state, recording);
            Vec::new()
        }
        Msg::Fetched { row, events } => {
            fetched(state, row, events.as_deref().map_err(Clone::clone));
            Vec::new()
        }
        Msg::Hands(status) => {
            state.status = status;
            Vec::new()
        }
        Msg::Notice(text) => {
            state.notice = Some(Notice { text, is_trouble: false });
            Vec::new()
        }
        Msg::Trouble(text) => {
            state.notice = Some(Notice { text, is_trouble: true });
            Vec::new()
        }
    };
    commands.extend(settle(state));
    commands
}

fn go_on(has_more: bool) -> Vec<Command> {
    if has_more { vec![Command::Continue] } else { Vec::new() }
}

/// A new list of the library; the selected entry stays selected.
fn library(state: &mut State, entries: Vec<super::msg::Entry>) {
    let selected = state.entry().map(|entry| entry.key);
    let at = entries.iter().position(|entry| Some(entry.key) == selected);
    state.library = Some(entries);
    state.home.at = at.unwrap_or(state.home.at);
}

fn open_session(state: &mut State, session: Session) {
    state.session = Some(Box::new(session));
    state.calls = super::state::ListPlace::default();
    state.stream = super::state::ListPlace::default();
    state.findings = Cursor::default();
    state.hands = Cursor::default();
    state.status = None;
    state.zoom = super::state::Zoom::default();
    state.detail.reset();
    state.opened = None;
    state.is_full = false;
    state.is_paused = false;
    state.is_following = true;
    if state.view == View::Home {
        state.view = View::Calls;
    }
}

/// How the recording stands now.
fn standing(state: &mut State, recording: super::msg::Recording) {
    let Some(session) = &mut state.session else { return };
    let before = session.recording.as_ref().and_then(|before| before.trouble.as_ref());
    if let Some(trouble) = recording.trouble.as_ref().filter(|trouble| Some(*trouble) != before) {
        state.notice = Some(Notice { text: trouble.clone(), is_trouble: true });
    }
    session.stand(recording);
}

fn fetched(state: &mut State, row: RowIdx, events: Result<&[crate::event::Event], String>) {
    if let Some(session) = &state.session {
        state.detail.fetched(session, row, events);
    }
}

/// Brings places and panes up to date with what is there now.
fn settle(state: &mut State) -> Vec<Command> {
    let areas = state.areas();
    let height = usize::from(areas.list.height);
    state
        .home
        .settle(state.library.as_ref().map_or(0, Vec::len), super::home::lines_on_screen(areas.list.height));
    let held = super::hands::len(state);
    state.hands.settle(held, height);
    let Some(session) = &state.session else { return Vec::new() };
    state.findings.settle(session.findings().len(), height);
    let lens = [(&mut state.calls, session.calls.len()), (&mut state.stream, session.rows.len())];
    for (place, len) in lens {
        if state.is_following && len > 0 {
            place.cursor.at = len - 1;
        }
        place.cursor.settle(len, height);
    }
    super::calls::settle_zoom(state);
    if areas.detail.is_empty() {
        return Vec::new();
    }
    let subject = state.subject();
    state.detail.show(subject);
    let Some(session) = &state.session else { return Vec::new() };
    let mut commands = state.detail.sync(session, state.detail.areas(areas.detail).room(), state.charset);
    // The number of messages decides the height of their list, which the first pass could not know.
    let room = DetailAreas::room(&state.detail.areas(areas.detail));
    commands.extend(state.detail.sync(session, room, state.charset));
    commands
}

/// What the keys mean that were waiting for another one.
fn key_pause(state: &mut State) -> Vec<Command> {
    match state.pending.alone.take() {
        Some(action) => {
            state.pending = Pending::default();
            act::act(state, action, None)
        }
        None => Vec::new(),
    }
}

fn key(state: &mut State, event: KeyEvent) -> Vec<Command> {
    if event.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let chord = Chord::of(event);
    let is_interrupt =
        state.keys.lookup(&[chord]) == Lookup::Is(Action::Interrupt) || Chord::parse("ctrl-c") == Some(chord);
    if is_interrupt {
        return interrupt(state);
    }
    state.is_interrupted = false;
    state.notice = None;
    if state.prompt.is_some() {
        return prompt_key(state, event);
    }
    if let Some(overlay) = state.overlay {
        return act::overlay_key(state, overlay, chord);
    }
    chord_pressed(state, chord)
}

/// The way out that always works: once stops what is going on, twice quits.
fn interrupt(state: &mut State) -> Vec<Command> {
    if state.is_interrupted {
        return vec![Command::Quit];
    }
    state.is_interrupted = true;
    state.prompt = None;
    state.overlay = None;
    state.pending = Pending::default();
    let own = state.session.as_ref().is_some_and(|session| session.facts.is_own_tap);
    let text = if own { "ctrl-c again quits and ends the session" } else { "ctrl-c again quits" };
    state.notice = Some(Notice { text: text.to_owned(), is_trouble: false });
    Vec::new()
}

fn chord_pressed(state: &mut State, chord: Chord) -> Vec<Command> {
    let is_counting = state.pending.count.is_some();
    if let Some(digit) =
        chord.digit().filter(|digit| state.pending.keys.is_empty() && (is_counting || *digit != 0))
    {
        let before = state.pending.count.unwrap_or(0);
        let count = before.saturating_mul(10).saturating_add(digit as usize).min(1_000_000);
        state.pending.count = Some(count);
        state.pending.alone = match state.keys.lookup(&[chord]) {
            Lookup::Is(action) if !is_counting => Some(action),
            _ => None,
        };
        return Vec::new();
    }
    state.pending.keys.push(chord);
    match state.keys.lookup(&state.pending.keys) {
        Lookup::Begins => Vec::new(),
        Lookup::Nothing => {
            state.pending = Pending::default();
            Vec::new()
        }
        Lookup::Is(action) => {
            let pending = std::mem::take(&mut state.pending);
            let mut commands = Vec::new();
            // A digit before something that cannot be repeated stood alone.
            if let Some(alone) = pending.alone.filter(|_| !action.is_motion()) {
                commands.extend(act::act(state, alone, None));
            }
            commands.extend(act::act(state, action, pending.count.filter(|_| action.is_motion())));
            commands
        }
    }
}

fn prompt_key(state: &mut State, event: KeyEvent) -> Vec<Command> {
    let Some(prompt) = &mut state.prompt else { return Vec::new() };
    match Chord::of(event).to_string().as_str() {
        "esc" => state.prompt = None,
        "tab" => prompt.tab(),
        "enter" => return submit(state),
        _ => prompt.input(event.into()),
    }
    Vec::new()
}

fn submit(state: &mut State) -> Vec<Command> {
    let Some(prompt) = state.prompt.take() else { return Vec::new() };
    let text = prompt.text().trim().to_owned();
    match prompt.kind() {
        Kind::Filter(mode) => match act::set_filter(state, &text, mode) {
            Ok(commands) => commands,
            Err((column, why)) => {
                state.notice = Some(Notice { text: format!("column {column}: {why}"), is_trouble: true });
                state.prompt = Some(prompt);
                Vec::new()
            }
        },
        Kind::Command | Kind::Order if text.is_empty() => Vec::new(),
        Kind::Order => match crate::command::words::parse(&text) {
            Ok(_) => vec![Command::Order(text)],
            Err(error) => {
                state.notice = Some(Notice { text: error.to_string(), is_trouble: true });
                state.prompt = Some(prompt);
                Vec::new()
            }
        },
        Kind::Command => {
            if let Some(action) = Action::from_name(&text) {
                return act::act(state, action, None);
            }
            let text = format!("no action `{text}`; tab completes, ? lists them");
            state.notice = Some(Notice { text, is_trouble: true });
            Vec::new()
        }
    }
}

/// Opens a line to type in.
pub(super) fn open_prompt(state: &mut State, kind: Kind, text: &str) {
    state.prompt = Some(Prompt::new(kind, text));
    if state.overlay == Some(Overlay::CopyMenu) {
        state.overlay = None;
    }
}
