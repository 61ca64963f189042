//! Log messages (LOG-01..09).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
