//! Cancels and what comes after them (CAN-01..19). A crossing is no fault: silence inside the
//! window, unless a witness proves more.

use crate::event::Dir;
use crate::model::{CallState, Reason, RowKind, Sight};
use crate::rules::case::Case;
use crate::rules::{Judge, Severity};
use crate::spec::era::Era;

const LISTEN: &str = "subscriptions/listen";

pub(in crate::rules) fn look(case: &Case<'_>, judge: &mut Judge) {
    match &case.seen.what {
        Sight::AnswerAfterCancel(late) if late.is_late => {
            let rule = if case.era().is_some_and(Era::is_modern) { "CAN-05" } else { "CAN-17" };
            let sentence = format!(
                "{} was answered {} after its cancel{}",
                case.subject(),
                Case::ms(late.margin_ns),
                proof(late.reason)
            );
            if let Some(draft) = case.draft(rule) {
                draft.gather(case, judge, case.seen.call, |_| sentence.clone());
            }
        }
        Sight::ProgressAfterCancel(late) if late.is_late => {
            if let Some(draft) = case.draft("CAN-06") {
                let subject = case.subject();
                let last = Case::ms(late.margin_ns);
                draft.gather(case, judge, case.seen.call, |times| {
                    format!("{subject} went on after its cancel: {times} progress, the last {last} later")
                });
            }
        }
        Sight::CancelUnknown { id, is_of_other_side } => {
            let id = id.as_ref().map(ToString::to_string);
            unknown(case, judge, id, *is_of_other_side);
        }
        Sight::CancelOtherType { id } => {
            let sentence = format!("the cancel for {} names the id {id}", case.subject());
            if let Some(draft) = case.draft("CAN-02") {
                draft.find(case, judge, sentence);
            }
        }
        Sight::Cancel => signal(case, judge),
        Sight::CancelAfterEnd => after_end(case, judge),
        Sight::CancelByServer if method(case) != LISTEN => {
            let sentence = format!("the server cancelled {}", case.subject());
            if let Some(draft) = case.draft("CAN-07") {
                let is_dual = case.scope().is_some_and(|scope| scope.negotiated.is_some());
                let draft = if is_dual { draft.at_most(Severity::Hint) } else { draft };
                draft.find(case, judge, sentence);
            }
        }
        _ => {}
    }
}

fn proof(reason: Reason) -> &'static str {
    match reason {
        Reason::Witness => ", and after a request that was written behind the cancel",
        Reason::Telemetry => ", which it told that it had seen",
        _ => "",
    }
}

fn method<'a>(case: &Case<'a>) -> &'a str {
    case.call().map_or("", |call| case.model.text(call.method))
}

fn unknown(case: &Case<'_>, judge: &mut Judge, id: Option<String>, is_of_other_side: bool) {
    let Some(id) = id else {
        if let Some(draft) = case.draft("CAN-09") {
            draft.find(case, judge, "a cancel names no request".to_owned());
        }
        return;
    };
    let is_legacy = case.era().is_some_and(|era| !era.is_modern());
    let (rule, whose) = if is_of_other_side && is_legacy {
        ("CAN-16", "the other side's request")
    } else {
        ("CAN-01", "no request of its sender")
    };
    if let Some(draft) = case.draft(rule) {
        let draft = if case.is_full() { draft } else { draft.at_most(Severity::Hint) };
        let sentence = format!("a cancel names the id {id}: {whose}");
        draft.and_id(id).find(case, judge, sentence);
    }
}

/// A cancel for an open request: the right signal for its transport, era and kind?
fn signal(case: &Case<'_>, judge: &mut Judge) {
    let Some(call) = case.call() else { return };
    let method = method(case);
    // Some clients close a subscription's stream and post a cancel as well.
    if call.sender == Dir::C2s
        && method != LISTEN
        && let Some(draft) = case.draft("CAN-10")
    {
        let sentence = format!("the cancel for {} was posted, and its stream left open", case.subject());
        draft.find(case, judge, sentence);
    }
    if method == "initialize"
        && let Some(draft) = case.draft("CAN-13")
    {
        draft.find(case, judge, "initialize was cancelled".to_owned());
    }
    if call.is_task
        && let Some(draft) = case.draft("CAN-14")
    {
        draft.find(
            case,
            judge,
            format!("{}, which runs as a task, was cancelled as a request", case.subject()),
        );
    }
}

fn after_end(case: &Case<'_>, judge: &mut Judge) {
    let Some(call) = case.call() else { return };
    let repeats = case.model.rows_of(case.seen.call.unwrap_or(crate::model::CallIdx(u32::MAX)));
    let cancels =
        repeats.filter(|row| case.model.row(*row).is_some_and(|row| row.kind == RowKind::Cancelled)).count();
    if call.state == CallState::CancelledByClient && cancels > 1 {
        if let Some(draft) = case.draft("CAN-19") {
            let sentence = format!("{} was cancelled {cancels} times", case.subject());
            draft.gather(case, judge, case.seen.call, |_| sentence.clone());
        }
        return;
    }
    let window_ns = case.window_ns();
    let since_ns = call.ended.map_or(0, |ended| case.seen.at.ns_since(ended));
    if call.is_task
        && since_ns > window_ns
        && let Some(draft) = case.draft("CAN-15")
    {
        let sentence = format!(
            "a cancel names {}, which had become a task {} before",
            case.subject(),
            Case::ms(since_ns)
        );
        draft.find(case, judge, sentence);
    }
}
