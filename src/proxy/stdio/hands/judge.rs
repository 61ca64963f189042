//! A line has come: what is done to it.

use bytes::Bytes;

use super::fate::Fate;
use super::item::{Begin, Flood, Item, Seen, Then, Why, back, place, target};
use super::state::State;
use super::watch::Watch;
use crate::command::book::OpenCall;
use crate::command::engine::Decision;
use crate::command::message::Message;
use crate::command::{Answer, Cut, CutAt, Effect, text};
use crate::event::Dir;
use crate::event::tape::Ticket;
use crate::proxy::hold::HOLD_LIMIT;
use crate::time::{Mono, Ms};
use crate::wire::jsonrpc::Kind;

impl State {
    /// A whole line was read and has its places on the tape.
    pub(super) fn take_line(&mut self, dir: Dir, line: &Bytes, tickets: Vec<Ticket>) {
        let mut fate = Fate::new(line, tickets);
        let place = place(dir);
        let Some(message) = Message::read(&fate.body) else {
            let decisions = self.engine.see_other(place, fate.body.len());
            self.decide(dir, &mut fate, decisions);
            self.carry_out(dir, fate);
            return;
        };
        let call = self.engine.book().call_of(place, &message).cloned();
        if self.is_for_nobody(dir, &message, call.as_ref()) {
            return;
        }
        if let (Some(unknown), Some(id), None) = (&mut self.unknown, &message.id, &call)
            && message.is_final()
        {
            unknown.push((back(dir), id.clone()));
        }
        let decisions = self.engine.see(place, &message);
        let call = match message.kind {
            Kind::Request => self.engine.book().open().last().cloned(),
            _ => call,
        };
        let earlier = std::mem::take(&mut self.watches);
        fate.seen = Some(Box::new(Seen { place, message, call }));
        self.decide(dir, &mut fate, decisions);
        let about = fate.seen.as_ref().and_then(|seen| Some((seen.message.clone(), seen.call.clone()?)));
        if let Some((message, call)) = about {
            self.apply_watches(earlier, dir, &message, &call, &mut fate);
        } else {
            self.watches.extend(earlier);
        }
        self.carry_out(dir, fate);
    }

    /// The answer to something that midwire asked, or to a call that has its answer already: it is
    /// on the tape and goes no further.
    fn is_for_nobody(&mut self, dir: Dir, message: &Message, call: Option<&OpenCall>) -> bool {
        let about = target(dir, Some(message), call);
        if call.is_some_and(|call| call.is_ours && call.sender != dir) {
            self.tell(&Why::own(), "swallow", &about, "the answer to a request of midwire's own");
            self.engine.book_mut().note(place(dir), message);
            self.engine.book_mut().end(place(dir), message);
            return true;
        }
        let is_meant = |(call, _): &&(OpenCall, Why)| {
            let is_final = message.is_final() && message.id.as_ref() == Some(&call.id);
            let is_progress = message.kind == Kind::Notification && message.token.is_some();
            call.sender != dir && (is_final || is_progress && message.token == call.token)
        };
        if call.is_some() {
            return false;
        }
        let Some(why) = self.swallowed.iter().find(is_meant).map(|(_, why)| why.clone()) else {
            return false;
        };
        self.tell(&why, "swallow", &about, "its call has been answered in this one's place");
        if message.is_final() {
            self.swallowed.retain(|entry| !is_meant(&entry));
        }
        true
    }

    /// Puts all that was decided into the fate.
    fn decide(&mut self, dir: Dir, fate: &mut Fate, decisions: Vec<Decision>) {
        for decision in decisions {
            let why = Why::met(&decision);
            let about = super::item::target_of(fate.seen.as_deref());
            let name = decision.effect.name();
            match decision.effect {
                Effect::Hold { limit } => fate.hold = Some((limit, why)),
                Effect::Drop => {
                    self.tell(&why, name, &about, "");
                    fate.passes = false;
                }
                Effect::Duplicate { copies } => {
                    fate.copies.extend((1..copies).map(|_| why.clone()));
                }
                Effect::Swap => {
                    self.tell(&why, name, &about, "it waits for the next");
                    fate.is_swapped = true;
                    fate.rules.extend(why.rule);
                }
                Effect::Edit { set } => match text::edited(&fate.body, &set) {
                    Ok(body) => fate.change(self, body, name, &why, ""),
                    Err(error) => self.tell(&why, name, &about, &format!("not done: {error}")),
                },
                Effect::Delay { ms, jitter } => {
                    let spread = decision.draw % (2 * jitter.0 + 1);
                    let delay = (ms.0 + spread).saturating_sub(jitter.0);
                    self.tell(&why, name, &about, &format!("{delay} ms"));
                    fate.delay = Ms(fate.delay.0.saturating_add(delay));
                    fate.rules.extend(why.rule);
                }
                Effect::Throttle(rate) => {
                    self.tell(&why, name, direction(dir), &format!("from {about} on"));
                    fate.begins.push(Begin::Throttle { rule: decision.rule, rate });
                }
                Effect::Buffer { bytes, ms } => {
                    self.tell(&why, name, direction(dir), &format!("from {about} on"));
                    fate.begins.push(Begin::Gather { rule: decision.rule, bytes, ms });
                }
                Effect::Slice { bytes, gap } => {
                    self.tell(&why, name, &about, &format!("{bytes} bytes every {} ms", gap.0));
                    fate.slice = Some((bytes.max(1), gap));
                }
                effect => self.decide_about_call(dir, fate, effect, &why),
            }
        }
    }

