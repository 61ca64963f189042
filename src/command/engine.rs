//! Which rules meet a message: decided by the message, the open calls and a seed alone.

use super::book::{Book, OpenCall};
use super::message::{Message, Passing, Place};
use super::{ArmedRule, By, Effect, Rule, Times, Which};
use crate::wire::jsonrpc::Kind;

/// A rule that met a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Number of the rule.
    pub rule: u64,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Who armed it.
    pub by: By,
    /// How often it has been applied, this time included.
    pub hit: u64,
    /// What is to be done.
    pub effect: Effect,
    /// The random number of this application; the same for the same seed, rule and hit.
    pub draw: u64,
    /// The seed that it comes from.
    pub seed: u64,
}

/// The rules that are armed, and what is known of the path.
#[derive(Debug, Default)]
pub struct Engine {
    rules: Vec<Waiting>,
    armed_before: u64,
    seed: u64,
    book: Book,
}

#[derive(Debug)]
struct Waiting {
    armed: ArmedRule,
    seed: u64,
    /// Messages that its filter picked.
    picked: u64,
}

impl Engine {
    /// No rules; `seed`: from which those without a seed of their own draw.
    #[must_use]
    pub fn new(seed: u64) -> Engine {
        Engine { seed, ..Engine::default() }
    }

    /// A rule waits from now on. Returns its number.
    pub fn arm(&mut self, rule: Rule, by: By) -> u64 {
        self.armed_before += 1;
        let number = self.armed_before;
        let seed = rule.seed.unwrap_or_else(|| mix(self.seed ^ mix(number)));
        self.rules.push(Waiting { armed: ArmedRule { number, rule, hits: 0, by }, seed, picked: 0 });
        number
    }

    /// It waits no longer. Returns the numbers of the rules that are gone.
    pub fn disarm(&mut self, which: Which) -> Vec<u64> {
        let is_meant = |waiting: &Waiting| match which {
            Which::One(number) => waiting.armed.number == number,
            Which::All => true,
        };
        self.rules.extract_if(.., |waiting| is_meant(waiting)).map(|gone| gone.armed.number).collect()
    }

    /// Rules that are armed, oldest first.
    pub fn armed(&self) -> impl Iterator<Item = &ArmedRule> {
        self.rules.iter().map(|waiting| &waiting.armed)
    }

    /// What is known of the calls.
    #[must_use]
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The same, to note what a message does not say.
    pub fn book_mut(&mut self) -> &mut Book {
        &mut self.book
    }

    /// A message was read and has its place in the order. Notes it and says what is to be done with
    /// it: in the order in which the rules were armed, and all of it.
    pub fn see(&mut self, place: Place, message: &Message) -> Vec<Decision> {
        self.meet(place, message, |_| true).1
    }

    /// The same, by the rules alone whose effect is `wanted`; with the call that the message begins,
    /// belongs to or ends.
    pub fn meet(
        &mut self,
        place: Place,
        message: &Message,
        wanted: impl Fn(&Effect) -> bool,
    ) -> (Option<OpenCall>, Vec<Decision>) {
        let call = self.book.note(place, message).cloned();
        let len = message.text.len();
        let passing = Passing { place, message: Some(message), call: call.as_ref(), len };
        let decisions = self.decide(&passing, wanted);
        self.book.end(place, message);
        (call, decisions)
    }

    /// Something passes that is no message: a head, a body, a line that is none.
    pub fn see_other(&mut self, place: Place, len: usize) -> Vec<Decision> {
        self.meet_other(place, len, |_| true).1
    }

    /// The same, by the rules alone whose effect is `wanted`; with the newest call of its exchange.
    pub fn meet_other(
        &mut self,
        place: Place,
        len: usize,
        wanted: impl Fn(&Effect) -> bool,
    ) -> (Option<OpenCall>, Vec<Decision>) {
        let call = place.stream.and_then(|stream| {
            self.book.open().iter().rev().find(|call| call.stream == Some(stream)).cloned()
        });
        let decisions = self.decide(&Passing { place, message: None, call: call.as_ref(), len }, wanted);
        (call, decisions)
    }

    fn decide(&mut self, passing: &Passing<'_>, wanted: impl Fn(&Effect) -> bool) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for waiting in &mut self.rules {
            let rule = &waiting.armed.rule;
            if !wanted(&rule.effect) || !rule.effect.is_for(passing) || !rule.on.matches(passing) {
                continue;
            }
            waiting.picked += 1;
            let draw = mix(waiting.seed.wrapping_add(mix(waiting.picked)));
            if waiting.picked <= rule.skip || !happens(rule.chance, draw) {
                continue;
            }
            waiting.armed.hits += 1;
            decisions.push(Decision {
                rule: waiting.armed.number,
                name: rule.name.clone(),
                by: waiting.armed.by,
                hit: waiting.armed.hits,
                effect: rule.effect.clone(),
                draw: mix(draw),
                seed: waiting.seed,
            });
        }
        // An effect that lasts is there as long as its rule is.
        self.rules.retain(|waiting| match waiting.armed.rule.times {
            Times::Only(times) => waiting.armed.hits < times || waiting.armed.rule.effect.lasts(),
            Times::Always => true,
        });
        decisions
    }
}

