//! Streamable HTTP: mirrored headers, statuses, bodies (HTTP-01..31).

mod answers;
mod bodies;
mod mirror;
mod params;
mod posts;
mod refusals;

use crate::event::Dir;
use crate::model::{Exchange, Sight};
use crate::rules::book::Book;
use crate::rules::case::Case;
use crate::spec::era::Era;

/// Paths that messages were posted to, as far as they are remembered. ours: a server has one.
const ENDPOINTS: usize = 16;

pub(super) fn rules(book: &mut Book) {
    posts::rules(book);
    mirror::rules(book);
    refusals::rules(book);
    answers::rules(book);
    bodies::rules(book);
    params::rules(book);
}

/// The exchange that a message of the client was posted with, alone in its body; arrays are told by
/// RPC-22.
fn posted<'a>(case: &Case<'a>) -> Option<&'a Exchange> {
    let is_alone = case.body().is_none_or(|body| body.position() == 0);
    let is_client = case.row().is_some_and(|row| row.dir == Dir::C2s);
    case.exchange().filter(|exchange| is_alone && is_client && exchange.head().is_some())
}

/// The session is of the transport of 2024-11-05, or its beginning was not seen.
fn may_be_http_sse(case: &Case<'_>) -> bool {
    !(case.is_full() || case.is_modern()) || case.is_http_sse()
}

/// Paths that messages were posted to.
#[derive(Default)]
pub(super) struct Endpoints(Vec<String>);

impl Endpoints {
    /// The modern exchange that was begun or answered; a message is noted and is none.
    fn asked<'a>(&mut self, case: &Case<'a>) -> Option<&'a Exchange> {
        if matches!(case.what(), Sight::Message) {
            self.note(case);
            return None;
        }
        case.exchange().filter(|exchange| exchange.era().is_some_and(Era::is_modern))
    }

    /// A message was posted.
    fn note(&mut self, case: &Case<'_>) {
        let Some(path) = case.exchange().and_then(path) else { return };
        if self.0.len() < ENDPOINTS && !self.0.iter().any(|known| known == path) {
            self.0.push(path.to_owned());
        }
    }

    /// Messages were posted to where this request goes.
    fn has(&self, exchange: &Exchange) -> bool {
        path(exchange).is_some_and(|path| self.0.iter().any(|known| known == path))
    }
}

/// Where a request goes, without its query.
fn path(exchange: &Exchange) -> Option<&str> {
    exchange.head()?.path.split('?').next()
}
