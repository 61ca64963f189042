//! `midwire ctl`: orders to a running tap, or to a reference server.

mod server;

use std::io::Write as _;

use anyhow::{anyhow, bail};
use serde_json::Value;

use super::args::steering::CtlArgs;
use super::{CLEAN, FINDINGS, say};
use crate::app::control::client::Client;
use crate::app::control::find;
use crate::command::verbs::{Verb, completions, explain};
use crate::command::{json, words};
use crate::report::harmless;

/// What a person may do who has said too little.
const USE: &str = "say which tap and what it is to do, such as `midwire ctl - status`; \
                   `midwire ctl verbs` lists the verbs, `midwire ls` the taps";

/// Gives one order and prints what comes of it.
pub(super) fn ctl(args: &CtlArgs) -> anyhow::Result<u8> {
    if let Some(socket) = &args.serve {
        return server::ctl(socket, &args.words);
    }
    let mut out = std::io::stdout().lock();
    if let Some(line) = &args.complete {
        for word in completions(line) {
            writeln!(out, "{word}")?;
        }
        return Ok(CLEAN);
    }
    let (tap, order) = match args.words.split_first() {
        Some((first, rest)) if first == "verbs" => {
            let only = match rest {
                [] => None,
                [name, ..] => Some(Verb::find(name).ok_or_else(|| anyhow!("no verb is called `{name}`"))?),
            };
            out.write_all(explain(only).as_bytes())?;
            return Ok(CLEAN);
        }
        Some((tap, order)) if !order.is_empty() => (tap, order),
        _ => bail!(USE),
    };
    let line = words::line_of(order);
    let command = words::parse(&line).map_err(|error| anyhow!("{error} in: {line}"))?;
    let socket = find::socket_of(tap)?;
    let mut client = Client::connect(&socket, "tap")?;
    let answer = client.order(&json::of_command(&command))?;
    let is_done = answer["ok"] == Value::Bool(true);
    if args.json {
        writeln!(out, "{}", harmless(&answer.to_string()))?;
    } else if is_done {
        tell(&answer, &mut out)?;
    } else {
        say(answer["error"].as_str().unwrap_or("refused"));
    }
    Ok(if is_done { CLEAN } else { FINDINGS })
}

/// What was done, in lines.
fn tell(answer: &Value, out: &mut impl std::io::Write) -> anyhow::Result<()> {
    for to in answer["to"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        writeln!(out, "done: {}", harmless(to))?;
    }
    if let Some(rule) = answer["rule"].as_u64() {
        writeln!(out, "rule {rule} is armed")?;
    }
    let Some(status) = answer.get("status") else { return Ok(()) };
    let list = |name: &str| status[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |of: &Value, name: &str| harmless(of[name].as_str().unwrap_or_default());
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap_or_default();
    for rule in list("rules") {
        let (hits, by) = (number(rule, "hits"), text(rule, "by"));
        writeln!(
            out,
            "rule {:3}  {} (done {hits} times, by {by})",
            number(rule, "number"),
            text(rule, "words")
        )?;
    }
    for held in list("held") {
        let (since, left) = (number(held, "held_ms"), number(held, "released_in_ms"));
        let says = text(held, "says");
        writeln!(out, "held {:3}  {says} (for {since} ms, released in {left} ms)", number(held, "number"))?;
    }
    for open in list("open") {
        let stream = open["stream"].as_u64().map(|stream| format!(" on stream {stream}"));
        writeln!(out, "open      {} {}{}", text(open, "id"), text(open, "says"), stream.unwrap_or_default())?;
    }
    if ["rules", "held", "open"].iter().all(|name| list(name).is_empty()) {
        writeln!(out, "nothing is armed, nothing is held, no call is open")?;
    }
    Ok(())
}
