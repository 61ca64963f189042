//! What the rules that met one message come to.

use bytes::Bytes;

use super::outbox::Brake;
use super::{Hands, Spot, Why};
use crate::command::engine::Decision;
use crate::command::{Answer, Cancel, Cut, CutAt, Effect, RaceOrder, Spoil, text};
use crate::event::Dir;
use crate::time::Ms;

/// Something that is done to the answer of a call.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::proxy::http) enum OnAnswer {
    /// It is made wrong.
    Spoil(Spoil),
    /// It is cut. What is left of the count that the moment names.
    Cut(Cut, CutAt),
    /// Progress follows that nobody asked for.
    Flood(u32, u32),
    /// It is put in an order with a cancel.
    Race(RaceOrder),
    /// It passes slowly.
    Brake(u64, Brake),
}

impl OnAnswer {
    /// The name of its effect.
    pub(in crate::proxy::http) fn name(&self) -> &'static str {
        match self {
            OnAnswer::Spoil(_) => "spoil",
            OnAnswer::Cut(..) => "disconnect",
            OnAnswer::Flood(..) => "flood",
            OnAnswer::Race(_) => "race",
            OnAnswer::Brake(_, Brake::Rate(_)) => "throttle",
            OnAnswer::Brake(_, Brake::Gather(..)) => "buffer",
        }
    }
}

/// What is to be done to one message.
#[derive(Debug, Default)]
pub(in crate::proxy::http) struct Plan {
    /// It waits for a person: the rule, and the limit.
    pub(in crate::proxy::http) hold: Option<(u64, Option<Ms>)>,
    /// It does not pass.
    pub(in crate::proxy::http) is_dropped: bool,
    /// It passes this often more, and why.
    pub(in crate::proxy::http) copies: Vec<Why>,
    /// It passes after the next.
    pub(in crate::proxy::http) is_swapped: bool,
    /// It passes with this text.
    pub(in crate::proxy::http) text: Option<Bytes>,
    /// It passes later: the rule, and by how much.
    pub(in crate::proxy::http) delay: Option<(u64, Ms)>,
    /// It passes in pieces.
    pub(in crate::proxy::http) slice: Option<(usize, Ms)>,
    /// Fields of its head that are set or removed.
    pub(in crate::proxy::http) fields: Vec<(String, Option<String>)>,
    /// Its body passes compressed.
    pub(in crate::proxy::http) is_compressed: bool,
    /// It is answered, or replaced.
    pub(in crate::proxy::http) answer: Option<(Answer, Why)>,
    /// Its call is given up.
    pub(in crate::proxy::http) cancel: Option<(Cancel, Why)>,
    /// What is done to the answer of its call.
    pub(in crate::proxy::http) on_answer: Vec<(OnAnswer, Why)>,
}

impl Hands {
    /// What these decisions come to for a message with this text. What happens at once is told on
    /// the tape.
    pub(in crate::proxy::http) fn plan(
        &self,
        dir: Dir,
        spot: &Spot,
        decisions: Vec<Decision>,
        original: &Bytes,
    ) -> Plan {
        let mut plan = Plan::default();
        for decision in decisions {
            let why = Why::rule(&decision);
            let name = decision.effect.name();
            let tell = |words: &str| {
                let why = if words.is_empty() { why.clone() } else { why.with(words) };
                self.tell(Dir::Tap, name, spot, &why, None);
            };
            let (rule, draw) = (decision.rule, decision.draw);
            match decision.effect {
                Effect::Hold { limit } => {
                    tell("");
                    plan.hold = Some((rule, limit));
                }
                Effect::Drop => {
                    tell("");
                    plan.is_dropped = true;
                }
                Effect::Duplicate { copies } => {
                    (1..copies.max(2)).for_each(|_| plan.copies.push(why.clone()));
                }
                Effect::Swap => {
                    tell("");
                    plan.is_swapped = true;
                }
                Effect::Edit { set } => {
                    let before = plan.text.as_ref().unwrap_or(original);
                    match text::edited(before, &set) {
                        Ok(edited) => {
                            self.tell(dir, name, spot, &why, Some(edited.clone()));
                            plan.text = Some(edited);
                        }
                        Err(error) => tell(&format!("not done: {error}")),
                    }
                }
                Effect::Delay { ms, jitter } => {
                    let ms = jittered(ms, jitter, draw);
                    tell(&format!("{} ms", ms.0));
                    plan.delay = Some((rule, ms));
                }
                Effect::Throttle(rate) => {
                    tell("until it is disarmed");
                    plan.on_answer.push((OnAnswer::Brake(rule, Brake::Rate(rate)), why));
                }
                Effect::Buffer { bytes, ms } => {
                    tell("until it is disarmed");
                    plan.on_answer.push((OnAnswer::Brake(rule, Brake::Gather(bytes, ms)), why));
                }
                Effect::Slice { bytes, gap } => {
                    tell("");
                    plan.slice = Some((bytes, gap));
                }
                Effect::Header { name: field, value } => {
                    tell(&field);
                    plan.fields.push((field, value));
                }
                Effect::Compress => {
                    tell("");
                    plan.is_compressed = true;
                }
                Effect::Answer(answer) => plan.answer = Some((answer, why)),
                Effect::Spoil(spoil) => plan.on_answer.push((OnAnswer::Spoil(spoil), why)),
                Effect::Cancel(cancel) => plan.cancel = Some((cancel, why)),
                Effect::Disconnect { cut, at } => plan.on_answer.push((OnAnswer::Cut(cut, at), why)),
                Effect::Flood { per_s, count } => {
                    plan.on_answer.push((OnAnswer::Flood(per_s, count), why));
                }
                Effect::Race(order) => plan.on_answer.push((OnAnswer::Race(order), why)),
                Effect::Process(_) => tell("not done: the server's process is not the tap's"),
            }
        }
        plan
    }
}

impl Plan {
    /// The cut in place of the message, if there is one.
    pub(in crate::proxy::http) fn cut_now(&mut self) -> Option<(Cut, Why)> {
        let is_now = |(what, _): &(OnAnswer, Why)| matches!(what, OnAnswer::Cut(_, CutAt::Now));
        let at = self.on_answer.iter().position(is_now)?;
        match self.on_answer.remove(at) {
            (OnAnswer::Cut(cut, _), why) => Some((cut, why)),
            _ => None,
        }
    }
}

/// A delay with its share of chance.
fn jittered(ms: Ms, jitter: Ms, draw: u64) -> Ms {
    let spread = jitter.0.saturating_mul(2).saturating_add(1);
    Ms(ms.0.saturating_add(draw % spread).saturating_sub(jitter.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_stays_within_its_bounds() {
        let all: Vec<u64> = (0..100).map(|draw| jittered(Ms(50), Ms(10), draw).0).collect();
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&40), Some(&60)));
        assert_eq!(jittered(Ms(5), Ms(10), 0), Ms(0));
        assert_eq!(jittered(Ms(5), Ms(0), 77), Ms(5));
    }
}
