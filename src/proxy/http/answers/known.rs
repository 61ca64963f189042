//! Answers after the first order: each message is known before it passes, and what a person wants
//! done with it is done.

use std::io::Write;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Answers, Treatment, own_chunk};
use crate::command::book::OpenCall;
use crate::command::message::Message;
use crate::command::{Cut, CutAt, Effect, Spoil, text};
use crate::event::tape::Ticket;
use crate::event::{Close, Dir, What};
use crate::proxy::http::answer::OwnAnswer;
use crate::proxy::http::exchanges::Exchange;
use crate::proxy::http::forward::Forward;
use crate::proxy::http::hands::body::{self, Shape};
use crate::proxy::http::hands::line::{Errand, Fate, Line, Way};
use crate::proxy::http::hands::orders::{cut_order, cut_words};
use crate::proxy::http::hands::outbox::{Entry, Form, Outbox, Ready};
use crate::proxy::http::hands::plan::{OnAnswer, Plan};
use crate::proxy::http::hands::{self, Spot, Then, Why};
use crate::proxy::http::heads;
use crate::spec::headers;
use crate::time::{Mono, Ms};
use crate::wire::http1::Head;
use crate::wire::sse::{EVENT_LIMIT_BYTES, SseDecoder};

/// What is known and done after the first order.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) line: Arc<Line>,
    pub(super) is_active: bool,
    outbox: Outbox,
    status: Option<u16>,
    /// What is done to the answer that is being read.
    on_answer: Vec<(OnAnswer, Why)>,
    /// The answer that is being read can be cut into events.
    can_cut: bool,
    events: SseDecoder,
    /// Bytes of the stream that are in no event yet.
    uncut: BytesMut,
    /// The stream that is being compressed.
    gzip: Option<GzEncoder<Vec<u8>>>,
    /// Bytes of the answer that is being read have passed.
    is_head_out: bool,
    /// Nothing passes any more.
    is_muted: bool,
    /// The end of the answer is told when its race is over.
    has_race: bool,
    sends: Vec<(u64, Bytes)>,
    out: Vec<Ticket>,
    then: Vec<Then>,
    delays: Vec<(u64, Mono)>,
}

/// A message and what is known of it.
struct Found<'a> {
    message: &'a Message,
    call: Option<OpenCall>,
    spot: Spot,
    is_final: bool,
}

/// What concerns the head of an answer alone.
fn is_of_head(effect: &Effect) -> bool {
    matches!(effect, Effect::Header { .. } | Effect::Compress)
}

impl Known {
    pub(super) fn new(line: Arc<Line>) -> Known {
        Known {
            line,
            is_active: false,
            outbox: Outbox::default(),
            status: None,
            on_answer: Vec::new(),
            can_cut: false,
            events: SseDecoder::new(EVENT_LIMIT_BYTES),
            uncut: BytesMut::new(),
            gzip: None,
            is_head_out: false,
            is_muted: false,
            has_race: false,
            sends: Vec::new(),
            out: Vec::new(),
            then: Vec::new(),
            delays: Vec::new(),
        }
    }

    /// A new answer has begun.
    pub(super) fn begin(&mut self, status: u16, exchange: Option<&Exchange>, can_cut: bool) {
        self.status = Some(status);
        self.can_cut = can_cut;
        self.is_head_out = !self.is_active;
        self.has_race = false;
        self.on_answer = exchange.map_or_else(Vec::new, |exchange| exchange.on_answer.clone());
        for (what, _) in &self.on_answer {
            if let OnAnswer::Brake(rule, brake) = what {
                self.outbox.brake(*rule, *brake);
            }
        }
    }

    /// Places on the tape of what was read, told when the last of it has passed.
    pub(super) fn attach(&mut self, tickets: Vec<Ticket>) {
        if let Some(last) = self.outbox.last() {
            last.tickets.extend(tickets);
        }
    }

