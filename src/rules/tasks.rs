//! The Tasks extension (TSK-01..26).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