impl Effect {
    /// It can be done to this at all. A race is of a call, which begins with its request: an answer
    /// that the filter picks as well is not another one.
    fn is_for(&self, passing: &Passing<'_>) -> bool {
        match self {
            Effect::Race(_) => passing.message.is_some_and(|message| message.kind == Kind::Request),
            _ => true,
        }
    }

    /// It goes on after the message that began it, until its rule is disarmed.
    #[must_use]
    pub fn lasts(&self) -> bool {
        matches!(self, Effect::Throttle(_) | Effect::Buffer { .. })
    }
}

/// Whether something of this likelihood happens at this draw.
fn happens(chance: f64, draw: u64) -> bool {
    // 53 bits are what a double holds exactly.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let share = (draw >> 11) as f64 / (1u64 << 53) as f64;
    share < chance
}

/// Spreads a number over all 64 bits (`SplitMix64`).
#[must_use]
pub fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::command::RaceOrder;
    use crate::event::{Dir, Transport};
    use crate::filter::Filter;
    use crate::time::Ms;

    const STDIO: Place = Place {
        dir: Dir::C2s,
        transport: Transport::Stdio,
        stream: None,
        conn: None,
        status: None,
        era: None,
    };
    const BACK: Place = Place { dir: Dir::S2c, ..STDIO };

    fn rule(on: &str, times: Times) -> Rule {
        let on = Filter::parse(on).unwrap();
        Rule { name: None, on, skip: 0, times, chance: 1.0, seed: None, effect: Effect::Drop }
    }

    fn message(text: &str) -> Message {
        Message::read(&Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    fn request(id: u32, tool: &str) -> Message {
        message(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","_meta":{{"progressToken":"t{id}"}}}}}}"#
        ))
    }

    #[test]
    fn an_answer_is_picked_by_what_its_call_is() {
        let cases = [
            ("kind:result tool:slow", vec![false, false, false, true, false]),
            ("kind:request tool:slow", vec![true, false, false, false, false]),
            ("kind:progress tool:slow", vec![false, false, true, false, false]),
            ("tool:quick", vec![false, true, false, false, true]),
            ("id:2", vec![false, true, false, false, true]),
            ("dir:s2c", vec![false, false, true, true, true]),
            ("slow", vec![true, false, true, true, false]),
            ("", vec![true; 5]),
        ];
        for (on, expected) in cases {
            let mut engine = Engine::new(1);
            engine.arm(rule(on, Times::Always), By::Ctl);
            let traffic = [
                (STDIO, request(1, "slow")),
                (STDIO, request(2, "quick")),
                (
                    BACK,
                    message(
                        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t1","progress":1}}"#,
                    ),
                ),
                (BACK, message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)),
                (BACK, message(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#)),
            ];
            let met: Vec<bool> =
                traffic.iter().map(|(place, message)| !engine.see(*place, message).is_empty()).collect();
            assert_eq!(met, expected, "{on}");
            assert!(engine.book().open().is_empty(), "{on}");
        }
    }

    #[test]
    fn rules_count_skip_and_go() {
        let mut engine = Engine::new(1);
        engine.arm(Rule { skip: 2, ..rule("kind:request", Times::Only(2)) }, By::Recipe);
        let hits: Vec<u64> = (0..6)
            .map(|id| engine.see(STDIO, &request(id, "x")).first().map_or(0, |decision| decision.hit))
            .collect();
        assert_eq!(hits, [0, 0, 1, 2, 0, 0]);
        assert_eq!(engine.armed().count(), 0);
    }

    #[test]
    fn a_race_is_of_a_call_and_not_of_its_messages() {
        let mut engine = Engine::new(1);
        let race = Effect::Race(RaceOrder::CancelFirst { margin: Ms(0) });
        engine.arm(Rule { effect: race, ..rule("tool:slow", Times::Only(2)) }, By::Ctl);
        let answer = |id| message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        let mut hits = Vec::new();
        for id in 0..3 {
            hits.push(engine.see(STDIO, &request(id, "slow")).len());
            hits.push(engine.see(BACK, &answer(id)).len());
        }
        assert_eq!(hits, [1, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn the_same_seed_meets_the_same_messages() {
        let meets = |seed: u64| -> Vec<(bool, u64)> {
            let mut engine = Engine::new(seed);
            engine.arm(Rule { chance: 0.3, ..rule("", Times::Always) }, By::Recipe);
            (0..2000)
                .map(|id| {
                    let met = engine.see(STDIO, &request(id, "x"));
                    (!met.is_empty(), met.first().map_or(0, |decision| decision.draw))
                })
                .collect()
        };
        assert_eq!(meets(7), meets(7));
        assert_ne!(meets(7), meets(8));
        let share = meets(7).iter().filter(|(met, _)| *met).count();
        assert!((500..700).contains(&share), "{share} of 2000");
    }

    #[test]
    fn an_id_means_one_call_on_each_stream() {
        let place = |dir, stream| Place { dir, transport: Transport::Http, stream: Some(stream), ..STDIO };
        let mut engine = Engine::new(1);
        engine.arm(rule("kind:result tool:slow", Times::Always), By::Ctl);
        engine.see(place(Dir::C2s, 1), &request(1, "slow"));
        engine.see(place(Dir::C2s, 2), &request(1, "quick"));
        let answer = message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(engine.see(place(Dir::S2c, 2), &answer).is_empty());
        assert_eq!(engine.see(place(Dir::S2c, 1), &answer).len(), 1);
    }
}
