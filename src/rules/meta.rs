//! `_meta`: what every request must say, who the peers are, keys and their values, capabilities that
//! are missing (MET-01..17).

mod capabilities;
mod identity;
mod keys;
mod required;

use crate::rules::book::Book;

pub(super) fn rules(book: &mut Book) {
    required::rules(book);
    identity::rules(book);
    keys::rules(book);
    capabilities::rules(book);
}
