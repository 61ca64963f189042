//! What lies between the peers, and how they keep up (PRX-01..07, FLW-01..04).

use std::collections::HashMap;

use crate::rules::Blame;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::spec::{codes, headers, meta};
use crate::wire::json::Value;

/// Tools of one page that are compared. ours: a longer page is data, not a catalogue.
const TOOLS_LIMIT: usize = 4096;

pub(super) fn rules(book: &mut Book) {
    book.rule("PRX-06", &[On::Error], header_policy_of_old);
    book.rule("PRX-07", &[On::ResultOf("tools/list")], merged_names);
}

/// A refusal for header fields that the version of the request does not have.
fn header_policy_of_old(case: &Case<'_>, out: &mut Out<'_>) {
    let code = case.error().and_then(|error| error.get("code")?.integer());
    let Some(exchange) = case.exchange().filter(|_| code == Some(codes::HEADER_MISMATCH)) else { return };
    let fields = exchange.headers();
    let mirrors = fields.get(headers::METHOD).or_else(|| fields.get(headers::NAME)).is_some();
    // Where the body says otherwise, header and body do contradict each other.
    let is_modern_body =
        case.request_params().and_then(|params| params.at(&["_meta", meta::PROTOCOL_VERSION]));
    if mirrors && is_modern_body.is_none() {
        let sentence =
            format!("{} was refused for header fields that its version does not have", case.subject());
        out.draft(case).blame(Blame::Unknown).say(out, sentence);
    }
}

/// Two tools of one name that are not the same tool: lists of several servers put together.
fn merged_names(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(tools) = case.result().and_then(|result| result.get("tools")) else { return };
    let mut seen: HashMap<&str, Value<'_>> = HashMap::new();
    for tool in tools.items().take(TOOLS_LIMIT) {
        let Some(name) = tool.get("name").filter(|name| name.text().is_some()) else { continue };
        let Some(other) = seen.insert(name.raw(), tool) else { continue };
        let differs = |member: &str| tool.get(member).map(Value::raw) != other.get(member).map(Value::raw);
        if differs("inputSchema") || differs("description") {
            let name = short(&name.text().unwrap_or_default());
            let draft = out.draft(case).blame(Blame::Unknown);
            draft.gather(out, (case.seen.scope, &name), |_| {
                format!("the list holds two different tools of the name {name}")
            });
        }
    }
}
