//! An order that a tap understands to members.

use super::order::{Given, Order, Said, pointer_text};
use super::verbs::Verb;
use super::{
    Answer, Cancel, ClientGets, Command, Cut, CutAt, Effect, Flow, Key, RaceOrder, Rate, Rule, Side, Times,
    Which,
};
use crate::filter::Filter;
use crate::time::Ms;

/// Members as they are gathered.
struct Members(Vec<Said>);

impl Members {
    fn add(&mut self, name: &str, value: Given) {
        self.0.push(Said { name: name.to_owned(), value, at: 0 });
    }

    fn text(&mut self, name: &str, text: &str) {
        self.add(name, Given::Text(text.to_owned()));
    }

    fn whole(&mut self, name: &str, number: impl Into<i128>) {
        self.add(name, Given::Whole(number.into()));
    }

    fn count(&mut self, name: &str, number: usize) {
        self.whole(name, u64::try_from(number).unwrap_or(u64::MAX));
    }

    /// Left out when it is none.
    fn span(&mut self, name: &str, span: Ms) {
        if span != Ms(0) {
            self.whole(name, span.0);
        }
    }

    /// Left out when it is not so.
    fn flag(&mut self, name: &str, is_so: bool) {
        if is_so {
            self.add(name, Given::Flag(true));
        }
    }

    fn which(&mut self, which: Which) {
        match which {
            Which::One(number) => self.whole("which", number),
            Which::All => self.text("which", "all"),
        }
    }

    fn filter(&mut self, name: &str, filter: &Filter) {
        self.text(name, &filter.to_string());
    }
}

/// The order in writing, whatever door it came through.
pub(super) fn order(command: &Command) -> Order {
    let mut members = Members(Vec::new());
    let m = &mut members;
    let name = match command {
        Command::Arm(rule) => {
            let mut order = self::rule(rule);
            if order.verb.waits == super::verbs::Waits::IfNext {
                let when = Said { name: "when".to_owned(), value: Given::Text("next".to_owned()), at: 0 };
                order.members.insert(0, when);
            }
            return order;
        }
        Command::Disarm(which) => {
            m.which(*which);
            "disarm"
        }
        Command::Cancel { on, cancel } => {
            m.filter("on", on);
            self::cancel(m, cancel);
            "cancel"
        }
        Command::Disconnect { on, cut } => {
            if !on.is_empty() {
                m.filter("on", on);
            }
            self::cut(m, *cut);
            "disconnect"
        }
        Command::Process(process) => process.name(),
        Command::Retry { on, retry } => {
            m.filter("on", on);
            match retry.key {
                Key::Same => {}
                Key::New => m.text("key", "new"),
                Key::None => m.text("key", "none"),
            }
            if let Some(arguments) = &retry.arguments {
                m.text("arguments", arguments);
            }
            m.flag("same_id", retry.has_same_id);
            m.flag("sure", retry.is_sure);
            "retry"
        }
        Command::Send { to, text, stream } => {
            m.text("to", side(*to));
            if let Some(stream) = stream {
                m.whole("stream", *stream);
            }
            m.text("text", text);
            "send"
        }
        Command::Release { which, in_reverse, after } => {
            m.which(*which);
            m.flag("reverse", *in_reverse);
            if let Some(after) = after {
                m.filter("after", after);
            }
            "release"
        }
        Command::Edit { held, text } => {
            m.whole("held", *held);
            m.text("text", text);
            "edit"
        }
        Command::Drop(Which::One(held)) => {
            m.whole("held", *held);
            "drop"
        }
        Command::Drop(Which::All) => {
            m.text("held", "all");
            "drop"
        }
        Command::AnswerHeld { held, answer } => {
            m.whole("held", *held);
            self::answer(m, answer);
            "answer"
        }
        Command::Extend { held, by } => {
            m.whole("held", *held);
            m.whole("more", by.0);
            "extend"
        }
        Command::Flow(Flow::PassThrough) => "flow",
        Command::Flow(Flow::Bounded(limit)) => {
            m.count("bounded", *limit);
            "flow"
        }
        Command::Status => "status",
    };
    written(name, members)
}

