//! Icons (ICO-01).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
