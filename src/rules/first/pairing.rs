//! Ids: every answer to its request, every request its own id
//! (RPC-05..10, RPC-24, RPC-27, REL-19).

use crate::event::Dir;
use crate::model::{CallIdx, CallState, ScopeIdx, Sight};
use crate::rules::case::Case;
use crate::rules::{Blame, Judge, Severity};
use crate::spec::era::Era;

pub(in crate::rules) fn look(case: &Case<'_>, judge: &mut Judge) {
    match &case.seen.what {
        Sight::Request => server_request(case, judge),
        Sight::IdInFlight { other } => id_in_flight(case, judge, *other),
        Sight::IdAgain { earlier } => id_again(case, judge, *earlier),
        Sight::AnswerAgain => {
            let sentence = format!("{} was answered again", case.subject());
            if let Some(draft) = case.draft("RPC-10") {
                draft.gather(case, judge, case.seen.call, |_| sentence.clone());
            }
        }
        Sight::AnswerUnknown { id } => {
            let sentence = format!("an answer has the id {id}, which no request of the other side had");
            if let Some(draft) = case.draft("RPC-08") {
                let draft = if case.is_full() { draft } else { draft.at_most(Severity::Hint) };
                let at = draft.and_id(id.to_string()).find(case, judge, sentence);
                judge.causes.insert(case.seen.scope, at);
            }
        }
        Sight::AnswerOtherType { id } => {
            let sentence = format!("{} was answered with the id {id}", case.subject());
            if let Some(draft) = case.draft("RPC-09") {
                let at = draft.find(case, judge, sentence);
                judge.causes.insert(case.seen.scope, at);
            }
        }
        // A refusal may come before the request was read; one that comes as a success was read.
        Sight::AnswerNoId if case.call().is_some_and(|call| call.status == Some(200)) => {
            let sentence = format!("the error that answers {} has no id", case.subject());
            if let Some(draft) = case.draft("RPC-27") {
                draft.find(case, judge, sentence);
            }
        }
        Sight::Answered => gateway(case, judge),
        _ => {}
    }
}

fn server_request(case: &Case<'_>, judge: &mut Judge) {
    if case.call().is_none_or(|call| call.sender != Dir::S2c) {
        return;
    }
    let sentence = format!("the server sent a request of its own, {}", case.subject());
    if let Some(draft) = case.draft("RPC-24") {
        let is_dual = case.scope().is_some_and(|scope| scope.negotiated.is_some());
        let draft = if is_dual { draft.at_most(Severity::Hint) } else { draft };
        draft.find(case, judge, sentence);
    }
}

/// Whether two HTTP requests are known to come from one client: by their connection.
fn is_one_client(case: &Case<'_>, other: CallIdx) -> bool {
    let conn = case.call().and_then(|call| call.conn);
    conn.is_some() && conn == case.model.call(other).and_then(|call| call.conn)
}

fn id_in_flight(case: &Case<'_>, judge: &mut Judge, other: CallIdx) {
    let sentence = format!("{} has the id of {}, which is still open", case.subject(), case.name(other));
    let is_modern = case.era().is_some_and(Era::is_modern);
    let draft = if is_modern {
        let on_stdio = case.draft("RPC-05");
        on_stdio.or_else(|| case.draft("RPC-06").filter(|_| is_one_client(case, other)))
    } else {
        case.draft("RPC-07").map(|draft| within_session(case, draft))
    };
    if let Some(draft) = draft {
        let at = draft.and_call(case.model, other).find(case, judge, sentence);
        judge.causes.insert(case.seen.scope, at);
    }
}

/// HTTP requests outside a session may come from several clients.
fn within_session(case: &Case<'_>, draft: crate::rules::case::Draft) -> crate::rules::case::Draft {
    if case.seen.scope == ScopeIdx(0) { draft.at_most(Severity::Hint) } else { draft }
}

fn id_again(case: &Case<'_>, judge: &mut Judge, earlier: CallIdx) {
    let Some(before) = case.model.call(earlier) else { return };
    if before.is_injected {
        return;
    }
    if case.era().is_some_and(Era::is_modern) {
        return;
    }
    let sentence = format!("{} has the id that {} had before", case.subject(), case.name(earlier));
    if let Some(draft) = case.draft("RPC-07") {
        within_session(case, draft).and_call(case.model, earlier).find(case, judge, sentence);
    }
}

/// Statuses that gateways give when they cannot reach the server or wait no longer.
fn gateway(case: &Case<'_>, judge: &mut Judge) {
    let Some(call) = case.call() else { return };
    let status = call.status.filter(|status| matches!(status, 502..=504));
    let (Some(status), CallState::AnsweredError, None) = (status, call.state, call.error_code) else {
        return;
    };
    let waited = Case::ms(case.seen.at.ns_since(call.started));
    let sentence =
        format!("{} was answered with status {status} and no message after {waited}", case.subject());
    if let Some(draft) = case.draft("REL-19") {
        draft.blame(Blame::Intermediary).find(case, judge, sentence);
    }
}
