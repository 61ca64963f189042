//! Prompts (PMT-01..03).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
