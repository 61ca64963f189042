//! Limits of time and repetitions (TMO-01..06, RTY-01..02).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
