//! How the peers name themselves (MET-03..05, MET-17).

use std::collections::HashSet;

use super::required::{has_version, is_bound};
use crate::model::ScopeIdx;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::codes;
use crate::spec::meta;
use crate::wire::json::Value;

pub(super) fn rules(book: &mut Book) {
    book.rule("MET-03", &[On::Request, On::Result], malformed);
    book.rule("MET-04", &[On::Request], Anonymous { is_client: true, told: HashSet::new() });
    book.rule("MET-05", &[On::Result], Anonymous { is_client: false, told: HashSet::new() });
    book.rule("MET-17", &[On::Error], refused_for_name);
}

/// An object with a name and a version, both strings.
fn is_identity(info: Value<'_>) -> bool {
    ["name", "version"].iter().all(|name| info.get(name).is_some_and(|text| text.text().is_some()))
}

fn malformed(case: &Case<'_>, out: &mut Out<'_>) {
    let name = if case.is_from_client() { meta::CLIENT_INFO } else { meta::SERVER_INFO };
    let Some(info) = case.meta(name).filter(|info| !is_identity(*info)) else { return };
    let (what, info) = (name.rsplit('/').next().unwrap_or(name), short(info.raw()));
    out.gather(case, (case.seen.scope, name), |times| {
        format!("{} with a {what} that lacks name or version; last: {info}", count(times, "message"))
    });
}

/// Peers that do not say who they are, each told once.
struct Anonymous {
    is_client: bool,
    told: HashSet<ScopeIdx>,
}

impl Look for Anonymous {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if self.told.contains(&case.seen.scope) {
            return;
        }
        let (side, name, is_due) = if self.is_client {
            ("client", meta::CLIENT_INFO, is_bound(case) && has_version(case))
        } else {
            let is_modern = case.result().is_some_and(|result| result.get("resultType").is_some());
            ("server", meta::SERVER_INFO, case.is_from_server() && is_modern)
        };
        if is_due && case.meta(name).is_none() {
            self.told.insert(case.seen.scope);
            out.say(case, format!("the {side} does not say who it is, first on {}", case.subject()));
        }
    }
}

fn refused_for_name(case: &Case<'_>, out: &mut Out<'_>) {
    if case.code() != Some(codes::INVALID_PARAMS) || !case.is_from_server() {
        return;
    }
    let message = case.error().and_then(|error| error.get("message")?.text());
    let Some(message) = message.filter(|message| message.contains("clientInfo")) else { return };
    let Some(sent) = case.request_params().and_then(|params| params.get("_meta")) else { return };
    let has_required = sent.get(meta::PROTOCOL_VERSION).is_some_and(|version| version.text().is_some())
        && sent.get(meta::CLIENT_CAPABILITIES).is_some_and(Value::is_object);
    if has_required && sent.get(meta::CLIENT_INFO).is_none() {
        let sentence = format!("{} has all it needs and was refused: {}", case.subject(), short(&message));
        out.say(case, sentence);
    }
}
