//! Subscriptions (SUB-01..24).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
