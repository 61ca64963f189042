//! What a discovery says, and who keeps to it (VER-06..09).

use std::collections::HashMap;

use super::{strings, version_of};
use crate::model::{CallIdx, Capabilities, ScopeIdx};
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::codes::METHOD_NOT_FOUND;
use crate::spec::meta;
use crate::spec::methods::DISCOVER;
use crate::wire::json::Value;

pub(super) fn rules(book: &mut Book) {
    book.rule("VER-06", &[On::Result, On::Error], Missing::default());
    book.rule("VER-07", &[On::ResultOf(DISCOVER)], incomplete);
    book.rule("VER-08", &[On::ResultOf(DISCOVER)], own_version);
    book.rule("VER-09", &[On::Request, On::ResultOf(DISCOVER)], Unlisted::default());
}

/// Servers that are modern and know no discovery.
#[derive(Default)]
struct Missing {
    /// Discoveries that were refused as unknown.
    refused: HashMap<ScopeIdx, CallIdx>,
}

impl Look for Missing {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(idx) = case.seen.call.filter(|_| case.is_from_server()) else { return };
        if case.method() == DISCOVER && case.code() == Some(METHOD_NOT_FOUND) {
            self.refused.insert(case.seen.scope, idx);
        }
        if !case.speaks().modern {
            return;
        }
        if let Some(refused) = self.refused.remove(&case.seen.scope) {
            let sentence = format!("the server is a modern one and does not know {}", case.name(refused));
            out.draft(case).and_call(case.model, refused).say(out, sentence);
        }
    }
}

fn incomplete(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result() else { return };
    let is_text = |name| result.get(name).is_some_and(|text| text.text().is_some());
    let members = [
        ("supportedVersions", result.get("supportedVersions").and_then(strings).is_some()),
        ("capabilities", result.get("capabilities").is_some_and(Value::is_object)),
        ("resultType", is_text("resultType")),
        ("ttlMs", result.get("ttlMs").is_some_and(|ttl| ttl.number().is_some())),
        ("cacheScope", is_text("cacheScope")),
    ];
    let lacking: Vec<&str> = members.iter().filter(|(_, has)| !has).map(|(name, _)| *name).collect();
    if !lacking.is_empty() {
        out.say(case, format!("the result of {} lacks {}", case.subject(), lacking.join(", ")));
    }
}

fn own_version(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(asked) = case.request().and_then(version_of) else { return };
    let Some(listed) = case.result().and_then(|result| result.get("supportedVersions")).and_then(strings)
    else {
        return;
    };
    if !listed.contains(&asked) {
        let sentence = format!(
            "{} was answered under {}, which its result does not list",
            case.subject(),
            short(&asked)
        );
        out.say(case, sentence);
    }
}

/// Clients that ask for a version that the server did not list.
#[derive(Default)]
struct Unlisted {
    /// The version that was found listed last.
    fine: HashMap<ScopeIdx, String>,
}

impl Look for Unlisted {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        if case.result().is_some() {
            self.fine.remove(&case.seen.scope);
            return;
        }
        let Some(asked) = case.meta(meta::PROTOCOL_VERSION).filter(|_| case.is_from_client()) else {
            return;
        };
        if self.fine.get(&case.seen.scope).is_some_and(|fine| asked.is_text(fine)) {
            return;
        }
        let said = case.model.capabilities(case.seen.scope).and_then(Capabilities::discovered);
        let listed = said.and_then(|said| said.get("supportedVersions")).and_then(strings);
        let (Some(listed), Some(asked)) = (listed, asked.text()) else { return };
        if listed.iter().any(|version| *version == *asked) {
            self.fine.insert(case.seen.scope, asked.into_owned());
            return;
        }
        // A discovery asks; after a refusal VER-04 says it.
        let is_told = case.seen.call.is_some_and(|idx| out.findings.about("VER-04", idx).is_some());
        if case.method() == DISCOVER || is_told {
            return;
        }
        let subject = case.subject();
        out.gather(case, case.seen.scope, |times| {
            let requests = count(times, "request");
            format!(
                "{requests} for a version that the server did not list; last: {subject} for {}",
                short(&asked)
            )
        });
    }
}
