//! Pipes, lines and the life of a process (STD-01..13).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
