//! Effects, clocks, ends (REL-01..23).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
