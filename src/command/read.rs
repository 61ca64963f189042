//! Members to an order that a tap understands.

use super::order::{Known, Order, Value, Wrong};
use super::verbs::{RULE, Waits};
use super::{
    Answer, Cancel, ClientGets, Command, Cut, CutAt, Effect, Flow, Key, Process, RaceOrder, Rate, Retry,
    Rule, Side, Spoil, Times, Which,
};
use crate::time::Ms;

/// What is answered in the server's place where nobody says it. // ours: of the codes for servers
const ANSWERED: &str = "answered by midwire";

/// What an order means.
pub(super) fn command(order: &Order) -> Result<Command, Wrong> {
    let known = Known::new(order)?;
    match known.verb.waits {
        Waits::Always => rule_of(&known).map(Command::Arm),
        Waits::UnlessHeld if known.get("held").is_none() => rule_of(&known).map(Command::Arm),
        Waits::UnlessHeld => match known.first_of(&rule_names()) {
            Some((name, at)) => {
                let why = format!("`{name}` is for a rule, and `held` says that it is none");
                Err(Wrong { at: Some(at), why })
            }
            None => to_held(&known),
        },
        Waits::IfNext => at_once_or_rule(&known),
        Waits::Never => at_once(&known),
    }
}

/// What an order means as a fault of a recipe: it waits whatever its verb.
pub(super) fn rule(order: &Order) -> Result<Rule, Wrong> {
    let known = Known::new(order)?;
    if let Some((name, at)) = known.first_of(&["when", "held"]) {
        return Err(Wrong {
            at: Some(at),
            why: format!("`{name}`: a fault always waits for messages; leave it out"),
        });
    }
    rule_of(&known)
}

fn rule_names() -> Vec<&'static str> {
    RULE.iter().map(|member| member.name).collect()
}

fn rule_of(known: &Known) -> Result<Rule, Wrong> {
    let chance = match known.get("chance") {
        Some(Value::Share(chance)) => *chance,
        _ => 1.0,
    };
    let times = match known.get("times") {
        Some(Value::Times(times)) => *times,
        _ => Times::Only(1),
    };
    Ok(Rule {
        name: known.text("name"),
        on: known.filter("on").unwrap_or_default(),
        skip: known.whole("skip").unwrap_or(0),
        times,
        chance,
        seed: known.whole("seed"),
        effect: effect(known)?,
    })
}

fn effect(known: &Known) -> Result<Effect, Wrong> {
    Ok(match known.verb.name {
        "hold" => Effect::Hold { limit: known.span("limit") },
        "drop" => Effect::Drop,
        "duplicate" => Effect::Duplicate { copies: known.whole("copies").unwrap_or(2) },
        "swap" => Effect::Swap,
        "edit" => match known.get("set") {
            Some(Value::Sets(set)) if known.get("text").is_none() => Effect::Edit { set: set.clone() },
            Some(_) => return Err(known.wrong("text", "is for a held message; a rule takes `set`")),
            None => return Err(known.lacks("`set`, such as set='/params/x=1', or `held` and `text`")),
        },
        "delay" => Effect::Delay {
            ms: known.span("ms").ok_or_else(|| known.lacks("`ms`"))?,
            jitter: known.span("jitter").unwrap_or_default(),
        },
        "throttle" => Effect::Throttle(rate(known)?),
        "slice" => Effect::Slice {
            bytes: known.whole("bytes").ok_or_else(|| known.lacks("`bytes`"))?,
            gap: known.span("gap").unwrap_or_default(),
        },
        "buffer" => Effect::Buffer {
            bytes: known.whole("bytes").unwrap_or(1 << 16),
            ms: known.span("ms").unwrap_or(Ms(1000)),
        },
        "header" => header(known)?,
        "compress" => Effect::Compress,
        "answer" => Effect::Answer(answer(known)?),
        "spoil" => Effect::Spoil(spoil(known)?),
        "cancel" => Effect::Cancel(cancel(known)),
        "disconnect" => Effect::Disconnect { cut: cut(known), at: cut_at(known)? },
        "flood" => Effect::Flood {
            per_s: known.whole("per_s").unwrap_or(100),
            count: known.whole("count").unwrap_or(100),
        },
        "race" => {
            let margin = known.span("margin").unwrap_or_default();
            match known.choice("first") {
                Some("cancel") => Effect::Race(RaceOrder::CancelFirst { margin }),
                Some(_) => Effect::Race(RaceOrder::AnswerFirst { margin }),
                None => return Err(known.lacks("`first=cancel` or `first=answer`")),
            }
        }
        name => match process(name) {
            Some(process) => Effect::Process(process),
            None => return Err(Wrong::whole(format!("`{name}` is no rule: it waits for nothing"))),
        },
    })
}

