//! A GET stream that is asked for while the first handshake of its endpoint is under way (VER-14 on
//! HTTP).

use std::collections::HashMap;

use crate::model::{CallIdx, Sight};
use crate::rules::Blame;
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::spec::era::Era;
use crate::spec::headers::{LAST_EVENT_ID, SESSION_ID};
use crate::spec::methods::INITIALIZE;

/// Endpoints that are remembered. ours.
const PATHS_LIMIT: usize = 256;

/// What is under way at one path before anybody has completed a handshake there. After that a GET
/// without a session may be that of a client whose server has no sessions.
#[derive(Default)]
struct Endpoint {
    /// The latest GET without a session.
    get: Option<u64>,
    /// The latest `initialize`.
    initialize: Option<CallIdx>,
    /// A handshake was answered here.
    is_open: bool,
}

/// The endpoints of a recording.
#[derive(Default)]
pub(super) struct EarlyStreams {
    paths: HashMap<String, Endpoint>,
}

impl EarlyStreams {
    pub(super) fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(exchange) = case.exchange() else { return };
        let Some(head) = exchange.head().filter(|_| case.is_full()) else { return };
        let path = head.path.split('?').next().unwrap_or_default();
        if self.paths.len() >= PATHS_LIMIT && !self.paths.contains_key(path) {
            return;
        }
        let endpoint = self.paths.entry(path.to_owned()).or_default();
        if endpoint.is_open {
            return;
        }
        let asks = || case.call().is_some_and(|call| case.model.text(call.method) == INITIALIZE);
        match case.what() {
            Sight::HttpRequest if head.method == "GET" => {
                let is_modern = exchange.era().is_some_and(Era::is_modern);
                let has = |name| head.headers.get(name).is_some();
                if is_modern || has(SESSION_ID) || has(LAST_EVENT_ID) || !asks_for_stream(case) {
                    return;
                }
                endpoint.get = case.seen.stream;
                let open = endpoint
                    .initialize
                    .filter(|idx| case.model.call(*idx).is_some_and(|call| !call.state.is_terminal()));
                if let Some(idx) = open {
                    say(case, out, idx);
                }
            }
            Sight::Message if case.result().is_some() && asks() => endpoint.is_open = true,
            Sight::Message if asks() => {
                endpoint.initialize = case.seen.call;
                // The stream of HTTP+SSE is there first, and says where to post.
                let open = endpoint
                    .get
                    .and_then(|stream| case.model.exchange_of(stream))
                    .filter(|get| get.client_left().is_none() && !get.is_event_stream());
                if let (Some(_), Some(idx)) = (open, case.seen.call) {
                    say(case, out, idx);
                }
            }
            _ => {}
        }
    }
}

fn asks_for_stream(case: &Case<'_>) -> bool {
    let accept = case.exchange().and_then(|exchange| exchange.headers().get("accept"));
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

fn say(case: &Case<'_>, out: &mut Out<'_>, initialize: CallIdx) {
    let sentence = format!("a GET stream was asked for before {} was answered", case.name(initialize));
    out.about(case.model, initialize).blame(Blame::Client).say(out, sentence);
}
