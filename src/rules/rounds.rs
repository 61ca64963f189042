//! Multi round-trip requests (MRT-01..16): how input is asked for, and how the client comes back.

mod asking;
mod coming_back;

use crate::rules::book::Book;

pub(super) use coming_back::answered;

pub(super) fn rules(book: &mut Book) {
    asking::rules(book);
    coming_back::rules(book);
}
