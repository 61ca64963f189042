//! Pagination (PAG-01..05).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
