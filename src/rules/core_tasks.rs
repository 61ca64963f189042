//! Tasks as the 2025-11-25 core has them (TSL-01..07).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
