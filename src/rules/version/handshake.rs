//! The order of the legacy handshake (VER-14..16, VER-20).

use std::collections::HashMap;

use super::early_stream::EarlyStreams;
use super::fallback::calls_of;
use crate::event::{Dir, Transport};
use crate::model::{CallIdx, Handshake, ScopeIdx};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::spec::methods::{INITIALIZE, INITIALIZED};
use crate::time::Mono;
use crate::wire::jsonrpc::Kind;

/// Calls before an `initialize` that are looked at. ours.
const EARLY_CALLS: usize = 64;

/// Requests of a server that wait for the end of the handshake. ours: one is enough to tell.
const WAITING: usize = 16;

pub(super) fn rules(book: &mut Book) {
    let begin = [On::Request, On::ResultOf(INITIALIZE), On::Sight(SightKind::HttpRequest)];
    book.rule_of_any_era("VER-14", &begin, first_of_all());
    book.rule("VER-15", &[On::Request], before_initialized);
    let ends = [SightKind::Ended, SightKind::ProcessEnded, SightKind::SessionEnded].map(On::Sight);
    let mut server = vec![On::Request, On::NotificationOf(INITIALIZED)];
    server.extend(ends);
    book.rule("VER-16", &server, ServerTooEarly::default());
    book.rule("VER-20", &[On::RequestOf(INITIALIZE), On::ResultOf(INITIALIZE)], Sessions::default());
}

fn handshake(case: &Case<'_>) -> Option<Handshake> {
    case.scope().map(|scope| scope.handshake)
}

fn is_ping(case: &Case<'_>, idx: CallIdx) -> bool {
    case.model.call(idx).is_some_and(|call| case.model.text(call.method) == "ping")
}

/// Requests, and on HTTP streams, that do not wait for the handshake.
fn first_of_all() -> impl FnMut(&Case<'_>, &mut Out<'_>) + Send {
    let mut streams = EarlyStreams::default();
    move |case, out| {
        if matches!(case.message().map(|message| message.kind), Some(Kind::Request)) {
            before_answer(case, out);
        }
        if case.transport() == Transport::Http {
            streams.look(case, out);
        }
    }
}

fn before_answer(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(idx), Some(handshake)) = (case.seen.call, handshake(case)) else { return };
    let (Some(asked), true) = (handshake.asked, case.is_from_client()) else { return };
    if asked == idx {
        before_begin(case, out, idx);
        return;
    }
    let is_open = || case.model.call(asked).is_some_and(|call| !call.state.is_terminal());
    if handshake.answered.is_none() && !case.is_modern() && !is_ping(case, idx) && is_open() {
        let sentence = format!("{} was sent before the answer to {}", case.subject(), case.name(asked));
        out.draft(case).and_call(case.model, asked).say(out, sentence);
    }
}

/// Requests that name no era came before the first `initialize` of their process.
fn before_begin(case: &Case<'_>, out: &mut Out<'_>, begin: CallIdx) {
    if case.transport() != Transport::Stdio || !case.is_full() {
        return;
    }
    let mut earlier = calls_of(case.model, case.seen.scope).take_while(|idx| *idx < begin).take(EARLY_CALLS);
    let early = earlier.find(|idx| {
        case.model.call(*idx).is_some_and(|call| call.sender == Dir::C2s && call.era.is_none())
            && !is_ping(case, *idx)
    });
    if let Some(early) = early {
        let sentence = format!("{} was sent before {}", case.name(early), case.subject());
        out.draft(case).and_call(case.model, early).say(out, sentence);
    }
}

fn before_initialized(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(Handshake { asked, answered: Some(answered), initialized: None }) = handshake(case) else {
        return;
    };
    let is_exempt = matches!(case.method(), INITIALIZE | "ping");
    // Posts on several connections may overtake each other.
    let may_have_crossed =
        case.transport() == Transport::Http && case.seen.at.ns_since(answered) <= case.window_ns();
    if case.is_from_client() && !is_exempt && !may_have_crossed {
        let subject = case.subject();
        out.gather(case, (case.seen.scope, asked), |times| {
            format!("{} before notifications/initialized; last: {subject}", count(times, "request"))
        });
    }
}

/// Requests of a server that came before the client was ready.
#[derive(Default)]
struct ServerTooEarly {
    waiting: HashMap<ScopeIdx, Vec<(CallIdx, Mono)>>,
}

impl Look for ServerTooEarly {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let scope = case.seen.scope;
        if case.message().is_some_and(|message| message.kind == Kind::Request) {
            let is_early = handshake(case)
                .is_some_and(|handshake| handshake.answered.is_some() && handshake.initialized.is_none());
            if let (true, true, Some(idx)) = (case.is_from_server(), is_early, case.seen.call)
                && !is_ping(case, idx)
            {
                let waiting = self.waiting.entry(scope).or_default();
                if waiting.len() < WAITING {
                    waiting.push((idx, case.seen.at));
                }
            }
            return;
        }
        let Some(waiting) = self.waiting.remove(&scope) else { return };
        let is_ready = case.message().is_some();
        for (idx, at) in waiting {
            // The two may have crossed.
            let ns = case.seen.at.ns_since(at);
            if ns > case.window_ns() {
                let when = if is_ready {
                    format!("{} before notifications/initialized", Case::ms(ns))
                } else {
                    "although notifications/initialized never came".to_owned()
                };
                let sentence = format!("the server sent {} {when}", case.name(idx));
                out.about(case.model, idx).say(out, sentence);
            }
        }
    }
}

/// Sessions that have begun.
#[derive(Default)]
struct Sessions {
    begun: HashMap<ScopeIdx, CallIdx>,
}

impl Look for Sessions {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(idx) = case.seen.call else { return };
        if case.result().is_some() {
            self.begun.insert(case.seen.scope, idx);
        } else if let Some(before) = self.begun.get(&case.seen.scope) {
            let sentence = format!("{} begins again what {} had begun", case.subject(), case.name(*before));
            out.draft(case).and_call(case.model, *before).say(out, sentence);
        }
    }
}
