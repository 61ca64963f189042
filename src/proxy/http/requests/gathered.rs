//! Requests after the first order: each is waited for until it is whole, so that what a person
//! wants done with it is known before its first byte passes.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::{Refused, Requests};
use crate::command::book::OpenCall;
use crate::command::message::Message;
use crate::command::{Answer, CutAt, Spoil};
use crate::event::Dir;
use crate::proxy::http::Shared;
use crate::proxy::http::answer::OwnAnswer;
use crate::proxy::http::exchanges::Exchanges;
use crate::proxy::http::hands::body::{self, Shape};
use crate::proxy::http::hands::line::{Errand, Fate, Line, Way};
use crate::proxy::http::hands::orders::{cut_order, cut_words};
use crate::proxy::http::hands::outbox::{Entry, Ready};
use crate::proxy::http::hands::plan::{OnAnswer, Plan};
use crate::proxy::http::hands::{self, Spot, Then};
use crate::spec::era::Era;
use crate::spec::headers;
use crate::time::Mono;
use crate::wire::http1::{Asked, Head};
use crate::wire::jsonrpc::Id;

/// Longest body that is waited for, and most that waits on one way. A longer body passes unread.
/// ours: messages of people are far shorter; what is longer is data.
pub(in crate::proxy::http) const LIMIT_BYTES: usize = 4 << 20;

/// A request that is being waited for.
#[derive(Debug)]
pub(super) struct Gathered {
    /// Its head as it passes.
    head: Bytes,
    /// Its body with its framing.
    raw: BytesMut,
    /// Its body.
    data: BytesMut,
    era: Option<Era>,
    asked: Asked,
}

/// Waits until one way of a connection is to be looked at: when something is due, or was told.
pub(in crate::proxy::http) async fn woken(shared: &Arc<Shared>, line: &Line, way: Way, due: Option<Mono>) {
    let Some(due) = due else { return line.told(way).await };
    // Timers count in milliseconds: a little late, never early.
    let wait = Duration::from_nanos(due.ns_since(shared.tape.clock().now()));
    tokio::select! {
        () = line.told(way) => {}
        () = tokio::time::sleep(wait) => {}
    }
}

/// Whether the server is not to know that the client has left.
pub(in crate::proxy::http) fn outlives_client(exchanges: &Exchanges) -> bool {
    exchanges.all().iter().any(|exchange| is_late(&exchange.on_answer).is_some())
}

fn is_late(on_answer: &[(OnAnswer, hands::Why)]) -> Option<&hands::Why> {
    on_answer.iter().find(|(what, _)| *what == OnAnswer::Spoil(Spoil::Late)).map(|(_, why)| why)
}

impl Requests {
    /// A head has come, and this is what passes of it: at once, or when the body is there.
    pub(super) fn wait_for_body(&mut self, head: &Head, passes: Bytes, is_whole: bool) -> Bytes {
        // A client that waits for leave to send its body would wait for ever.
        if !self.is_active || !is_whole || head.get("expect").is_some() {
            return passes;
        }
        if let Some(stream) = self.stream {
            self.shared.hands.keep_head(stream, passes.clone());
        }
        let era = head.get(headers::PROTOCOL_VERSION).and_then(Era::from_name);
        let asked = match &head.start {
            crate::wire::http1::Start::Request { method, .. } => Asked::from_method(method),
            crate::wire::http1::Start::Answer { .. } => Asked::Other,
        };
        self.gathered =
            Some(Gathered { head: passes, raw: BytesMut::new(), data: BytesMut::new(), era, asked });
        Bytes::new()
    }

    /// Bytes of a body, or of its framing. Returns what passes at once.
    pub(super) fn gather(&mut self, raw: Bytes, data: Option<&Bytes>) -> Bytes {
        let Some(gathered) = &mut self.gathered else { return raw };
        gathered.raw.extend_from_slice(&raw);
        gathered.data.extend_from_slice(data.map_or(&[], |data| data));
        if gathered.data.len() > LIMIT_BYTES { self.give_up_gathering() } else { Bytes::new() }
    }

    /// What was waited for passes as it came.
    pub(super) fn give_up_gathering(&mut self) -> Bytes {
        let gathered = self.gathered.take();
        gathered.map_or_else(Bytes::new, |gathered| [gathered.head, gathered.raw.freeze()].concat().into())
    }

