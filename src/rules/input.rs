//! What a server asks of a person or a model: elicitation, sampling, roots (ELI-01..08, SAM-01..05, ROO-01).

use crate::rules::book::Book;

pub(super) fn rules(_book: &mut Book) {}
