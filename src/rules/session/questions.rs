//! Requests of the server and how a legacy client answers them (LEG-20, LEG-21).

use crate::event::Dir;
use crate::model::{CallIdx, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::Case;
use crate::rules::findings::Out;

/// A person may think this long before anybody wonders; what ends earlier was simply left. ours.
const PERSON_NS: u64 = 5_000_000_000;

pub(super) fn rules(book: &mut Book) {
    let ends = [SightKind::SessionEnded, SightKind::StdinClosed, SightKind::Ended].map(On::Sight);
    book.rule("LEG-20", &ends, unanswered);
    book.rule(
        "LEG-21",
        &[
            On::ResultOf("sampling/createMessage"),
            On::ResultOf("roots/list"),
            On::ResultOf("elicitation/create"),
        ],
        undeclared,
    );
}

/// Open requests of the server when its session ends, or, for those that ask no person, when they
/// have been open longer than any limit.
fn unanswered(case: &Case<'_>, out: &mut Out<'_>) {
    let (Sight::SessionEnded { calls } | Sight::StdinClosed { calls } | Sight::Ended { calls }) = case.what()
    else {
        return;
    };
    let is_end = !matches!(case.what(), Sight::Ended { .. });
    let asked: Vec<CallIdx> = match case.what() {
        // The end of stdin tells only the client's requests.
        Sight::StdinClosed { .. } => case.model.open_of(case.seen.scope).collect(),
        _ => calls.clone(),
    };
    for idx in asked {
        let Some(call) = case.model.call(idx).filter(|call| call.sender == Dir::S2c && !call.is_injected)
        else {
            continue;
        };
        let method = case.model.text(call.method);
        let age_ns = case.seen.at.ns_since(call.started);
        let asks_person = matches!(method, "sampling/createMessage" | "elicitation/create");
        let limit_ns = match (asks_person, is_end) {
            (true, true) => PERSON_NS,
            (true, false) => continue,
            (false, true) => case.window_ns().max(PERSON_NS),
            (false, false) => case.policy.limits.max.0.saturating_mul(1_000_000),
        };
        if age_ns > limit_ns {
            let sentence =
                format!("{} of the server was not answered within {}", case.name(idx), Case::ms(age_ns));
            out.draft(case).about_nothing().and_call(case.model, idx).blame(Blame::Client).say(out, sentence);
        }
    }
}

fn undeclared(case: &Case<'_>, out: &mut Out<'_>) {
    if case.call().is_none_or(|call| call.sender != Dir::S2c) {
        return;
    }
    let feature = case.method().split('/').next().unwrap_or_default();
    let Some(capabilities) = case.client_capabilities() else { return };
    if capabilities.get(feature).is_none() {
        let sentence = format!(
            "{} was answered with a result, but the client did not declare {feature}",
            case.subject()
        );
        out.say(case, sentence);
    }
}
