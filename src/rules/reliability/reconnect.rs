//! Clients that connect again and again without a pause (REL-20).

use hashbrown::HashMap;

use crate::event::Transport;
use crate::model::{CallState, Exchange, Name, ScopeIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::time::{Mono, Span};

/// What ended sooner than this brought nothing: the next attempt belongs to a loop. ours.
const SHORT_NS: u64 = 2_000_000_000;

/// After a pause of this length the client has slowed down enough. ours: the ceiling of the backoff.
const PAUSE_NS: u64 = 8_000_000_000;

/// Attempts in a row after the first, in one session; among clients that cannot be told apart more
/// are needed. ours.
const AGAIN: u32 = 3;
const AGAIN_ANYBODY: u32 = 6;

pub(super) fn rules(book: &mut Book) {
    let when = [
        On::Sight(SightKind::HttpRequest),
        On::Sight(SightKind::ExchangeEnd),
        On::RequestOf("initialize"),
        On::RequestOf("subscriptions/listen"),
        On::Sight(SightKind::Answered),
        On::Sight(SightKind::StreamEnded),
    ];
    book.rule("REL-20", &when, Loops::default());
}

/// What is opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    GetStream,
    Listen,
    Initialize,
}

/// One loop.
#[derive(Debug, Default)]
struct Cycle {
    /// When the last short one ended; `None`: the last one was none.
    ended: Option<Mono>,
    /// How long the last pause was.
    pause_ns: Option<u64>,
    /// How often it was opened again without a longer pause.
    again: u32,
}

#[derive(Default)]
struct Loops(HashMap<(ScopeIdx, What), Cycle>);

impl Look for Loops {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        match case.what() {
            Sight::Message => {
                let is_listen = case.call().is_some_and(|call| call.method == Name::LISTEN);
                self.opened(case, out, if is_listen { What::Listen } else { What::Initialize });
            }
            Sight::HttpRequest if is_get_stream(case) => self.opened(case, out, What::GetStream),
            Sight::ExchangeEnd if is_get_stream(case) => {
                let Some(exchange) = case.exchange() else { return };
                let flow = exchange.flow().and_then(|flow| case.model.flow(flow));
                let is_empty = flow.is_none_or(|flow| flow.messages == 0);
                let lived_ns = exchange.started().map_or(u64::MAX, |from| case.seen.at.ns_since(from));
                self.ended(case, What::GetStream, is_empty && lived_ns < SHORT_NS);
            }
            Sight::Answered | Sight::StreamEnded => self.call_ended(case),
            _ => {}
        }
    }
}

impl Loops {
    fn call_ended(&mut self, case: &Case<'_>) {
        let Some(call) = case.call() else { return };
        let what = match call.method {
            Name::LISTEN => What::Listen,
            Name::INITIALIZE => What::Initialize,
            _ => return,
        };
        let lived_ns = case.seen.at.ns_since(call.started);
        // A handshake that succeeds ends the loop; a subscription that is answered at once is over.
        let is_done = what == What::Initialize && call.state == CallState::AnsweredOk;
        self.ended(case, what, !is_done && lived_ns < SHORT_NS);
    }

    /// Every `initialize` on HTTP begins a session of its own, so those of all are one loop.
    fn key(case: &Case<'_>, what: What) -> (ScopeIdx, What) {
        let is_session = case.seen.transport == Transport::Stdio || what == What::GetStream;
        (if is_session { case.seen.scope } else { ScopeIdx(0) }, what)
    }

    fn ended(&mut self, case: &Case<'_>, what: What, is_short: bool) {
        let cycle = self.0.entry(Loops::key(case, what)).or_default();
        if is_short {
            cycle.ended = Some(case.seen.at);
        } else {
            *cycle = Cycle::default();
        }
    }

    fn opened(&mut self, case: &Case<'_>, out: &mut Out<'_>, what: What) {
        let key = Loops::key(case, what);
        let Some(cycle) = self.0.get_mut(&key) else { return };
        let Some(ended) = cycle.ended.take() else { return };
        let pause_ns = case.seen.at.ns_since(ended);
        // Half as long again, and more than timers are late by, is a pause that grows.
        let has_grown = cycle
            .pause_ns
            .is_some_and(|before| pause_ns > before + before / 2 && pause_ns > before + 50_000_000);
        cycle.pause_ns = Some(pause_ns);
        cycle.again = if has_grown || pause_ns >= PAUSE_NS { 0 } else { cycle.again + 1 };
        let needed = if key.0 == ScopeIdx(0) { AGAIN_ANYBODY } else { AGAIN };
        let again = cycle.again;
        if again < needed {
            return;
        }
        let name = match what {
            What::GetStream => "the GET stream",
            What::Listen => "subscriptions/listen",
            What::Initialize => "initialize",
        };
        let sentence = format!(
            "{name} was asked for again {} in a row, each time soon after it had ended with nothing; the last pause was {}",
            count(again, "time"),
            Span(pause_ns)
        );
        out.draft(case).blame(Blame::Client).gather(out, key, |_| sentence.clone());
    }
}

/// A GET that opens, or asks for, an event stream.
fn is_get_stream(case: &Case<'_>) -> bool {
    let Some(exchange) = case.exchange().filter(|exchange| exchange.method() == "GET") else { return false };
    let accepts = exchange.headers().get("accept").is_some_and(|accept| accept.contains("text/event-stream"));
    accepts && !polls(exchange)
}

/// It takes up a stream where its server had asked for that.
fn polls(exchange: &Exchange) -> bool {
    exchange.headers().get("last-event-id").is_some()
}
