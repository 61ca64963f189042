//! Answers that are not the server's (REL-19).

use crate::model::{CallState, Sight};
use crate::rules::case::Case;
use crate::rules::{Blame, Judge};

pub(in crate::rules) fn look(case: &Case<'_>, judge: &mut Judge) {
    if case.seen.what == Sight::Answered {
        gateway(case, judge);
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
