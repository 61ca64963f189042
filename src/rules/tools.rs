//! Tools (TOOL-01..19).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
