//! Progress: the right token, rising values, on its own stream, and never after the answer
//! (PRG-01..04, PRG-08).

use crate::model::Sight;
use crate::rules::case::Case;
use crate::rules::{Judge, Severity};
use crate::spec::era::Era;

pub(in crate::rules) fn look(case: &Case<'_>, judge: &mut Judge) {
    match &case.seen.what {
        Sight::ProgressAfterAnswer => {
            let is_core_task =
                case.era() == Some(Era::V2025_11_25) && case.call().is_some_and(|call| call.is_task);
            if let Some(draft) = case.draft("PRG-02").filter(|_| !is_core_task) {
                let subject = case.subject();
                draft.gather(case, judge, case.seen.call, |times| {
                    format!("{times} progress for {subject} after its answer")
                });
            }
        }
        Sight::ProgressUnknown { token: Some(token) } => {
            if let Some(draft) = case.draft("PRG-01") {
                let draft = if case.is_full() { draft } else { draft.at_most(Severity::Hint) };
                let subject = (case.seen.scope, token.to_string());
                draft.gather(case, judge, subject, |times| {
                    format!("{times} progress under the token {token}, which no request offered")
                });
            }
        }
        Sight::ProgressUnknown { token: None } => {
            if let Some(draft) = case.draft("PRG-08") {
                draft.gather(case, judge, case.seen.scope, |times| {
                    format!("{times} progress without a token that is a string or an integer")
                });
            }
        }
        Sight::ProgressElsewhere { stream_of } => {
            if let Some(mut draft) = case.draft("PRG-04") {
                let subject = case.subject();
                if let Some(other) = stream_of {
                    draft = draft.and_call(case.model, *other);
                }
                let whose = stream_of.map_or_else(
                    || "another stream".to_owned(),
                    |idx| format!("the stream of {}", case.name(idx)),
                );
                draft.gather(case, judge, case.seen.call, |times| {
                    format!("{times} progress of {subject} came on {whose}")
                });
            }
        }
        _ => {}
    }
}
