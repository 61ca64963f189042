//! Versions, discovery, handshake (VER-01..21).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