    pub(super) fn passed(&mut self) -> impl Iterator<Item = Ticket> + '_ {
        self.out.drain(..)
    }

    pub(super) fn done(&mut self) -> Vec<Then> {
        std::mem::take(&mut self.then)
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.outbox.len_bytes()
    }

    pub(super) fn next_due(&self) -> Option<Mono> {
        self.outbox.next_due()
    }

    pub(super) fn is_drained(&self) -> bool {
        self.outbox.is_empty()
    }

    /// What came of an event that will not be whole.
    pub(super) fn unfinished(&mut self) -> Bytes {
        self.events = SseDecoder::new(EVENT_LIMIT_BYTES);
        self.uncut.split().freeze()
    }

    /// The first thing of this kind that is to be done to the answer; it is done once.
    fn take_on_answer<T>(&mut self, pick: impl Fn(&OnAnswer) -> Option<T>) -> Option<(T, Why)> {
        let at = self.on_answer.iter().position(|(what, _)| pick(what).is_some())?;
        let (what, why) = self.on_answer.remove(at);
        pick(&what).map(|picked| (picked, why))
    }
}

impl Answers {
    fn stream(&self) -> Option<u64> {
        self.exchange.as_ref().map(|exchange| exchange.stream)
    }

    /// What passes of a piece: at once, or behind what waits.
    pub(super) fn pass(&mut self, forward: &mut Forward, raw_len: usize, passes: Bytes) {
        if !self.known.is_active {
            forward.push(raw_len, &passes);
        } else if !passes.is_empty() {
            self.known.outbox.push(Entry::raw(self.stream(), passes));
        }
    }

    /// The bytes that had been held back at the end of the server.
    pub(super) fn held_to_pass(&mut self, held: Bytes) -> Bytes {
        if self.known.is_active && !held.is_empty() {
            let form = if self.is_chunked && self.known.can_cut { Form::Chunk } else { Form::Raw };
            let stream = self.stream();
            self.known.outbox.push(Entry { form, ..Entry::raw(stream, held) });
            return Bytes::new();
        }
        held
    }

    /// An event stream that had begun before the first order is cut into events from the next
    /// place on where that can be done.
    pub(super) fn begin_to_cut(&mut self) {
        let is_here = !self.is_chunked || self.decoder.is_between_chunks();
        let is_raw = matches!(self.treatment, Treatment::Pass | Treatment::OwnChunks);
        if self.known.is_active && self.is_begun && self.known.can_cut && is_here && is_raw {
            self.treatment = Treatment::Events;
        }
    }

    /// A head has come. Returns what passes of it at once.
    pub(super) fn begin_known(&mut self, head: &Head, raw: Bytes) -> Bytes {
        let Some(stream) = self.stream() else { return raw };
        let is_plain = head.get("content-encoding").is_none_or(|v| v.eq_ignore_ascii_case("identity"));
        let is_json = head.get("content-type").is_some_and(|v| headers::is_media_type(v, headers::JSON));
        if self.known.can_cut {
            let passes = self.begin_stream(stream, raw);
            if matches!(self.treatment, Treatment::Pass) {
                self.treatment = Treatment::Events;
            }
            return passes;
        }
        if is_json && is_plain {
            let (raw_body, data) = (BytesMut::new(), BytesMut::new());
            self.treatment = Treatment::Message { head: raw, raw: raw_body, data };
            return Bytes::new();
        }
        self.pass_other(stream, raw)
    }

    /// The head of an event stream passes with what is done to heads.
    fn begin_stream(&mut self, stream: u64, mut head: Bytes) -> Bytes {
        let is_muted = self.known.is_muted;
        let place = hands::place(Dir::S2c, stream, self.conn, self.known.status, None);
        let (call, decisions) =
            self.shared.hands.meet_other(place, head.len(), |effect| !is_muted && is_of_head(effect));
        let spot = Spot::of(stream, Some(self.conn), call.as_ref().map(|call| &call.id));
        let plan = self.shared.hands.plan(Dir::S2c, &spot, decisions, &head);
        for (name, value) in &plan.fields {
            head = body::with_field(&head, name, value.as_deref());
        }
        if plan.is_compressed {
            head = body::with_field(&head, "Content-Encoding", Some("gzip"));
            self.known.gzip = Some(GzEncoder::new(Vec::new(), Compression::default()));
        }
        self.begin_flood(&spot, call.as_ref());
        head
    }

