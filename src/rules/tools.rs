//! Tools: definitions, lists of them, results (TOOL-01..19).

mod definition;
mod feature;
mod header;
mod order;
mod result;

pub(super) use result::block_fault;

use super::book::Book;

pub(super) fn rules(book: &mut Book) {
    definition::rules(book);
    header::rules(book);
    order::rules(book);
    result::rules(book);
    feature::rules(book);
}
