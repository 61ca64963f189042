//! One message of an answer passes: with another text, in pieces, not at all, or with its
//! connection cut.

use bytes::{Bytes, BytesMut};

use super::Found;
use crate::command::book::OpenCall;
use crate::command::{Answer, Cut, CutAt, Spoil, text};
use crate::event::{Close, Dir, What};
use crate::proxy::http::answer::OwnAnswer;
use crate::proxy::http::answers::{Answers, own_chunk};
use crate::proxy::http::hands::body::{self, Shape};
use crate::proxy::http::hands::orders::{cut_order, cut_words};
use crate::proxy::http::hands::outbox::{Entry, Form, Ready};
use crate::proxy::http::hands::plan::{OnAnswer, Plan};
use crate::proxy::http::hands::{Spot, Then, Why};
use crate::proxy::http::heads;
use crate::spec::headers;
use crate::time::Ms;

impl Answers {
    pub(super) fn carry_out(
        &mut self,
        mut plan: Plan,
        found: Found<'_>,
        (shape, form, raw): (Shape, Form, Bytes),
    ) {
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
        let bytes = Answers::bytes_of(&plan, &shape, (&raw, changed.as_ref(), &text), &more);
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
    pub(super) fn push_cut(&mut self, bytes: Bytes, form: Form, (cut, spot, why): (Cut, Spot, Why)) {
        let then = vec![Then::Cut(cut_order(cut), spot, why.with(cut_words(cut)))];
        let stream = self.stream();
        self.known.outbox.push(Entry { form, then, ..Entry::raw(stream, bytes) });
    }

    /// What stands in place of the server's answer: a text, or a whole answer of HTTP.
    fn replacement(
        &self,
        answer: &Answer,
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
    pub(super) fn begin_flood(&mut self, spot: &Spot, call: Option<&OpenCall>) {
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
