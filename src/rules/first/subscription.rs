//! Subscriptions: acknowledged first and once, and only what was asked for
//! (SUB-02, SUB-05, SUB-10, SUB-21).

use crate::model::Sight;
use crate::rules::Judge;
use crate::rules::case::{Case, count};

pub(in crate::rules) fn look(case: &Case<'_>, judge: &mut Judge) {
    if !case.is_full() {
        return;
    }
    match &case.seen.what {
        Sight::Subscription { nth, is_acknowledgement, was_asked } => {
            let method = case.row().and_then(|row| row.method).map_or("", |name| case.model.text(name));
            let subject = case.subject();
            if *nth == 0 && !is_acknowledgement {
                let sentence = format!("{subject} began with {method}, not with its acknowledgement");
                find(case, judge, "SUB-02", &sentence);
            }
            if *nth > 0 && *is_acknowledgement {
                find(case, judge, "SUB-21", &format!("{subject} was acknowledged again"));
            }
            if !was_asked && let Some(draft) = case.draft("SUB-05") {
                draft.gather(case, judge, (case.seen.call, method), |times| {
                    format!("{subject} brought {method} {}, which it had not asked for", count(times, "time"))
                });
            }
        }
        Sight::SubscriptionUnknown { id } => {
            if let Some(draft) = case.draft("SUB-10") {
                let sentence =
                    |times| format!("{} tagged {id}, which no listen request has", count(times, "message"));
                draft.and_id(id.to_string()).gather(case, judge, id.to_string(), sentence);
            }
        }
        _ => {}
    }
}

fn find(case: &Case<'_>, judge: &mut Judge, rule: &str, sentence: &str) {
    if let Some(draft) = case.draft(rule) {
        draft.find(case, judge, sentence.to_owned());
    }
}
