//! Resources (RES-01..06).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