    /// The request is whole. `raw` are its last bytes; returns what passes at once.
    pub(super) fn gathered_whole(&mut self, raw: Bytes) -> Bytes {
        let Some(mut gathered) = self.gathered.take() else { return raw };
        gathered.raw.extend_from_slice(&raw);
        let stream = self.stream.unwrap_or_default();
        let text = gathered.data.clone().freeze();
        let place = hands::place(Dir::C2s, stream, self.conn, None, gathered.era);
        let message = Message::read(&text);
        let (call, decisions) = match &message {
            Some(message) => self.shared.hands.meet(place, message, |_| true),
            None => self.shared.hands.meet_other(place, gathered.head.len() + text.len(), |_| true),
        };
        let id = message.as_ref().and_then(|message| message.id.as_ref().or(message.cancels.as_ref()));
        let spot = Spot::of(stream, Some(self.conn), id);
        let plan = self.shared.hands.plan(Dir::C2s, &spot, decisions, &text);
        if let Some(why) = message.as_ref().and_then(|message| self.kept_from_server(message)) {
            let order = spot.ordered(&why.with("the cancel is kept from the server"));
            let answer = OwnAnswer::ordered(None, &Answer::Status(202), order);
            self.refuse(stream, gathered.asked, answer);
            return Bytes::new();
        }
        self.carry_out(plan, &gathered, &text, (message.as_ref(), call, spot));
        Bytes::new()
    }

    fn carry_out(
        &mut self,
        mut plan: Plan,
        gathered: &Gathered,
        text: &Bytes,
        (message, call, spot): (Option<&Message>, Option<OpenCall>, Spot),
    ) {
        let stream = self.stream.unwrap_or_default();
        if let Some((answer, why)) = plan.answer.take() {
            let id = message.and_then(|message| message.id.as_ref());
            self.refuse(stream, gathered.asked, OwnAnswer::ordered(id, &answer, spot.ordered(&why)));
            return;
        }
        let (tickets, mut then) = (std::mem::take(&mut self.tickets), Vec::new());
        if let Some((cut, why)) = plan.cut_now() {
            let cut = Then::Cut(cut_order(cut), spot, why.with(cut_words(cut)));
            self.outbox.push(Entry { then: vec![cut], ..Entry::raw(Some(stream), Bytes::new()) });
            return;
        }
        if plan.is_dropped {
            self.drop_request(stream);
            return;
        }
        for why in plan.copies {
            let text = plan.text.as_ref().unwrap_or(text).clone();
            then.push(Then::Again(text, spot.clone(), why));
        }
        if let (Some((cancel, why)), Some(call)) = (plan.cancel, call) {
            then.push(Then::Cancel(Box::new(call), cancel, why));
        }
        let mut on_answer = plan.on_answer;
        let is_at_once = |what: &OnAnswer| match what {
            OnAnswer::Cut(cut, CutAt::AfterEvents(0) | CutAt::AfterBytes(0)) => Some(*cut),
            _ => None,
        };
        for (what, why) in on_answer.extract_if(.., |(what, _)| is_at_once(what).is_some()) {
            let cut = is_at_once(&what)
                .map(|cut| Then::Cut(cut_order(cut), spot.clone(), why.with(cut_words(cut))));
            then.extend(cut);
        }
        self.exchanges.note(stream, |exchange| exchange.on_answer = on_answer);
        let mut head = gathered.head.clone();
        for (name, value) in &plan.fields {
            head = body::with_field(&head, name, value.as_deref());
        }
        let shape = Shape::Request(head.clone());
        let mut bytes: Bytes = match &plan.text {
            Some(text) => shape.with(text),
            None => [head.clone(), gathered.raw.clone().freeze()].concat().into(),
        };
        if plan.is_compressed {
            let head = body::with_field(&head, "Content-Encoding", Some("gzip"));
            let small = body::compressed(plan.text.as_ref().unwrap_or(text));
            bytes = [crate::proxy::http::heads::set_length(&head, small.len()), small].concat().into();
        }
        let ready = self.ready(plan.hold, plan.delay, &spot, (message, text));
        self.outbox.push(Entry {
            shape,
            is_message: true,
            ready,
            slice: plan.slice,
            tickets,
            then,
            ..Entry::raw(Some(stream), bytes)
        });
    }

