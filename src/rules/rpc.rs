//! JSON-RPC: envelopes, ids, errors (RPC-01..29).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