    /// Effects on the call of a message.
    fn decide_about_call(&mut self, dir: Dir, fate: &mut Fate, effect: Effect, why: &Why) {
        let name = effect.name();
        let about = super::item::target_of(fate.seen.as_deref());
        let call = fate.seen.as_ref().and_then(|seen| seen.call.clone());
        let is_final = fate.seen.as_ref().is_some_and(|seen| seen.message.is_final());
        match (effect, call) {
            (Effect::Disconnect { cut, at }, call) => self.disconnect(fate, cut, at, call, why),
            (Effect::Process(process), _) => fate.then.push(Then::Process(process, why.clone())),
            (Effect::Answer(answer), Some(call)) => self.answer(dir, fate, &call, &answer, why),
            (Effect::Spoil(spoil), Some(call)) if is_final => self.spoil(dir, fate, &call, spoil, why),
            (Effect::Spoil(spoil), Some(call)) => self.watches.push(Watch::spoil(call, spoil, why.clone())),
            (Effect::Race(order), Some(call)) if !is_final => {
                self.watches.push(Watch::race(call, order, why.clone()));
            }
            (Effect::Cancel(cancel), Some(call)) => {
                fate.then.push(Then::GiveUp(Box::new(call), cancel, why.clone()));
            }
            (Effect::Flood { per_s, count }, Some(call)) => fate.then.push(Then::Flood(Flood {
                dir: back(call.sender),
                token: call.token.clone().unwrap_or_else(|| call.id.clone()),
                target: about,
                left: count,
                gap_ns: 1_000_000_000 / u64::from(per_s.max(1)),
                next: Mono(0),
                value: call.progress,
                why: why.clone(),
            })),
            _ => self.tell(why, name, &about, "not done: it means nothing for this message"),
        }
    }

    fn disconnect(&mut self, fate: &mut Fate, cut: Cut, at: CutAt, call: Option<OpenCall>, why: &Why) {
        let is_final = fate.seen.as_ref().is_some_and(|seen| seen.message.is_final());
        let is_request = fate.seen.as_ref().is_some_and(|seen| seen.message.kind == Kind::Request);
        let about = call.as_ref().map(|call| why.about(&call.id));
        let why = about.as_ref().unwrap_or(why);
        match (at, call) {
            (CutAt::AfterEvents(0) | CutAt::AfterBytes(0), _) => {
                fate.then.push(Then::Cut(cut, why.clone()));
            }
            (CutAt::Now, _) => {
                self.cut_at(fate, cut, at, is_final, why);
            }
            (_, Some(call)) if is_request || !is_final => {
                self.watches.push(Watch::cut(call, cut, at, why.clone()));
            }
            // Nothing of this answer follows: it is the next one.
            (CutAt::BeforeFinal | CutAt::MidEvent, _) => {
                self.cut_at(fate, cut, at, true, why);
            }
            _ => fate.then.push(Then::Cut(cut, why.clone())),
        }
    }

    /// An answer in the place of the one that would have come, or of the one that has come.
    fn answer(&mut self, dir: Dir, fate: &mut Fate, call: &OpenCall, answer: &Answer, why: &Why) {
        let about = format!("id {}", call.id);
        let kind = fate.seen.as_ref().map(|seen| seen.message.kind);
        let Some(text) = text::answer(&call.id, answer) else {
            self.tell(why, "answer", &about, "not done: a status is of HTTP");
            return;
        };
        match kind {
            Some(Kind::Result | Kind::Error) => {
                fate.change(self, Bytes::from(text), "answer", why, "in place of the answer");
            }
            Some(Kind::Request) if fate.passes => {
                fate.passes = false;
                self.answer_for(dir, call, &text, why);
            }
            _ => self.tell(why, "answer", &about, "not done: it is no request and no answer"),
        }
    }

    /// Answers a call whose request went `dir` and never arrived.
    pub(super) fn answer_for(&mut self, dir: Dir, call: &OpenCall, text: &str, why: &Why) {
        let about = format!("id {}", call.id);
        let item = Item::own(text.as_bytes(), "answer", &about, why, "the request did not pass");
        let end = text::error(&call.id, text::OWN_CODE, "");
        if let Some(message) = Message::read(&Bytes::from(end)) {
            self.engine.book_mut().end(place(back(dir)), &message);
        }
        self.watches.retain(|watch| !watch.is_of_call(call));
        self.pass(back(dir), item);
    }

    /// The message goes its way, or waits.
    fn carry_out(&mut self, dir: Dir, mut fate: Fate) {
        if !fate.passes {
            return;
        }
        let about = super::item::target_of(fate.seen.as_deref());
        let (hold, copies) = (fate.hold.take(), std::mem::take(&mut fate.copies));
        let mut item = fate.take_item(&about);
        for why in copies {
            let event = why.inject("duplicate", &about, "", Some(item.bytes.clone()));
            let copy =
                Item { event: Some(event), ..Item::new(item.bytes.clone(), item.ends_line, about.clone()) };
            item.then.insert(0, Then::Pass(dir, Box::new(copy), Ms(0)));
        }
        match hold {
            Some((limit, why)) if !self.way(dir).is_closed() && !self.way(dir).is_finishing => {
                self.hold(dir, item, limit.unwrap_or(HOLD_LIMIT), &why);
            }
            _ => self.pass(dir, item),
        }
    }
}

fn direction(dir: Dir) -> &'static str {
    if dir == Dir::C2s { "direction c2s" } else { "direction s2c" }
}