    fn ready(
        &mut self,
        hold: Option<(u64, Option<crate::time::Ms>)>,
        delay: Option<(u64, crate::time::Ms)>,
        spot: &Spot,
        (message, text): (Option<&Message>, &Bytes),
    ) -> Ready {
        let hands = &self.shared.hands;
        if let Some(hold) = hold {
            let says = hands::says("c2s", message);
            let (number, due) = hands.hold((&self.line, Way::Up), spot, hold, (says, text));
            return Ready::Held(number, due);
        }
        delay.map_or(Ready::Now, |delay| Ready::At(hands::due(&mut self.delays, hands.now(), delay)))
    }

    /// The request does not pass, and the tap answers it when all before it have passed.
    fn refuse(&mut self, stream: u64, asked: Asked, answer: OwnAnswer) {
        self.exchanges.remove(stream);
        self.shared.hands.end_stream(stream);
        let refused = Refused { stream, asked, answer };
        self.outbox.push(Entry { refused: Some(refused), ..Entry::raw(Some(stream), Bytes::new()) });
    }

    fn drop_request(&mut self, stream: u64) {
        self.exchanges.remove(stream);
        self.dropped.push(stream);
    }

    /// The cancel of a call whose server is not to know of it.
    fn kept_from_server(&self, message: &Message) -> Option<hands::Why> {
        let id: &Id = message.cancels.as_ref()?;
        self.shared.hands.late(id)
    }

    /// Carries out what was told, and returns what passes now.
    pub(super) fn flush(&mut self) -> Bytes {
        for errand in self.line.errands(Way::Up) {
            match errand {
                Errand::Fate(number, fate) => self.settle(number, fate),
                Errand::Forget => self.forget(),
                Errand::Close => self.is_ending = true,
                Errand::Send(..) | Errand::Look => {}
            }
        }
        let now = self.shared.hands.now();
        if self.outbox.has_held_due(now) {
            self.shared.hands.release_due();
            for errand in self.line.errands(Way::Up) {
                if let Errand::Fate(number, fate) = errand {
                    self.settle(number, fate);
                }
            }
        }
        if self.line.is_cut() {
            self.forget();
            return Bytes::new();
        }
        let mut out = BytesMut::new();
        for entry in self.outbox.take(now) {
            if let Some(refused) = entry.refused {
                self.refused = Some(refused);
                break;
            }
            out.extend_from_slice(&entry.bytes);
            self.out.extend(entry.tickets);
            self.then.extend(entry.then);
            if self.then.iter().any(|then| matches!(then, Then::Cut(..))) {
                self.outbox.clear();
                break;
            }
        }
        out.freeze()
    }

    fn settle(&mut self, number: u64, fate: Fate) {
        match fate {
            Fate::Pass(text) => {
                let bytes = self.outbox.held(number).zip(text).map(|(entry, text)| entry.shape.with(&text));
                self.outbox.release(number, bytes);
            }
            Fate::Drop => {
                if let Some(stream) = self.outbox.take_held(number).and_then(|entry| entry.stream) {
                    self.drop_request(stream);
                }
            }
            Fate::Answer(answer, by) => {
                let Some(entry) = self.outbox.held(number) else { return };
                let stream = entry.stream.unwrap_or_default();
                let text = match &entry.shape {
                    Shape::Request(head) => entry.bytes.slice(head.len().min(entry.bytes.len())..),
                    _ => Bytes::new(),
                };
                let id = Message::read(&text).and_then(|message| message.id);
                let spot = Spot::of(stream, Some(self.conn), id.as_ref());
                let answer = OwnAnswer::ordered(id.as_ref(), &answer, spot.by(by));
                entry.refused = Some(Refused { stream, asked: Asked::Other, answer });
                entry.bytes = Bytes::new();
                entry.ready = Ready::Now;
                self.exchanges.remove(stream);
                self.shared.hands.end_stream(stream);
            }
            Fate::Until(due) => {
                if let Some(entry) = self.outbox.held(number) {
                    entry.ready = Ready::Held(number, due);
                }
            }
        }
    }

    /// What waits never passes: who sent it, or who was to get it, is gone.
    pub(super) fn forget(&mut self) {
        if !self.outbox.is_empty() {
            self.shared.hands.lose(&self.line, Some(Way::Up));
            self.outbox.clear();
        }
        if self.is_active && self.left.is_some() {
            self.line.tell(Way::Down, Errand::Forget);
        }
    }
}
