//! Cancels and what comes after them (CAN-01..21).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
