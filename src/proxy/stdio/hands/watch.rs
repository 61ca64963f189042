//! What was decided about a call and waits for its answer, or for its cancel.

use super::fate::Fate;
use super::item::{Item, Then, Why, back};
use super::state::State;
use crate::command::book::OpenCall;
use crate::command::message::Message;
use crate::command::text;
use crate::command::{Cancel, Cut, CutAt, RaceOrder, Spoil};
use crate::event::Dir;
use crate::time::{Mono, Ms};
use crate::wire::jsonrpc::Id;

/// One decision about a call.
#[derive(Debug)]
pub(super) struct Watch {
    call: OpenCall,
    why: Why,
    what: Waits,
}

#[derive(Debug)]
enum Waits {
    /// The pipes are cut.
    Cut { cut: Cut, at: CutAt },
    /// The final answer is made wrong.
    Spoil(Spoil),
    /// Cancel and answer get an order.
    Race {
        order: RaceOrder,
        own_cancel: OwnCancel,
        /// The one of the two that waits for the other.
        parked: Option<Box<Item>>,
    },
}

/// The client's own cancel in a race.
#[derive(Debug, Clone, Copy)]
enum OwnCancel {
    /// It has not come.
    No,
    /// It is on its way.
    Coming,
    /// It was written then.
    Out(Mono),
}

impl Watch {
    pub(super) fn cut(call: OpenCall, cut: Cut, at: CutAt, why: Why) -> Watch {
        Watch { call, why, what: Waits::Cut { cut, at } }
    }

    pub(super) fn spoil(call: OpenCall, spoil: Spoil, why: Why) -> Watch {
        Watch { call, why, what: Waits::Spoil(spoil) }
    }

    pub(super) fn race(call: OpenCall, order: RaceOrder, why: Why) -> Watch {
        Watch { call, why, what: Waits::Race { order, own_cancel: OwnCancel::No, parked: None } }
    }

    /// The rule that it comes from.
    pub(super) fn rule(&self) -> Option<u64> {
        self.why.rule
    }

    pub(super) fn is_of(&self, rule: u64) -> bool {
        self.why.rule == Some(rule)
    }

    pub(super) fn is_of_call(&self, call: &OpenCall) -> bool {
        self.is_about(call.sender, &call.id)
    }

    /// What waits in it, and which way it goes.
    pub(super) fn parked(&self) -> Option<(Dir, &Item)> {
        let Waits::Race { order, parked: Some(item), .. } = &self.what else { return None };
        Some((parked_way(&self.call, *order), item))
    }

    pub(super) fn into_parked(self) -> Option<(Dir, Item)> {
        let Waits::Race { order, parked, .. } = self.what else { return None };
        parked.map(|item| (parked_way(&self.call, order), *item))
    }

    fn is_about(&self, sender: Dir, id: &Id) -> bool {
        self.call.sender == sender && self.call.id == *id
    }
}

/// Which way the one of a race goes that waits for the other.
fn parked_way(call: &OpenCall, order: RaceOrder) -> Dir {
    match order {
        RaceOrder::CancelFirst { .. } => back(call.sender),
        RaceOrder::AnswerFirst { .. } => call.sender,
    }
}

impl State {
    /// A message of a call has come: what was decided about the call is done to it.
    pub(super) fn apply_watches(
        &mut self,
        watches: Vec<Watch>,
        dir: Dir,
        message: &Message,
        call: &OpenCall,
        fate: &mut Fate,
    ) {
        for watch in watches {
            if !watch.is_about(call.sender, &call.id) {
                self.watches.push(watch);
            } else if dir == call.sender {
                self.before_answer(watch, message, fate);
            } else {
                self.at_answer(watch, dir, message, fate);
            }
        }
    }

    /// Something of the sender of the call: only its cancel matters.
    fn before_answer(&mut self, mut watch: Watch, message: &Message, fate: &mut Fate) {
        let Some(id) = message.cancels.clone() else {
            self.watches.push(watch);
            return;
        };
        let target = format!("id {}", watch.call.id);
        match &mut watch.what {
            Waits::Spoil(spoil @ Spoil::Late) if fate.passes => {
                let words = format!("{}: the cancel does not pass", spoil_words(*spoil));
                self.tell(&watch.why, "spoil", &target, &words);
                fate.passes = false;
            }
            Waits::Race { order: RaceOrder::CancelFirst { .. }, own_cancel, .. } => {
                *own_cancel = OwnCancel::Coming;
                fate.then.push(Then::CancelOut(id));
            }
            Waits::Race { order: RaceOrder::AnswerFirst { .. }, parked: parked @ None, .. }
                if fate.passes =>
            {
                *parked = Some(Box::new(fate.take_item(&target)));
                self.tell(&watch.why, "race", &target, "the cancel waits for the answer");
            }
            _ => {}
        }
        self.watches.push(watch);
    }

    /// Something of the answer.
    fn at_answer(&mut self, watch: Watch, dir: Dir, message: &Message, fate: &mut Fate) {
        let is_final = message.is_final();
        let Watch { call, why, what } = watch;
        match what {
            Waits::Cut { cut, at } => {
                let Some(at) = self.cut_at(fate, cut, at, is_final, &why) else { return };
                if is_final {
                    let target = format!("id {}", call.id);
                    self.tell(&why, "disconnect", &target, "not done: the answer ended before");
                } else {
                    self.watches.push(Watch { call, why, what: Waits::Cut { cut, at } });
                }
            }
            Waits::Spoil(spoil) if is_final => self.spoil(dir, fate, &call, spoil, &why),
            Waits::Race { order, own_cancel, parked } if is_final => {
                self.race(dir, fate, Race { call, order, own_cancel, parked, why });
            }
            what => self.watches.push(Watch { call, why, what }),
        }
    }

