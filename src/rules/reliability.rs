//! Effects, clocks, ends (REL-01..23).

mod cut;
mod effects;
mod fallback;
mod gateway;
mod reconnect;
mod released;
mod repeats;
mod silence;
mod stderr;
mod unanswered;

use crate::rules::book::Book;

pub(super) fn rules(book: &mut Book) {
    repeats::rules(book);
    effects::rules(book);
    fallback::rules(book);
    silence::rules(book);
    unanswered::rules(book);
    cut::rules(book);
    gateway::rules(book);
    reconnect::rules(book);
    released::rules(book);
    stderr::rules(book);
}
