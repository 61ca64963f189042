//! Going to a call or a row by what it is: from another view, from a finding, by a letter.

use crossterm::event::KeyCode;

use super::act::tell;
use super::detail::{Part, Subject};
use super::state::{State, View};
use crate::config::chord::Chord;
use crate::model::{CallIdx, RowIdx};

/// Selects the line of an item in the list of the view.
pub(super) fn select_item(state: &mut State, item: u32) {
    let height = state.list_height();
    let Some((pick, _)) = state.list() else { return };
    let (line, len) = (pick.line(item), pick.len());
    if let Some(place) = state.place_mut() {
        place.cursor.go(line, len, height);
    }
}

/// Selects a call or a row in the list of the view, or what belongs to it.
pub(super) fn select(state: &mut State, subject: Subject) {
    let Some(session) = &state.session else { return };
    let item = match (state.view, subject) {
        (View::Calls, Subject::Call(call)) => Some(call.0),
        (View::Calls, Subject::Row(row)) => {
            session.model.row(row).and_then(|row| row.call).map(|call| call.0)
        }
        (View::Stream, Subject::Row(row)) => Some(row.0),
        (View::Stream, Subject::Call(call)) => session.model.call(call).map(|call| call.row.0),
        (View::Home | View::Findings | View::Hands, _) => None,
    };
    if let Some(item) = item {
        select_item(state, item);
    }
}

/// Opens the call of the selected finding, or else the row that is its evidence.
pub(super) fn open_finding(state: &mut State) {
    let Some(finding) = state.finding() else { return };
    let call = finding.calls.first().copied();
    let evidence = finding.evidence.first().copied();
    state.is_following = false;
    if let Some(call) = call {
        state.view = View::Calls;
        select(state, Subject::Call(call));
        state.opened = Some(Part::Messages);
        return;
    }
    if let Some(row) = evidence.and_then(|n| row_of_event(state, n)) {
        state.view = View::Stream;
        select(state, Subject::Row(row));
        state.opened = Some(Part::Body);
    }
}

/// The row that the event with this causal number completed, or the one after it.
fn row_of_event(state: &State, n: u64) -> Option<RowIdx> {
    let rows = state.session.as_ref()?.model.rows();
    let at = rows.partition_point(|row| row.n < n);
    rows.get(at)?;
    u32::try_from(at).ok().map(RowIdx)
}

/// Remembers the selected line under a letter.
pub(super) fn mark(state: &mut State, chord: Chord) {
    let (KeyCode::Char(letter), Some(item)) = (chord.code, state.item()) else { return };
    if let Some(place) = state.place_mut() {
        place.letters.retain(|(other, _)| *other != letter);
        place.letters.push((letter, item));
        tell(state, &format!("'{letter} jumps to this line"));
    }
}

/// Jumps to a remembered line; `''` goes back to where the last jump began.
pub(super) fn jump(state: &mut State, chord: Chord) {
    let KeyCode::Char(letter) = chord.code else { return };
    let here = state.item();
    let Some(place) = state.place_mut() else { return };
    let remembered = place.letters.iter().find(|(other, _)| *other == letter).map(|(_, item)| *item);
    let target = if letter == '\'' { place.before_jump } else { remembered };
    match target {
        Some(item) => {
            place.before_jump = here;
            state.is_following = false;
            select_item(state, item);
        }
        None => tell(state, &format!("nothing is remembered under {letter}; m {letter} remembers a line")),
    }
}

/// The call of a line, in whichever list it stands.
pub(super) fn call_of_selection(state: &State) -> Option<CallIdx> {
    match state.subject()? {
        Subject::Call(call) => Some(call),
        Subject::Row(row) => state.session.as_ref()?.model.row(row)?.call,
    }
}
