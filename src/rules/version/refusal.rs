//! A version that the server does not speak (VER-01..04).

use std::collections::HashMap;

use super::{CHANNELS, Channel, strings, version_of};
use crate::model::CallIdx;
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::codes::UNSUPPORTED_PROTOCOL_VERSION;
use crate::time::Mono;
use crate::wire::json::Value;

pub(super) fn rules(book: &mut Book) {
    book.rule("VER-01", &[On::Error], no_data);
    book.rule("VER-02", &[On::Error], other_status);
    book.rule("VER-03", &[On::Error], contradiction);
    book.rule("VER-04", &[On::Error, On::Request], Insisting::default());
}

pub(super) fn is_refusal(case: &Case<'_>) -> bool {
    case.code() == Some(UNSUPPORTED_PROTOCOL_VERSION) && case.is_from_server()
}

fn data<'a>(case: &Case<'a>, name: &str) -> Option<Value<'a>> {
    case.error()?.get("data")?.get(name)
}

/// The versions that a refusal offers.
pub(super) fn supported(case: &Case<'_>) -> Option<Vec<String>> {
    data(case, "supported").and_then(strings)
}

fn no_data(case: &Case<'_>, out: &mut Out<'_>) {
    if !is_refusal(case) {
        return;
    }
    let has_requested = data(case, "requested").is_some_and(|version| version.text().is_some());
    let lacks = match (supported(case).is_some(), has_requested) {
        (true, true) => return,
        (false, true) => "the versions that it supports",
        (true, false) => "the version that was asked for",
        (false, false) => "the versions that it supports and the one that was asked for",
    };
    out.say(case, format!("the version of {} was refused without {lacks}", case.subject()));
}

fn other_status(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = case.exchange().filter(|_| is_refusal(case)) else { return };
    let Some(status) = exchange.status().filter(|status| *status != 400) else { return };
    // What has begun as an event stream has its status.
    let severity = if exchange.is_event_stream() { Severity::Warning } else { Severity::Error };
    let sentence = format!("the version of {} was refused with status {status}", case.subject());
    out.draft(case).at_most(severity).say(out, sentence);
}

fn contradiction(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(asked) = case.request().and_then(version_of).filter(|_| is_refusal(case)) else { return };
    let header = case.exchange().and_then(|exchange| exchange.headers().get("mcp-protocol-version"));
    let requested = data(case, "requested").and_then(Value::text);
    if let Some(requested) = requested.filter(|text| **text != *asked && header != Some(&**text)) {
        let sentence = format!(
            "{} asked for {} and was told that it had asked for {}",
            case.subject(),
            short(&asked),
            short(&requested)
        );
        out.say(case, sentence);
    } else if supported(case).is_some_and(|list| list.contains(&asked)) {
        let sentence =
            format!("{} was refused for {}, which the refusal offers", case.subject(), short(&asked));
        out.say(case, sentence);
    }
}

/// What a client was told last.
struct Told {
    supported: Vec<String>,
    asked: String,
    at: Mono,
    call: CallIdx,
}

/// Clients that go on asking for what they cannot get.
#[derive(Default)]
struct Insisting {
    told: HashMap<Channel, Told>,
}

impl Look for Insisting {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(channel) = Channel::of(case) else { return };
        if is_refusal(case) {
            let told = supported(case).zip(case.request().and_then(version_of)).zip(case.seen.call);
            let Some(((supported, asked), call)) = told.filter(|((list, _), _)| !list.is_empty()) else {
                return;
            };
            if self.told.len() >= CHANNELS {
                self.told.clear();
            }
            let at = case.row().and_then(|row| row.out).unwrap_or(case.seen.at);
            self.told.insert(channel, Told { supported, asked, at, call });
            return;
        }
        let Some(told) = self.told.get(&channel).filter(|_| case.is_from_client()) else { return };
        let Some(asks) = case.body().and_then(version_of) else { return };
        if told.supported.contains(&asks) {
            self.told.remove(&channel);
            return;
        }
        // Requests of the same version may have been under way.
        let may_have_crossed = asks == told.asked && case.seen.at.ns_since(told.at) <= case.window_ns();
        if may_have_crossed {
            return;
        }
        let (subject, before) = (case.subject(), case.name(told.call));
        let draft = out.draft(case).and_call(case.model, told.call);
        draft.gather(out, channel, |times| {
            format!(
                "{} for a version that the refusal of {before} did not offer; last: {subject} for {}",
                count(times, "request"),
                short(&asks)
            )
        });
    }
}
