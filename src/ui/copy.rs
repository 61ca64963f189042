//! Copying: what can be copied of what is selected, and under which letter.

use crossterm::event::KeyCode;

use super::act::tell;
use super::goto;
use super::msg::Command;
use super::outcome;
use super::state::State;
use crate::config::chord::Chord;

/// The choices: letter and what it copies.
pub(super) const CHOICES: [(char, &str); 5] =
    [('v', "value"), ('k', "key"), ('p', "path"), ('r', "whole frame"), ('c', "line about the call")];

/// A letter of the menu was pressed.
pub(super) fn chosen(state: &mut State, chord: Chord) -> Vec<Command> {
    let KeyCode::Char(letter) = chord.code else { return Vec::new() };
    let Some((_, what)) = CHOICES.iter().find(|(choice, _)| *choice == letter) else {
        tell(state, "nothing copied");
        return Vec::new();
    };
    let copies = state.detail.copies();
    let text = match letter {
        'v' => copies.value,
        'k' => copies.key,
        'p' => copies.path,
        'r' => copies.frame,
        _ => call_line(state),
    };
    if let Some(text) = text {
        return vec![Command::Copy { text, what: (*what).to_owned() }];
    }
    let hint = match letter {
        'v' | 'k' | 'p' => "open a message first and choose a line of its tree",
        'r' => "open a message first",
        _ => "no call is selected",
    };
    tell(state, &format!("no {what} here: {hint}"));
    Vec::new()
}

/// The selected call in one line, as one would paste it into a message to somebody.
fn call_line(state: &State) -> Option<String> {
    let session = state.session.as_ref()?;
    let call = session.model.call(goto::call_of_selection(state)?)?;
    let target = call.target.map(|name| format!(" {}", session.model.text(name))).unwrap_or_default();
    let method = session.model.text(call.method);
    let answer = outcome::answer(&session.model, call, session.now());
    Some(format!("{} {method}{target}: {answer}", call.id))
}