    /// A head whose answer holds no message passes, or what stands in its place.
    fn pass_other(&mut self, stream: u64, mut head: Bytes) -> Bytes {
        let is_muted = self.known.is_muted;
        let place = hands::place(Dir::S2c, stream, self.conn, self.known.status, None);
        let (call, decisions) = self.shared.hands.meet_other(place, head.len(), |_| !is_muted);
        let spot = Spot::of(stream, Some(self.conn), call.as_ref().map(|call| &call.id));
        let mut plan = self.shared.hands.plan(Dir::S2c, &spot, decisions, &head);
        if let Some((cut, why)) = plan.cut_now() {
            self.treatment = Treatment::Replaced;
            self.push_cut(Bytes::new(), Form::Raw, (cut, spot, why));
            return Bytes::new();
        }
        if plan.is_dropped {
            self.treatment = Treatment::Replaced;
            return Bytes::new();
        }
        if let Some((answer, why)) = plan.answer.take() {
            self.treatment = Treatment::Replaced;
            let id = call.as_ref().map(|call| &call.id);
            let own = OwnAnswer::ordered(id, &answer, spot.ordered(&why));
            let sent = Some(Bytes::from(own.text().to_owned()));
            self.shared.hands.tell(Dir::S2c, "answer", &spot, &why, sent);
            return own.wire_kept().into();
        }
        for (name, value) in &plan.fields {
            head = body::with_field(&head, name, value.as_deref());
        }
        let text = head.clone();
        let ready = self.ready(&plan, &spot, (None, &text));
        let mut then = Vec::new();
        if let (Some((cancel, why)), Some(call)) = (plan.cancel.take(), call) {
            then.push(Then::Cancel(Box::new(call), cancel, why));
        }
        self.take_in(plan.on_answer);
        let entry = Entry { ready, slice: plan.slice, then, ..Entry::raw(Some(stream), head) };
        self.known.outbox.push(entry);
        Bytes::new()
    }

    /// What is done to the answer from here on.
    fn take_in(&mut self, on_answer: Vec<(OnAnswer, Why)>) {
        for (what, why) in on_answer {
            match what {
                OnAnswer::Brake(rule, brake) => self.known.outbox.brake(rule, brake),
                what => self.known.on_answer.push((what, why)),
            }
        }
    }

    /// Bytes of an event stream.
    pub(super) fn cut_events(&mut self, data: &[u8]) {
        self.known.uncut.extend_from_slice(data);
        for event in self.known.events.push(data) {
            let len = event.wire_len.min(self.known.uncut.len());
            let raw = self.known.uncut.split_to(len).freeze();
            self.pass_event(raw, event.data);
        }
    }

    /// An event stream has ended in order.
    pub(super) fn finish_events(&mut self) {
        let rest = self.known.unfinished();
        let stream = self.stream();
        let form = if self.is_chunked { Form::Chunk } else { Form::Raw };
        if !rest.is_empty() {
            self.known.outbox.push(Entry { is_message: false, ..Entry::part(stream, form, rest) });
        }
        let end = if self.is_chunked { Bytes::from_static(b"0\r\n\r\n") } else { Bytes::new() };
        let mut then = Vec::new();
        if let Some(stream) = stream.filter(|_| self.known.has_race) {
            then.push(Then::End(stream));
        }
        self.known.outbox.push(Entry { form: Form::End, then, ..Entry::raw(stream, end) });
    }

    /// The end of an answer is told, unless its race is not over.
    pub(super) fn end_known(&mut self) {
        if !self.known.has_race {
            self.push(What::ServerClosed { how: Some(Close::Eof), exit_code: None, signal: None });
        }
        if let Some(stream) = self.stream().filter(|_| self.known.is_active && self.known.status != Some(202))
        {
            self.shared.hands.end_stream(stream);
        }
        self.known.on_answer.clear();
        self.known.can_cut = false;
        self.known.has_race = false;
    }

