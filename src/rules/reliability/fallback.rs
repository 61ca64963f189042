//! Falling back to the handshake of earlier eras only where the operator allows it (REL-07).

use hashbrown::HashMap;

use crate::model::{Call, CallIdx, CallState, ScopeIdx};
use crate::rules::Blame;
use crate::rules::book::{Book, On};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::spec::codes;

pub(super) fn rules(book: &mut Book) {
    let mut probes: HashMap<ScopeIdx, CallIdx> = HashMap::new();
    let when = [On::RequestOf("server/discover"), On::RequestOf("initialize")];
    book.rule("REL-07", &when, move |case: &Case<'_>, out: &mut Out<'_>| {
        let (Some(call), Some(idx)) = (case.call(), case.seen.call) else { return };
        // A modern probe over HTTP belongs to no session; the handshake begins one.
        let place = if call.stream.is_some() { ScopeIdx(0) } else { call.scope };
        if case.model.text(call.method) == "server/discover" {
            probes.insert(place, idx);
            return;
        }
        let probe = probes.get(&place).and_then(|idx| Some((*idx, case.model.call(*idx)?)));
        let Some((probe, _)) = probe.filter(|(_, probe)| is_ambiguous(probe)) else { return };
        let names = names(case, call);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if case.policy.may_be_legacy(&names) == Some(false) {
            let server = names.first().copied().unwrap_or("this server");
            let sentence = format!(
                "{} followed a probe that had no clear answer, and {server} is not among the servers that may be of an earlier era",
                case.subject()
            );
            out.draft(case).and_call(case.model, probe).blame(Blame::Client).say(out, sentence);
        }
    });
}

/// A probe that does not tell the era of the server: anything but a result, or an error that only a
/// modern server gives.
fn is_ambiguous(probe: &Call) -> bool {
    match probe.state {
        CallState::AnsweredOk | CallState::InputRequired => false,
        CallState::AnsweredError => !matches!(
            probe.error_code,
            Some(
                codes::HEADER_MISMATCH
                    | codes::MISSING_REQUIRED_CLIENT_CAPABILITY
                    | codes::UNSUPPORTED_PROTOCOL_VERSION
            )
        ),
        _ => true,
    }
}

/// What the server may be called in a policy: its command, or where it is reached.
fn names(case: &Case<'_>, call: &Call) -> Vec<String> {
    let scope = case.model.scope(call.scope);
    let command = scope.and_then(|scope| scope.process.command).map(|name| case.model.text(name).to_owned());
    let head = case.exchange().and_then(|exchange| exchange.head());
    let host = head.and_then(|head| head.headers.get("host"));
    let url = host.zip(head).map(|(host, head)| format!("http://{host}{}", head.path));
    command.into_iter().chain(url).chain(host.map(str::to_owned)).collect()
}
