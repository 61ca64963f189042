//! Event streams (SSE-01..13).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