    fn pass_event(&mut self, raw: Bytes, data: Option<Bytes>) {
        let form = if self.is_chunked { Form::Chunk } else { Form::Raw };
        let stream = self.stream();
        let text = data.unwrap_or_default();
        let Some(message) = Message::read(&text) else {
            self.known.outbox.push(Entry { is_message: false, ..Entry::part(stream, form, raw) });
            return;
        };
        self.tell();
        let is_muted = self.known.is_muted;
        let (plan, found) = self.find(&message, |effect| !is_muted && !is_of_head(effect));
        self.carry_out(plan, found, (Shape::Event(raw.clone()), form, raw));
    }

    /// A whole answer that is one message: its head, its body with its framing, and its text.
    pub(super) fn pass_answer(&mut self, head: Bytes, raw: &Bytes, text: Bytes) {
        let whole: Bytes = [head.clone(), raw.clone()].concat().into();
        let Some(message) = Message::read(&text) else {
            let stream = self.stream();
            self.known.outbox.push(Entry::raw(stream, whole));
            return;
        };
        self.tell();
        let is_muted = self.known.is_muted;
        let (plan, found) = self.find(&message, |_| !is_muted);
        self.carry_out(plan, found, (Shape::Answer(head), Form::Raw, whole));
    }

    /// What is known of a message, and what is to be done with it.
    fn find<'a>(&self, message: &'a Message, wanted: impl Fn(&Effect) -> bool) -> (Plan, Found<'a>) {
        let stream = self.stream().unwrap_or_default();
        let place = hands::place(Dir::S2c, stream, self.conn, self.known.status, None);
        let (call, decisions) = self.shared.hands.meet(place, message, wanted);
        let id = message.id.as_ref().or_else(|| call.as_ref().map(|call| &call.id));
        let spot = Spot::of(stream, Some(self.conn), id);
        let plan = self.shared.hands.plan(Dir::S2c, &spot, decisions, &message.text);
        let is_final = message.is_final() && call.is_some();
        (plan, Found { message, call, spot, is_final })
    }

    fn carry_out(&mut self, mut plan: Plan, found: Found<'_>, (shape, form, raw): (Shape, Form, Bytes)) {
        let stream = self.stream();
        // What was ordered before comes before what meets this message.
        if let Some(cut) = self.cut_before(&mut plan, &found) {
            let (cut, why, part) = cut;
            let half = if part { raw.slice(..raw.len() / 2) } else { Bytes::new() };
            self.push_cut(half, form, (cut, found.spot, why));
            return;
        }
        let after = self.cut_after(&mut plan, &shape, &raw);
        if plan.is_dropped {
            return;
        }
        let mut changed = plan.text.take();
        if let Some((answer, why)) = plan.answer.take() {
            match self.replacement(&answer, &found, &shape, &why) {
                Some(Ok(text)) => changed = Some(text),
                Some(Err(wire)) => {
                    self.known.outbox.push(Entry::raw(stream, wire));
                    return;
                }
                None => {}
            }
        }
        self.take_in(std::mem::take(&mut plan.on_answer));
        let mut more = Vec::new();
        if found.is_final {
            let text = changed.as_ref().unwrap_or(&found.message.text).clone();
            (changed, more) = self.spoil(&found, text, changed);
        }
        let text = changed.as_ref().unwrap_or(&found.message.text).clone();
        for why in &plan.copies {
            self.shared.hands.tell(Dir::S2c, "duplicate", &found.spot, why, Some(text.clone()));
            more.insert(0, text.clone());
        }
        let bytes = self.bytes_of(&plan, &shape, (&raw, changed.as_ref(), &text), &more);
        let bytes = match &after {
            Some((left, ..)) if *left < bytes.len() => bytes.slice(..*left),
            _ => bytes,
        };
        let ready = self.ready(&plan, &found.spot, (Some(found.message), &text));
        let mut then = Vec::new();
        if let (Some((cancel, why)), Some(call)) = (plan.cancel.take(), found.call.clone()) {
            then.push(Then::Cancel(Box::new(call), cancel, why));
        }
        let is_cut = after.is_some();
        if let Some((_, cut, why)) = after {
            then.push(Then::Cut(cut_order(cut), found.spot.clone(), why.with(cut_words(cut))));
        }
        let is_event = matches!(shape, Shape::Event(_));
        let entry = Entry { shape, ready, slice: plan.slice, then, ..Entry::part(stream, form, bytes) };
        let is_barrier = !is_event;
        self.race_or_pass(Entry { is_barrier, ..entry }, &found);
        if is_event && !is_cut {
            for text in more {
                self.known.outbox.push(Entry::part(stream, form, body::event(&text)));
            }
            self.begin_flood(&found.spot, found.call.as_ref());
        }
    }

    /// The bytes of a message as they pass.
    fn bytes_of(
        &self,
        plan: &Plan,
        shape: &Shape,
        (raw, changed, text): (&Bytes, Option<&Bytes>, &Bytes),
        more: &[Bytes],
    ) -> Bytes {
        let Shape::Answer(head) = shape else {
            return changed.map_or_else(|| raw.clone(), |changed| shape.with(changed));
        };
        let mut head = head.clone();
        for (name, value) in &plan.fields {
            head = body::with_field(&head, name, value.as_deref());
        }
        if !more.is_empty() {
            return as_stream(&head, text, more);
        }
        if plan.is_compressed {
            let head = body::with_field(&head, "Content-Encoding", Some("gzip"));
            let small = body::compressed(text);
            return [heads::set_length(&head, small.len()), small].concat().into();
        }
        match changed {
            Some(changed) => Shape::Answer(head).with(changed),
            None if plan.fields.is_empty() => raw.clone(),
            None => Shape::Answer(head).with(text),
        }
    }

    /// A cut in the place of this message, or in its middle (`true`).
    fn cut_before(&mut self, plan: &mut Plan, found: &Found<'_>) -> Option<(Cut, Why, bool)> {
        let before_final = |what: &OnAnswer| match what {
            OnAnswer::Cut(cut, CutAt::BeforeFinal) => Some(*cut),
            _ => None,
        };
        let mid = |what: &OnAnswer| match what {
            OnAnswer::Cut(cut, CutAt::MidEvent) => Some(*cut),
            _ => None,
        };
        if let Some((cut, why)) = plan.cut_now() {
            return Some((cut, why, false));
        }
        if let Some((cut, why)) = self.known.take_on_answer(mid) {
            return Some((cut, why, true));
        }
        if !found.is_final {
            return None;
        }
        let own = plan.on_answer.iter().position(|(what, _)| before_final(what).is_some());
        if let Some(at) = own
            && let (OnAnswer::Cut(cut, _), why) = plan.on_answer.remove(at)
        {
            return Some((cut, why, false));
        }
        self.known.take_on_answer(before_final).map(|(cut, why)| (cut, why, false))
    }

    /// A cut after this message, and how many of its bytes pass before.
    fn cut_after(&mut self, plan: &mut Plan, shape: &Shape, raw: &Bytes) -> Option<(usize, Cut, Why)> {
        let mut cut_here = None;
        // Bytes of the body are counted; its head passes before them.
        let head_len = if let Shape::Answer(head) = shape { head.len() } else { 0 };
        for (what, why) in &mut self.known.on_answer {
            let OnAnswer::Cut(cut, at) = what else { continue };
            match at {
                CutAt::AfterEvents(left) => {
                    *left = left.saturating_sub(1);
                    if *left == 0 {
                        cut_here = Some((usize::MAX, *cut, why.clone()));
                    }
                }
                CutAt::AfterBytes(left) => {
                    let passing = u64::try_from(raw.len() - head_len).unwrap_or(u64::MAX);
                    if *left <= passing {
                        let pass = usize::try_from(*left).unwrap_or(usize::MAX).saturating_add(head_len);
                        cut_here = Some((pass, *cut, why.clone()));
                    }
                    *left = left.saturating_sub(passing);
                }
                CutAt::Now | CutAt::BeforeFinal | CutAt::MidEvent => {}
            }
        }
        let own = plan.on_answer.iter().position(|(what, _)| {
            matches!(what, OnAnswer::Cut(_, CutAt::AfterEvents(0) | CutAt::AfterBytes(0)))
        });
        if let Some(at) = own
            && let (OnAnswer::Cut(cut, _), why) = plan.on_answer.remove(at)
        {
            cut_here.get_or_insert((usize::MAX, cut, why));
        }
        cut_here
    }

    /// The connection is cut when these bytes have passed.
    fn push_cut(&mut self, bytes: Bytes, form: Form, (cut, spot, why): (Cut, Spot, Why)) {
        let then = vec![Then::Cut(cut_order(cut), spot, why.with(cut_words(cut)))];
        let stream = self.stream();
        self.known.outbox.push(Entry { form, then, ..Entry::raw(stream, bytes) });
    }

    /// What stands in place of the server's answer: a text, or a whole answer of HTTP.
    fn replacement(
        &self,
        answer: &crate::command::Answer,
        found: &Found<'_>,
        shape: &Shape,
        why: &Why,
    ) -> Option<Result<Bytes, Bytes>> {
        let hands = &self.shared.hands;
        let id = found.message.id.as_ref()?;
        if let Some(text) = text::answer(id, answer) {
            let text = Bytes::from(text);
            hands.tell(Dir::S2c, "answer", &found.spot, why, Some(text.clone()));
            return Some(Ok(text));
        }
        if matches!(shape, Shape::Event(_)) {
            let why = why.with("not done: the head of its answer has passed");
            hands.tell(Dir::Tap, "answer", &found.spot, &why, None);
            return None;
        }
        let own = OwnAnswer::ordered(Some(id), answer, found.spot.ordered(why));
        hands.tell(Dir::S2c, "answer", &found.spot, why, Some(Bytes::from(own.text().to_owned())));
        Some(Err(own.wire_kept().into()))
    }

    /// A final answer is made wrong: its text, and what follows it.
    fn spoil(
        &mut self,
        found: &Found<'_>,
        mut text: Bytes,
        mut changed: Option<Bytes>,
    ) -> (Option<Bytes>, Vec<Bytes>) {
        let mut more = Vec::new();
        let pick = |what: &OnAnswer| match what {
            OnAnswer::Spoil(spoil) if *spoil != Spoil::Late => Some(*spoil),
            _ => None,
        };
        while let Some((spoil, why)) = self.known.take_on_answer(pick) {
            let sent = match spoil {
                Spoil::DuplicateFinal => {
                    more.push(text.clone());
                    Some(text.clone())
                }
                Spoil::ProgressAfterFinal => {
                    let token = found.call.as_ref().and_then(|call| call.token.as_ref());
                    token.map(|token| {
                        let progress = found.call.as_ref().map_or(0, |call| call.progress) + 1;
                        let late = Bytes::from(text::progress(token, progress));
                        more.push(late.clone());
                        late
                    })
                }
                spoil => text::spoiled(&text, spoil).inspect(|spoiled| {
                    text = spoiled.clone();
                    changed = Some(spoiled.clone());
                }),
            };
            let (dir, why) = match sent {
                Some(_) => (Dir::S2c, why),
                None => (Dir::Tap, why.with("not done: there is nothing of it to make wrong")),
            };
            self.shared.hands.tell(dir, "spoil", &found.spot, &why, sent);
        }
        (changed, more)
    }

    /// An answer passes, or races with a cancel.
    fn race_or_pass(&mut self, mut entry: Entry, found: &Found<'_>) {
        let pick = |what: &OnAnswer| match what {
            OnAnswer::Race(order) => Some(*order),
            _ => None,
        };
        let race = found.call.clone().filter(|_| found.is_final);
        let Some((call, (order, why))) = race.zip(self.known.take_on_answer(pick)) else {
            self.known.outbox.push(entry);
            return;
        };
        // A chunked body is known whole only with its end, which is told first then.
        let is_told_first = self.is_chunked && !matches!(entry.shape, Shape::Event(_));
        if is_told_first {
            self.push(What::ServerClosed { how: Some(Close::Eof), exit_code: None, signal: None });
        }
        self.known.has_race = true;
        if let Some(stream) =
            entry.stream.filter(|_| !is_told_first && !matches!(entry.shape, Shape::Event(_)))
        {
            entry.then.push(Then::End(stream));
        }
        let now = self.shared.hands.now();
        for entry in self.shared.hands.race((&self.known.line, now), &call, order, (&found.spot, &why), entry)
        {
            self.known.outbox.push(entry);
        }
    }

    /// Progress that nobody asked for, if it is to come.
    fn begin_flood(&mut self, spot: &Spot, call: Option<&OpenCall>) {
        let pick = |what: &OnAnswer| match what {
            OnAnswer::Flood(per_s, count) => Some((*per_s, *count)),
            _ => None,
        };
        let Some(token) = call.and_then(|call| call.token.as_ref()) else { return };
        let Some(((per_s, count), why)) = self.known.take_on_answer(pick) else { return };
        self.shared.hands.tell(Dir::Tap, "flood", spot, &why, None);
        let form = if self.is_chunked { Form::Chunk } else { Form::Raw };
        let now = self.shared.hands.now();
        for number in 0..count {
            let after = Ms(u64::from(number).saturating_mul(1000) / u64::from(per_s.max(1)));
            // ours: above what servers count to, so that it never goes back.
            let text = Bytes::from(text::progress(token, 1_000_000 + u64::from(number)));
            let first = vec![Then::Sent(spot.clone(), why.clone(), text.clone())];
            let entry = Entry::part(self.stream(), form, body::event(&text));
            self.known.outbox.push(Entry { ready: Ready::At(now.plus(after)), first, ..entry });
        }
    }

    fn ready(&mut self, plan: &Plan, spot: &Spot, (message, text): (Option<&Message>, &Bytes)) -> Ready {
        let hands = &self.shared.hands;
        if let Some(hold) = plan.hold {
            let says = hands::says("s2c", message);
            let (number, due) = hands.hold((&self.known.line, Way::Down), spot, hold, (says, text));
            return Ready::Held(number, due);
        }
        if let Some(delay) = plan.delay {
            return Ready::At(hands::due(&mut self.known.delays, hands.now(), delay));
        }
        if plan.is_swapped { Ready::AfterNext } else { Ready::Now }
    }

    /// Nothing passes any more; what comes is recorded.
    pub(in crate::proxy::http) fn mute(&mut self) {
        self.known.is_muted = true;
        self.known.outbox.clear();
    }

    /// The bytes with which the client gets this message as the end of the answer of an exchange;
    /// none, where what has passed already leaves no room for it.
    pub(in crate::proxy::http) fn last_words(&self, stream: u64, text: &Bytes) -> Bytes {
        let is_first = self.exchanges.oldest().is_some_and(|exchange| exchange.stream == stream);
        if !is_first {
            return Bytes::new();
        }
        if !self.is_begun || !self.known.is_head_out {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                text.len()
            );
            return [head.as_bytes(), text].concat().into();
        }
        let is_own = matches!(self.treatment, Treatment::Events | Treatment::OwnChunks);
        if !self.is_event_stream || !(is_own || !self.is_chunked || self.decoder.is_between_chunks()) {
            return Bytes::new();
        }
        let event = own_chunk(&body::event(text), self.is_chunked);
        let end: &[u8] = if self.is_chunked { b"0\r\n\r\n" } else { b"" };
        [&*event, end].concat().into()
    }

    /// Carries out what was told, and returns what passes now.
    pub(super) fn flush(&mut self) -> Bytes {
        self.known.is_active |= self.shared.hands.is_active();
        self.run_errands();
        let now = self.shared.hands.now();
        if self.known.outbox.has_held_due(now) {
            self.shared.hands.release_due();
            self.run_errands();
        }
        if self.known.line.is_cut() {
            self.mute();
        }
        if self.known.is_muted {
            self.known.outbox.clear();
            return Bytes::new();
        }
        if self.known.outbox.has_brakes() {
            let armed = self.shared.hands.armed();
            self.known.outbox.keep_brakes(|rule| armed.contains(&rule));
        }
        let current = self.stream();
        let mut out = BytesMut::new();
        for entry in self.known.outbox.take(now) {
            for then in entry.first {
                self.shared.hands.then(&self.known.line, then);
            }
            self.known.is_head_out |= entry.stream == current && !entry.bytes.is_empty();
            out.extend_from_slice(&self.framed(entry.form, &entry.bytes));
            self.known.out.extend(entry.tickets);
            self.known.then.extend(entry.then);
            if self.known.then.iter().any(|then| matches!(then, Then::Cut(..))) {
                self.known.outbox.clear();
                self.known.is_muted = true;
                break;
            }
        }
        out.freeze()
    }

    /// Bytes as they are on the wire.
    fn framed(&mut self, form: Form, bytes: &Bytes) -> Bytes {
        match (form, &mut self.known.gzip) {
            (Form::Raw, _) | (Form::End, None) => bytes.clone(),
            (Form::Chunk, None) => own_chunk(bytes, true),
            (Form::Chunk, Some(gzip)) => {
                // Writing to memory cannot fail.
                let _ = gzip.write_all(bytes).and_then(|()| gzip.flush());
                own_chunk(&std::mem::take(gzip.get_mut()), true)
            }
            (Form::End, Some(_)) => {
                let rest = self.known.gzip.take().and_then(|gzip| gzip.finish().ok()).unwrap_or_default();
                [&*own_chunk(&rest, true), bytes].concat().into()
            }
        }
    }

    fn run_errands(&mut self) {
        for errand in self.known.line.errands(Way::Down) {
            match errand {
                Errand::Fate(number, Fate::Pass(text)) => {
                    let outbox = &mut self.known.outbox;
                    let bytes = outbox.held(number).zip(text).map(|(entry, text)| entry.shape.with(&text));
                    outbox.release(number, bytes);
                }
                Errand::Fate(number, Fate::Drop) => drop(self.known.outbox.take_held(number)),
                Errand::Fate(number, Fate::Until(due)) => {
                    if let Some(entry) = self.known.outbox.held(number) {
                        entry.ready = Ready::Held(number, due);
                    }
                }
                Errand::Send(stream, text) => self.known.sends.push((stream, text)),
                Errand::Forget => {
                    self.shared.hands.lose(&self.known.line, Some(Way::Down));
                    self.known.outbox.clear();
                }
                Errand::Fate(_, Fate::Answer(..)) | Errand::Look | Errand::Close => {}
            }
        }
        self.begin_to_cut();
        if !matches!(self.treatment, Treatment::Events) || self.known.sends.is_empty() {
            return;
        }
        let (here, form) = (self.stream(), if self.is_chunked { Form::Chunk } else { Form::Raw });
        for (stream, text) in std::mem::take(&mut self.known.sends) {
            if Some(stream) == here {
                self.known.outbox.push(Entry::part(here, form, body::event(&text)));
            }
        }
    }
}

/// One answer with several messages: an event stream, where a body could hold but one.
fn as_stream(head: &Bytes, text: &Bytes, more: &[Bytes]) -> Bytes {
    let head = body::with_field(head, "Content-Length", None);
    let head = body::with_field(&head, "Content-Type", Some(headers::EVENT_STREAM));
    let head = body::with_field(&head, "Transfer-Encoding", Some("chunked"));
    let mut out = BytesMut::from(&*head);
    for text in std::iter::once(text).chain(more) {
        out.extend_from_slice(&own_chunk(&body::event(text), true));
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out.freeze()
}
