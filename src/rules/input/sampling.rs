//! Sampling: what a model is asked (SAM-01..05).

use std::borrow::Cow;
use std::collections::HashSet;

use super::{asked, asks, say, words};
use crate::model::{ScopeIdx, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::wire::json::Value;

const CREATE: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

/// Connections whose clients are asked what they can do. ours: told once, so the first ones suffice.
const CONNECTIONS_LIMIT: usize = 4096;

pub(super) fn rules(book: &mut Book) {
    book.rule("SAM-01", &asked(CREATE), incomplete);
    book.rule("SAM-02", &asked(CREATE), mixed_results);
    book.rule("SAM-03", &asked(CREATE), unanswered_use);
    book.rule("SAM-04", &asked(CREATE), undeclared_context);
    let first = ["server/discover", "tools/list", "tools/call", "prompts/get", "resources/read"];
    let when: Vec<On> =
        first.map(On::RequestOf).into_iter().chain([On::Sight(SightKind::InputRequired)]).collect();
    book.rule("SAM-05", &when, Deprecated::default());
}

fn incomplete(case: &Case<'_>, out: &mut Out<'_>) {
    for ask in asks(case, CREATE) {
        let member = |name: &str| ask.params.and_then(|params| params.get(name));
        let lack = if !member("messages").is_some_and(Value::is_array) {
            "messages"
        } else if member("maxTokens").and_then(Value::integer).is_none() {
            "a whole number of maxTokens"
        } else {
            continue;
        };
        say(case, out, &ask.key, &format!("{} lacks {lack}", words(case, &ask.key)));
    }
}

/// Messages with their role and blocks; content is one block or a list.
fn messages(params: Option<Value<'_>>) -> Vec<(Cow<'_, str>, Vec<Value<'_>>)> {
    let messages = params.and_then(|params| params.get("messages")).into_iter().flat_map(Value::items);
    messages
        .map(|message| {
            let role = message.get("role").and_then(Value::text).unwrap_or_default();
            let content = message.get("content");
            let blocks = match content {
                Some(list) if list.is_array() => list.items().collect(),
                block => block.into_iter().collect(),
            };
            (role, blocks)
        })
        .collect()
}

fn is_block(block: Value<'_>, kind: &str) -> bool {
    block.get("type").is_some_and(|value| value.is_text(kind))
}

fn mixed_results(case: &Case<'_>, out: &mut Out<'_>) {
    for ask in asks(case, CREATE) {
        let is_mixed = |(role, blocks): &(Cow<'_, str>, Vec<Value<'_>>)| {
            let results = blocks.iter().filter(|block| is_block(**block, "tool_result")).count();
            role == "user" && results > 0 && results < blocks.len()
        };
        if let Some(at) = messages(ask.params).iter().position(is_mixed) {
            let nth = at + 1;
            let sentence =
                format!("{}: message {nth} mixes tool results with other blocks", words(case, &ask.key));
            say(case, out, &ask.key, &sentence);
        }
    }
}

fn unanswered_use(case: &Case<'_>, out: &mut Out<'_>) {
    for ask in asks(case, CREATE) {
        if let Some((nth, id)) = first_unanswered(&messages(ask.params)) {
            let id = short(&id);
            let sentence = format!(
                "{}: the tool use {id:?} of message {nth} has no result in the next one",
                words(case, &ask.key)
            );
            say(case, out, &ask.key, &sentence);
        }
    }
}

/// The first tool use without a result in the message after it: which message, and its id.
fn first_unanswered<'a>(messages: &[(Cow<'a, str>, Vec<Value<'a>>)]) -> Option<(usize, Cow<'a, str>)> {
    for (at, (_, blocks)) in messages.iter().enumerate().filter(|(_, (role, _))| role == "assistant") {
        let next = messages.get(at + 1).filter(|(role, _)| role == "user");
        let answered: HashSet<Cow<'_, str>> = next
            .into_iter()
            .flat_map(|(_, blocks)| blocks)
            .filter(|block| is_block(**block, "tool_result"))
            .filter_map(|block| block.get("toolUseId")?.text())
            .collect();
        let uses = blocks.iter().filter(|block| is_block(**block, "tool_use"));
        let id = uses.filter_map(|block| block.get("id")?.text()).find(|id| !answered.contains(id));
        if let Some(id) = id {
            return Some((at + 1, id));
        }
    }
    None
}

fn undeclared_context(case: &Case<'_>, out: &mut Out<'_>) {
    for ask in asks(case, CREATE) {
        let Some(context) = ask.params.and_then(|params| params.get("includeContext")) else { continue };
        let is_wide = ["thisServer", "allServers"].iter().any(|wide| context.is_text(wide));
        let Some(declared) = case.client_capabilities().filter(|_| is_wide) else { continue };
        if declared.at(&["sampling", "context"]).is_none() {
            let context = context.raw();
            let sentence = format!(
                "{} wants the context {context}, which the client does not offer",
                words(case, &ask.key)
            );
            say(case, out, &ask.key, &sentence);
        }
    }
}

/// Connections whose client has been looked at.
#[derive(Debug, Default)]
struct Deprecated {
    seen: HashSet<(ScopeIdx, Option<u64>)>,
}

impl Look for Deprecated {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if matches!(case.what(), Sight::InputRequired) {
            for (method, word) in [(CREATE, "sampling"), (ROOTS, "roots")] {
                if !asks(case, method).is_empty() {
                    out.gather(case, (case.seen.scope, "server", word), |_| {
                        format!("the server asks for {word}")
                    });
                }
            }
            return;
        }
        if self.seen.len() >= CONNECTIONS_LIMIT || !self.seen.insert((case.seen.scope, case.seen.conn)) {
            return;
        }
        let Some(declared) = case.client_capabilities() else { return };
        for word in ["sampling", "roots"].into_iter().filter(|word| declared.get(word).is_some()) {
            out.gather(case, (case.seen.scope, "client", word), |_| format!("the client declares {word}"));
        }
    }
}
