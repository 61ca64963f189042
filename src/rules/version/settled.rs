//! What the legacy handshake settles, and the ping of its sessions (VER-17, VER-18, VER-21).

use std::collections::HashMap;

use crate::event::Dir;
use crate::model::{CallIdx, CallState, ScopeIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::spec::era::Era;
use crate::spec::methods::INITIALIZE;
use crate::wire::json::Value;

const PING: &str = "ping";

pub(super) fn rules(book: &mut Book) {
    book.rule("VER-17", &[On::ResultOf(INITIALIZE)], incomplete);
    let traffic = [On::ResultOf(INITIALIZE), On::Request, On::Notification];
    book.rule_of_any_era("VER-18", &traffic, Strangers::default());
    let (ended, session_ended) = (On::Sight(SightKind::Ended), On::Sight(SightKind::SessionEnded));
    book.rule("VER-21", &[On::ResultOf(PING), On::ErrorOf(PING), ended, session_ended], ping);
}

fn incomplete(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result().filter(|_| case.is_from_server()) else { return };
    let is_text = |path: &[&str]| result.at(path).is_some_and(|text| text.text().is_some());
    let members = [
        ("protocolVersion", is_text(&["protocolVersion"])),
        ("capabilities", result.get("capabilities").is_some_and(Value::is_object)),
        ("serverInfo.name", is_text(&["serverInfo", "name"])),
        ("serverInfo.version", is_text(&["serverInfo", "version"])),
    ];
    let lacking: Vec<&str> = members.iter().filter(|(_, has)| !has).map(|(name, _)| *name).collect();
    if !lacking.is_empty() {
        out.say(case, format!("the result of {} lacks {}", case.subject(), lacking.join(", ")));
    }
}

/// Sessions under a version that their client cannot know.
#[derive(Default)]
struct Strangers {
    settled: HashMap<ScopeIdx, (CallIdx, String)>,
}

/// A client asks for the latest version that it speaks, and speaks older ones as a rule; a newer
/// one, or a name that is none, it does not.
fn is_strange(chosen: &str, asked: &str) -> bool {
    match (Era::from_name(chosen), Era::from_name(asked)) {
        _ if chosen == asked => false,
        (Some(chosen), Some(asked)) => chosen > asked,
        (None, Some(_)) => true,
        (_, None) => false,
    }
}

impl Look for Strangers {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let scope = case.seen.scope;
        if let Some(result) = case.result() {
            let asked = case.request_params().and_then(|params| params.get("protocolVersion")?.text());
            let chosen = result.get("protocolVersion").and_then(Value::text);
            if let (Some(idx), Some(asked), Some(chosen)) = (case.seen.call, asked, chosen)
                && is_strange(&chosen, &asked)
            {
                self.settled.insert(scope, (idx, chosen.into_owned()));
            }
            return;
        }
        if self.settled.is_empty() || !case.is_from_client() {
            return;
        }
        let Some((begin, chosen)) = self.settled.remove(&scope) else { return };
        // A new `initialize` tries again.
        if case.method() == INITIALIZE {
            return;
        }
        let sentence = format!(
            "the client went on under {}, which the server had chosen in answer to {}",
            short(&chosen),
            case.name(begin)
        );
        out.draft(case).and_call(case.model, begin).say(out, sentence);
    }
}

fn ping(case: &Case<'_>, out: &mut Out<'_>) {
    match case.what() {
        Sight::Ended { calls } | Sight::SessionEnded { calls } => ping_open(case, out, calls),
        _ => ping_answered(case, out),
    }
}

fn ping_answered(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call() else { return };
    let took_ns = case.seen.at.ns_since(call.started);
    if took_ns > case.policy.limits.ping.to_ns() {
        out.say(case, format!("{} was answered after {}", case.subject(), Case::ms(took_ns)));
        return;
    }
    let extra = case.result().and_then(|result| result.members().find(|(name, _)| name != "_meta"));
    if let Some((name, _)) = extra {
        out.say(case, format!("the answer to {} holds {}", case.subject(), short(&name)));
    }
}

/// Pings that were open for too long when the session or the recording ended.
fn ping_open(case: &Case<'_>, out: &mut Out<'_>, calls: &[CallIdx]) {
    for idx in calls {
        let Some(call) = case.model.call(*idx) else { continue };
        let waited_ns = case.seen.at.ns_since(call.started);
        let is_open = matches!(call.state, CallState::Unresolved | CallState::Lost);
        if !is_open || case.model.text(call.method) != PING || waited_ns <= case.policy.limits.ping.to_ns() {
            continue;
        }
        let blame = if call.sender == Dir::C2s { Blame::Server } else { Blame::Client };
        let sentence = format!("{} was not answered in {}", case.name(*idx), Case::ms(waited_ns));
        out.about(case.model, *idx).blame(blame).say(out, sentence);
    }
}

#[cfg(test)]
mod tests {
    use super::is_strange;

    #[test]
    fn a_version_is_strange_when_it_is_newer_than_asked_or_none() {
        let cases = [
            ("2025-11-25", "2025-11-25", false),
            ("2025-06-18", "2025-11-25", false),
            ("2024-11-05", "2025-11-25", false),
            ("2025-11-25", "2025-06-18", true),
            ("2026-07-28", "2025-11-25", true),
            ("1.0", "2025-11-25", true),
            ("1.0", "1.0", false),
            ("2025-11-25", "1.0", false),
        ];
        for (chosen, asked, want) in cases {
            assert_eq!(is_strange(chosen, asked), want, "{chosen} for {asked}");
        }
    }
}
