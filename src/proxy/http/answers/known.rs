//! Answers after the first order: each message is known before it passes, and what a person wants
//! done with it is done.

mod messages;

use std::io::Write;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Answers, Treatment, own_chunk};
use crate::command::Effect;
use crate::command::book::OpenCall;
use crate::command::message::Message;
use crate::event::tape::Ticket;
use crate::event::{Close, Dir, What};
use crate::proxy::http::answer::OwnAnswer;
use crate::proxy::http::exchanges::Exchange;
use crate::proxy::http::forward::Forward;
use crate::proxy::http::hands::body::{self, Shape};
use crate::proxy::http::hands::line::{Errand, Fate, Line, Way};
use crate::proxy::http::hands::outbox::{Entry, Form, Outbox, Ready};
use crate::proxy::http::hands::plan::{OnAnswer, Plan};
use crate::proxy::http::hands::{self, Spot, Then, Why};
use crate::spec::headers;
use crate::time::Mono;
use crate::wire::http1::Head;
use crate::wire::sse::{EVENT_LIMIT_BYTES, SseDecoder};

/// What is known and done after the first order.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the connection or its answer"
)]
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
    pub(super) fn pass_answer(&mut self, head: Bytes, raw: &Bytes, text: &Bytes) {
        let whole: Bytes = [head.clone(), raw.clone()].concat().into();
        let Some(message) = Message::read(text) else {
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
