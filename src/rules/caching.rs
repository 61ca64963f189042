//! Caching hints and their use (CCH-01..10).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