fn to_held(known: &Known) -> Result<Command, Wrong> {
    let held = known.whole("held").unwrap_or_default();
    Ok(match known.verb.name {
        "drop" => Command::Drop(known.which("held").unwrap_or(Which::All)),
        "answer" => Command::AnswerHeld { held, answer: answer(known)? },
        _ if known.get("set").is_some() => {
            return Err(known.wrong("set", "is for a rule; a held message takes `text`"));
        }
        _ => {
            let text = known.text("text").ok_or_else(|| known.lacks("`text` with `held`"))?;
            Command::Edit { held, text }
        }
    })
}

fn at_once_or_rule(known: &Known) -> Result<Command, Wrong> {
    let name = known.verb.name;
    let mut only_rules = rule_names();
    // What says which calls are open means the same for both; a process has no calls to pick.
    only_rules.retain(|member| *member != "on" || process(name).is_some());
    only_rules.extend(["at", "after_messages", "after_bytes"]);
    let of_rule = known.first_of(&only_rules);
    match (known.choice("when"), of_rule) {
        (Some("now"), Some((member, at))) => {
            let why = format!("`{member}` is for a rule: leave out when=now");
            return Err(Wrong { at: Some(at), why });
        }
        (Some("next"), _) | (_, Some(_)) => return rule_of(known).map(Command::Arm),
        _ => {}
    }
    Ok(match name {
        "cancel" => {
            let on = known.filter("on");
            let on = on.ok_or_else(|| known.lacks("`on`: which open calls, such as on='id:7'"))?;
            Command::Cancel { on, cancel: cancel(known) }
        }
        "disconnect" => Command::Disconnect { on: known.filter("on").unwrap_or_default(), cut: cut(known) },
        _ => match process(name) {
            Some(process) => Command::Process(process),
            None => return at_once(known),
        },
    })
}

fn at_once(known: &Known) -> Result<Command, Wrong> {
    let which = known.which("which");
    Ok(match known.verb.name {
        "retry" => {
            let on = known.filter("on");
            let on = on.ok_or_else(|| known.lacks("`on`: which call, such as on='id:7'"))?;
            let arguments = known.text("arguments");
            if arguments.as_ref().is_some_and(|text| !text.starts_with('{')) {
                return Err(known.wrong("arguments", "is a JSON object"));
            }
            let key = match known.choice("key") {
                Some("new") => Key::New,
                Some("none") => Key::None,
                _ => Key::Same,
            };
            let (has_same_id, is_sure) = (known.flag("same_id"), known.flag("sure"));
            Command::Retry { on, retry: Retry { key, arguments, has_same_id, is_sure } }
        }
        "send" => {
            let to = match known.choice("to") {
                Some("client") => Side::Client,
                Some(_) => Side::Server,
                None => return Err(known.lacks("`to=server` or `to=client`")),
            };
            let text = known.text("text").ok_or_else(|| known.lacks("`text`"))?;
            Command::Send { to, text, stream: known.whole("stream") }
        }
        "release" => Command::Release {
            which: which.unwrap_or(Which::All),
            in_reverse: known.flag("reverse"),
            after: known.filter("after"),
        },
        "extend" => Command::Extend {
            held: known.whole("held").ok_or_else(|| known.lacks("`held`"))?,
            by: known.span("more").ok_or_else(|| known.lacks("`more`"))?,
        },
        "disarm" => Command::Disarm(which.ok_or_else(|| known.lacks("a number, or all"))?),
        "flow" => Command::Flow(known.whole("bounded").map_or(Flow::PassThrough, Flow::Bounded)),
        _ => Command::Status,
    })
}

