//! Streamable HTTP: mirrored headers, statuses, bodies (HTTP-01..31).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
