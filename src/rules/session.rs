//! Sessions, GET streams and resume of the legacy eras (LEG-01..21).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
