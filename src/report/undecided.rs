//! What a recording could not decide, in words.

use crate::rules::catalogue::{self, Need};
use crate::rules::undecided::Undecided;

/// The rules that lack each need, in the order in which needs are met.
pub(super) fn by_need(undecided: &[Undecided]) -> Vec<(Need, Vec<&'static str>)> {
    let mut groups: Vec<(Need, Vec<&'static str>)> = Vec::new();
    for one in undecided {
        for need in &one.lacks {
            match groups.iter_mut().find(|(known, _)| known == need) {
                Some((_, rules)) => rules.push(one.rule),
                None => groups.push((*need, vec![one.rule])),
            }
        }
    }
    groups
}

/// Why a rule could not be decided, in one sentence.
pub(super) fn reason(one: &Undecided) -> String {
    let note = catalogue::find(one.rule).map_or("", |entry| entry.note);
    if one.lacks.contains(&Need::Never) && !note.is_empty() {
        return note.to_owned();
    }
    let lacks: Vec<&str> = one.lacks.iter().map(|need| need.words()).collect();
    format!("It takes {}.", lacks.join(", and "))
}