/// A rule in writing.
pub(super) fn rule(rule: &Rule) -> Order {
    let mut members = Members(Vec::new());
    let m = &mut members;
    if let Some(name) = &rule.name {
        m.text("name", name);
    }
    if !rule.on.is_empty() {
        m.filter("on", &rule.on);
    }
    self::effect(m, &rule.effect);
    if rule.skip > 0 {
        m.whole("skip", rule.skip);
    }
    match rule.times {
        Times::Only(1) => {}
        Times::Only(times) => m.whole("times", times),
        Times::Always => m.text("times", "always"),
    }
    // Exactly one is what holds when nothing is said.
    if rule.chance < 1.0 {
        m.add("chance", Given::Real(rule.chance));
    }
    if let Some(seed) = rule.seed {
        m.whole("seed", seed);
    }
    written(rule.effect.name(), members)
}

fn effect(m: &mut Members, effect: &Effect) {
    match effect {
        Effect::Hold { limit: Some(limit) } => m.whole("limit", limit.0),
        Effect::Duplicate { copies } if *copies != 2 => m.whole("copies", *copies),
        Effect::Hold { .. }
        | Effect::Drop
        | Effect::Duplicate { .. }
        | Effect::Swap
        | Effect::Compress
        | Effect::Process(_) => {}
        Effect::Edit { set } => {
            let sets = set.iter().map(|(pointer, json)| format!("{}={json}", pointer_text(pointer)));
            m.add("set", Given::List(sets.collect()));
        }
        Effect::Delay { ms, jitter } => {
            m.whole("ms", ms.0);
            m.span("jitter", *jitter);
        }
        Effect::Throttle(Rate::Bytes(bytes)) => m.whole("bytes", *bytes),
        Effect::Throttle(Rate::Messages(messages)) => m.whole("messages", *messages),
        Effect::Slice { bytes, gap } => {
            m.count("bytes", *bytes);
            m.span("gap", *gap);
        }
        Effect::Buffer { bytes, ms } => {
            m.count("bytes", *bytes);
            m.whole("ms", ms.0);
        }
        Effect::Header { name, value } => {
            m.text("field", name);
            if let Some(value) = value {
                m.text("value", value);
            }
        }
        Effect::Answer(answer) => self::answer(m, answer),
        Effect::Spoil(spoil) => m.text("how", spoil.name()),
        Effect::Cancel(cancel) => self::cancel(m, cancel),
        Effect::Disconnect { cut, at } => {
            self::cut(m, *cut);
            match at {
                CutAt::Now => {}
                CutAt::AfterEvents(events) => m.whole("after_messages", *events),
                CutAt::AfterBytes(bytes) => m.whole("after_bytes", *bytes),
                CutAt::BeforeFinal => m.text("at", "before-final"),
                CutAt::MidEvent => m.text("at", "mid-event"),
            }
        }
        Effect::Flood { per_s, count } => {
            m.whole("per_s", *per_s);
            m.whole("count", *count);
        }
        Effect::Race(RaceOrder::CancelFirst { margin }) => {
            m.text("first", "cancel");
            m.span("margin", *margin);
        }
        Effect::Race(RaceOrder::AnswerFirst { margin }) => {
            m.text("first", "answer");
            m.span("margin", *margin);
        }
    }
}

fn answer(m: &mut Members, answer: &Answer) {
    match answer {
        Answer::Error { code, message } => {
            m.whole("error", *code);
            m.text("message", message);
        }
        Answer::Result(json) => m.text("result", json),
        Answer::Status(status) => m.whole("status", *status),
        Answer::Malformed => m.flag("malformed", true),
        Answer::Oversized(bytes) => m.count("oversized", *bytes),
    }
}

fn cancel(m: &mut Members, cancel: &Cancel) {
    match cancel.client_gets {
        ClientGets::Nothing => {}
        ClientGets::Error => m.text("client", "error"),
        ClientGets::Reset => m.text("client", "reset"),
    }
    if let Some(reason) = &cancel.reason {
        m.text("reason", reason);
    }
}

fn cut(m: &mut Members, cut: Cut) {
    if let Some(one) = cut.side {
        m.text("side", side(one));
    }
    m.flag("reset", cut.is_reset);
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

fn written(name: &str, members: Members) -> Order {
    let verb = Verb::find(name).unwrap_or_else(|| unreachable!("every order has a verb: {name}"));
    Order { verb, members: members.0 }
}
