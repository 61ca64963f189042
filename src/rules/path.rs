//! What lies between the peers, and how they keep up (PRX-01..07, FLW-01..04).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
