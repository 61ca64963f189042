//! Multi round-trip requests (MRT-01..16).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