fn process(name: &str) -> Option<Process> {
    let all = [Process::Kill, Process::Stop, Process::Continue, Process::CloseStdin, Process::Restart];
    all.into_iter().find(|process| process.name() == name)
}

fn rate(known: &Known) -> Result<Rate, Wrong> {
    match known.only_of(&["bytes", "messages"])? {
        Some("bytes") => Ok(Rate::Bytes(known.whole("bytes").unwrap_or(0))),
        Some(_) => Ok(Rate::Messages(known.whole("messages").unwrap_or(0))),
        None => Err(known.lacks("`bytes` or `messages` a second")),
    }
}

fn header(known: &Known) -> Result<Effect, Wrong> {
    let name = known.text("field").ok_or_else(|| known.lacks("`field`"))?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err(known.wrong("field", "is no name of a header field"));
    }
    let value = known.text("value");
    if value.as_ref().is_some_and(|value| value.chars().any(|c| c.is_control() && c != '\t')) {
        return Err(known.wrong("value", "holds a control character"));
    }
    Ok(Effect::Header { name, value })
}

fn answer(known: &Known) -> Result<Answer, Wrong> {
    let kinds = ["error", "result", "status", "malformed", "oversized"];
    let kind = known.only_of(&kinds)?;
    if kind != Some("error") && known.get("message").is_some() {
        return Err(known.wrong("message", "goes with `error`"));
    }
    Ok(match kind {
        Some("error") => Answer::Error {
            code: known.whole("error").unwrap_or_default(),
            message: known.text("message").unwrap_or_else(|| ANSWERED.to_owned()),
        },
        Some("result") => Answer::Result(known.text("result").unwrap_or_default()),
        Some("status") => Answer::Status(known.whole("status").unwrap_or(500)),
        Some("malformed") if known.flag("malformed") => Answer::Malformed,
        Some("oversized") => Answer::Oversized(known.whole("oversized").unwrap_or(1)),
        _ => return Err(known.lacks("one of error, result, status, malformed, oversized")),
    })
}

fn spoil(known: &Known) -> Result<Spoil, Wrong> {
    let how = known
        .choice("how")
        .ok_or_else(|| known.lacks(&format!("`how`: {}", super::verbs::one_of(super::verbs::SPOILS))))?;
    let spoil = Spoil::ALL.into_iter().find(|spoil| spoil.name() == how);
    spoil.ok_or_else(|| known.wrong("how", "is not known"))
}

fn cancel(known: &Known) -> Cancel {
    let client_gets = match known.choice("client") {
        Some("error") => ClientGets::Error,
        Some("reset") => ClientGets::Reset,
        _ => ClientGets::Nothing,
    };
    Cancel { reason: known.text("reason"), client_gets }
}

fn cut(known: &Known) -> Cut {
    let side = match known.choice("side") {
        Some("client") => Some(Side::Client),
        Some("server") => Some(Side::Server),
        _ => None,
    };
    Cut { side, is_reset: known.flag("reset") }
}

fn cut_at(known: &Known) -> Result<CutAt, Wrong> {
    Ok(match known.only_of(&["at", "after_messages", "after_bytes"])? {
        Some("after_messages") => CutAt::AfterEvents(known.whole("after_messages").unwrap_or(1)),
        Some("after_bytes") => CutAt::AfterBytes(known.whole("after_bytes").unwrap_or(1)),
        _ => match known.choice("at") {
            Some("before-final") => CutAt::BeforeFinal,
            Some("mid-event") => CutAt::MidEvent,
            _ => CutAt::Now,
        },
    })
}
