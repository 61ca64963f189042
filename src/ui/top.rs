//! The top of the screen: what is open, how it stands, and what is counted.

use ratatui::text::{Line, Span};

use super::ink::Ink;
use super::msg::Feed;
use super::paint;
use super::pick::Mode;
use super::prompt::{Kind, Verdict};
use super::session::Session;
use super::state::{State, View};
use super::{units, words};
use crate::config::theme::Role;
use crate::spec::era::Era;

/// Below this width there is no room for counts of nothing.
const NARROW: u16 = 100;

/// The first line: the session, its era, its recording.
pub(super) fn header(state: &State, ink: &Ink<'_>) -> Line<'static> {
    let width = state.size.0;
    let mut left = vec![ink.span(" midwire ", Role::Title)];
    let Some(session) = state.session.as_ref().filter(|_| state.view != View::Home) else {
        let running = state.library.iter().flatten().filter(|entry| entry.feed == Feed::Live).count();
        let saved = state.library.as_ref().map_or(0, Vec::len) - running;
        left.push(ink.span(&format!(" {running} running, {saved} recorded"), Role::Text));
        return paint::two_sided(left, Vec::new(), width, ink);
    };
    let (word, role) = if state.is_paused { ("PAUSED", Role::Warn) } else { feed(session.feed()) };
    left.push(ink.span(&format!(" {word} "), role));
    if let Some(label) = &session.facts.label {
        left.push(ink.span(&format!("{label}: "), Role::Midwire));
    }
    let transport = words::transport(session.facts.transport);
    left.push(ink.span(&format!("{transport} {}", session.facts.what), Role::Text));
    let mut right = super::hands::counts(state, ink);
    if let Some(era) = era(session) {
        right.push(ink.span(&format!("  era {era}"), Role::Muted));
    }
    right.extend(recording(session, ink));
    right.push(ink.span(&format!("  {} ", units::moment(session.now())), Role::Text));
    paint::two_sided(left, right, width, ink)
}

/// How a session stands, in a word and a role.
fn feed(feed: Feed) -> (&'static str, Role) {
    match feed {
        Feed::Live => (feed.word(), Role::Open),
        Feed::Whole => (feed.word(), Role::Ok),
        Feed::Cut => (feed.word(), Role::Warn),
    }
}

/// The era of the newest call that has one.
fn era(session: &Session) -> Option<&'static str> {
    let mut calls = session.model.calls().iter().rev().take(64);
    calls.find_map(|call| call.era).map(Era::as_str)
}

/// Size and health of the recording.
fn recording(session: &Session, ink: &Ink<'_>) -> Vec<Span<'static>> {
    let counts = session.model.overview().counts;
    let Some(recording) = &session.recording else { return Vec::new() };
    let size = units::size(recording.bytes);
    let lost = counts.gap_events;
    let mut spans = vec![ink.span(&format!("  REC {size} "), Role::Text)];
    if !recording.is_read {
        spans.push(ink.span("reading …", Role::Progress));
    } else if lost > 0 || counts.gaps > 0 {
        spans.push(ink.span(&format!("LOST {lost}"), Role::Error));
    } else if recording.trouble.is_some() {
        spans.push(ink.span("DAMAGED", Role::Error));
    } else {
        spans.push(ink.span("ok", Role::Ok));
    }
    spans
}

/// The second line: the views, and the counts that matter.
pub(super) fn tabs(state: &State, ink: &Ink<'_>) -> Line<'static> {
    let mut left = vec![Span::raw(" ")];
    for view in View::ALL {
        let key = state.keys.keys_of(view.action()).into_iter().next().unwrap_or_default();
        let count = match (view, &state.session) {
            (View::Findings, Some(session)) if !session.findings().is_empty() => {
                format!(" {}", units::count(session.findings().len() as u64))
            }
            _ => String::new(),
        };
        let (text, role) = if view == state.view {
            (format!("[{key} {}{count}]", view.name()), Role::Key)
        } else {
            (format!(" {key} {}{count} ", view.name()), Role::Muted)
        };
        left.push(ink.span(&text, role));
    }
    let right = match state.session.as_ref().filter(|_| state.view != View::Home) {
        Some(session) => counts(session, state.size.0 < NARROW, ink),
        None => Vec::new(),
    };
    paint::two_sided(left, right, state.size.0, ink)
}

/// The counts; a narrow screen leaves out what did not happen.
fn counts(session: &Session, is_narrow: bool, ink: &Ink<'_>) -> Vec<Span<'static>> {
    let counts = session.model.overview().counts;
    let all = [
        (counts.calls, "calls", Role::Text),
        (counts.open, "open", Role::Open),
        (counts.errors, "err", Role::Error),
        (counts.late, "late", Role::Late),
        (counts.lost, "lost", Role::Error),
    ];
    let mut spans = Vec::new();
    for (n, what, role) in all.into_iter().filter(|(n, ..)| *n > 0 || !is_narrow) {
        let role = if n == 0 { Role::Faint } else { role };
        let gap = if spans.is_empty() { "" } else { "  " };
        spans.push(ink.span(&format!("{gap}{what} {}", units::count(n)), role));
    }
    spans.push(Span::raw(" "));
    spans
}

/// The filter line: while it is typed, and while it is in force.
pub(super) fn filter(state: &State, ink: &Ink<'_>) -> Line<'static> {
    let width = state.size.0;
    if let Some(prompt) = state.prompt.as_ref().filter(|prompt| prompt.is_filter()) {
        let mode = if prompt.kind() == Kind::Filter(Mode::Mark) { "mark" } else { "show only" };
        let (said, role) = match prompt.verdict() {
            Verdict::Empty => ("empty: shows everything".to_owned(), Role::Muted),
            Verdict::Valid => ("VALID".to_owned(), Role::Ok),
            // Why is said on the line of keys, which has the room.
            Verdict::Invalid { column, .. } => (format!("INVALID at {column}"), Role::Error),
        };
        let right =
            vec![ink.span(&format!("{said}  "), role), ink.span(&format!("tab {mode} "), Role::Muted)];
        let text_role = if role == Role::Error { Role::Error } else { Role::Title };
        let mut left = vec![ink.span(" / ", Role::Key)];
        left.extend(super::foot::typed(prompt, text_role, ink));
        return paint::two_sided(left, right, width, ink);
    }
    let Some(session) = &state.session else { return Line::default() };
    let Some(filter) = &session.filter else { return Line::default() };
    let (pick, total) = match state.view {
        View::Stream => (&session.rows, session.model.rows().len()),
        _ => (&session.calls, session.model.calls().len()),
    };
    let (hits, checked) = pick.score();
    let mode = if session.mode == Mode::Mark { "marked, n and N go through them" } else { "shown" };
    let progress = if checked < total {
        format!("filtering {}%  ", checked * 100 / total.max(1))
    } else {
        String::new()
    };
    let right = vec![
        ink.span(&progress, Role::Progress),
        ink.span(&format!("{hits} of {total} {mode} "), Role::Text),
    ];
    let left = vec![ink.span(" / ", Role::Key), ink.span(&filter.text, Role::Found)];
    paint::two_sided(left, right, width, ink)
}