    /// One more message of the answer. `None`: the moment of the cut has come.
    pub(super) fn cut_at(
        &mut self,
        fate: &mut Fate,
        cut: Cut,
        at: CutAt,
        is_final: bool,
        why: &Why,
    ) -> Option<CutAt> {
        let len = fate.len() as u64;
        match at {
            CutAt::AfterEvents(left) if left > 1 => return Some(CutAt::AfterEvents(left - 1)),
            CutAt::AfterBytes(left) if left > len => return Some(CutAt::AfterBytes(left - len)),
            CutAt::BeforeFinal if !is_final => return Some(at),
            CutAt::AfterEvents(_) => {}
            CutAt::AfterBytes(left) => fate.cut_after = usize::try_from(left).ok().filter(|_| left < len),
            CutAt::MidEvent => fate.cut_after = Some(fate.len() / 2),
            CutAt::Now | CutAt::BeforeFinal => {
                fate.passes = false;
                self.cut(cut, why, "");
                return None;
            }
        }
        fate.then.push(Then::Cut(cut, why.clone()));
        None
    }

    /// A final answer is made wrong.
    pub(super) fn spoil(&mut self, dir: Dir, fate: &mut Fate, call: &OpenCall, spoil: Spoil, why: &Why) {
        let target = format!("id {}", call.id);
        let words = spoil_words(spoil);
        let follow = |fate: &mut Fate, text: &[u8]| {
            let item = Item::own(text, "spoil", &target, why, words);
            fate.then.push(Then::Pass(dir, Box::new(item), Ms(0)));
        };
        match spoil {
            Spoil::DuplicateFinal => {
                let body = fate.body.clone();
                follow(fate, &body);
            }
            Spoil::ProgressAfterFinal => {
                // Without a token there is no such progress; the id is what a confused server takes.
                let token = call.token.as_ref().unwrap_or(&call.id);
                follow(fate, text::progress(token, call.progress + 1).as_bytes());
            }
            Spoil::Late => {}
            Spoil::Truncate | Spoil::WrongId | Spoil::WrongIdType => match text::spoiled(&fate.body, spoil) {
                Some(spoiled) => fate.change(self, spoiled, "spoil", why, words),
                None => self.tell(why, "spoil", &target, "not done: the answer has no id"),
            },
        }
    }

    /// The final answer of a race has come.
    fn race(&mut self, dir: Dir, fate: &mut Fate, race: Race) {
        let Race { call, order, own_cancel, parked, why } = race;
        let target = format!("id {}", call.id);
        let text = text::cancelled(&call.id, Some("the race"));
        match order {
            RaceOrder::AnswerFirst { margin } => {
                let cancel = parked.unwrap_or_else(|| {
                    let words = "it follows the answer";
                    Box::new(Item::own(text.as_bytes(), "cancel", &target, &why, words))
                });
                self.tell(&why, "race", &target, "the answer passes first");
                fate.then.push(Then::Pass(call.sender, cancel, margin));
            }
            RaceOrder::CancelFirst { margin } if fate.passes => {
                self.tell(&why, "race", &target, "the answer waits for the cancel");
                let answer = fate.take_item(&target);
                match own_cancel {
                    OwnCancel::Out(out) => {
                        let waited = Ms(self.now().ns_since(out) / 1_000_000);
                        let delay = Ms(margin.0.saturating_sub(waited.0));
                        self.pass(dir, Item { delay, ..answer });
                    }
                    OwnCancel::Coming => {
                        let what = Waits::Race { order, own_cancel, parked: Some(Box::new(answer)) };
                        self.watches.push(Watch { call, why, what });
                    }
                    OwnCancel::No => {
                        let mut cancel = Item::own(text.as_bytes(), "cancel", &target, &why, "");
                        cancel.then.push(Then::Pass(dir, Box::new(answer), margin));
                        self.pass(call.sender, cancel);
                    }
                }
            }
            RaceOrder::CancelFirst { .. } => {}
        }
    }

    /// The client's own cancel is out: an answer that waited for it follows.
    pub(super) fn cancel_is_out(&mut self, id: &Id) {
        let now = self.now();
        let is_meant = |watch: &Watch| watch.call.id == *id && matches!(watch.what, Waits::Race { .. });
        let Some(at) = self.watches.iter().position(is_meant) else { return };
        let watch = self.watches.remove(at);
        let Waits::Race { order, parked, .. } = watch.what else { return };
        match (parked, order) {
            (Some(answer), RaceOrder::CancelFirst { margin }) => {
                self.pass(back(watch.call.sender), Item { delay: margin, ..*answer });
            }
            (parked, order) => {
                let what = Waits::Race { order, own_cancel: OwnCancel::Out(now), parked };
                self.watches.push(Watch { what, ..watch });
            }
        }
    }

    /// A call is given up as its sender would do it.
    pub(super) fn give_up(&mut self, call: &OpenCall, cancel: &Cancel, why: &Why) -> Result<(), String> {
        super::cancel::give_up(self, call, cancel, why)
    }
}

/// A race whose answer has come.
struct Race {
    call: OpenCall,
    order: RaceOrder,
    own_cancel: OwnCancel,
    parked: Option<Box<Item>>,
    why: Why,
}

fn spoil_words(spoil: Spoil) -> &'static str {
    match spoil {
        Spoil::Truncate => "truncated",
        Spoil::WrongId => "another id",
        Spoil::WrongIdType => "the other type of id",
        Spoil::DuplicateFinal => "a second time",
        Spoil::ProgressAfterFinal => "progress after the answer",
        Spoil::Late => "a late answer",
    }
}
