//! Subscriptions (SUB-01..24): how they open, what they bring, how they end, and whether what
//! changed was told.

mod changes;
mod delivery;
mod ending;
mod legacy;
mod opening;

use crate::model::{Kinds, Subscription};
use crate::rules::book::Book;
use crate::rules::case::Case;

pub(super) fn rules(book: &mut Book) {
    opening::rules(book);
    delivery::rules(book);
    ending::rules(book);
    changes::rules(book);
    legacy::rules(book);
}

/// The subscription of the case's call.
fn subscription<'a>(case: &Case<'a>) -> Option<&'a Subscription> {
    case.model.subscription(case.seen.call?)
}

/// Kinds in words.
fn words(kinds: Kinds) -> String {
    let each = [
        (kinds.tools, "the tools"),
        (kinds.prompts, "the prompts"),
        (kinds.resources, "the list of resources"),
        (kinds.updates, "the watched resources"),
        (kinds.tasks, "the tasks"),
    ];
    let words: Vec<&str> = each.into_iter().filter(|(is_there, _)| *is_there).map(|(_, word)| word).collect();
    words.join(", ")
}
