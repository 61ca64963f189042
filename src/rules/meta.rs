//! `_meta`, capabilities, extensions (MET-01..17).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
