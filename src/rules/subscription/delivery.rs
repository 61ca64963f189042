//! What comes on a subscription, and what should not (SUB-03, SUB-05..12, SUB-18).

use super::subscription;
use crate::model::{CallIdx, Name, Reason, Sight};
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::meta::SUBSCRIPTION_ID;
use crate::spec::methods::{ACKNOWLEDGED, PROGRESS};
use crate::wire::json::Value;

/// Notifications that come on subscriptions only.
const CHANGES: [&str; 4] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    UPDATED,
];
const UPDATED: &str = "notifications/resources/updated";
const LOG: &str = "notifications/message";

pub(super) fn rules(book: &mut Book) {
    let subscription = On::Sight(SightKind::Subscription);
    let unknown = On::Sight(SightKind::SubscriptionUnknown);
    let changes = CHANGES.map(On::NotificationOf);
    let tagged: Vec<On> =
        changes.into_iter().chain([On::NotificationOf(ACKNOWLEDGED), subscription]).collect();
    book.rule("SUB-03", &[subscription, unknown], tag_of_another);
    book.rule("SUB-05", &[subscription], not_asked);
    book.rule("SUB-06", &[subscription], not_granted);
    book.rule("SUB-07", &tagged, untagged);
    book.rule("SUB-08", &[On::Sight(SightKind::SubscriptionAfterEnd)], after_end);
    book.rule("SUB-09", &[On::Sight(SightKind::SubscriptionAfterCancel)], after_cancel);
    book.rule("SUB-10", &[unknown], tag_of_nothing);
    book.rule("SUB-11", &[On::NotificationOf(PROGRESS), On::NotificationOf(LOG)], of_a_request);
    book.rule("SUB-12", &changes, on_a_request);
    book.rule("SUB-18", &[subscription], not_watched);
}

/// The tag of the message, whatever it is.
fn tag<'a>(case: &Case<'a>) -> Option<Value<'a>> {
    case.params()?.at(&["_meta", SUBSCRIPTION_ID])
}

/// On HTTP the stream says which subscription is meant, on stdio only an id of the other type can.
fn tag_of_another(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(call), Some(tag)) = (case.call(), tag(case)) else { return };
    if tag.id().is_none_or(|id| id != call.id) {
        let (subject, tag) = (case.subject(), short(tag.raw()));
        out.gather(case, case.seen.call, |times| {
            format!("{subject} brought {} tagged {tag}", count(times, "notification"))
        });
    }
}

fn tag_of_nothing(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::SubscriptionUnknown { id } = case.what() else { return };
    // An id of the other type is SUB-03; without the beginning the listen may have been missed.
    if case.seen.call.is_none() && case.is_full() {
        let id = id.to_string();
        let tag = short(&id);
        out.draft(case).and_id(id.clone()).gather(out, (case.seen.scope, id), |times| {
            format!("{} tagged {tag}, which no listen request has", count(times, "notification"))
        });
    }
}

fn not_asked(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(found), method) = (subscription(case), case.method()) else { return };
    if !found.asked.allows(method) {
        let subject = case.subject();
        out.gather(case, (case.seen.call, method), |times| {
            format!("{subject} brought {method} {}, which it had not asked for", count(times, "time"))
        });
    }
}

fn not_granted(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(found), method) = (subscription(case), case.method()) else { return };
    let is_granted = found.granted.as_ref().is_none_or(|granted| granted.allows(method));
    if found.asked.allows(method) && !is_granted {
        let subject = case.subject();
        out.gather(case, (case.seen.call, method), |times| {
            format!("{subject} brought {method} {}, which was not granted", count(times, "time"))
        });
    }
}

/// On HTTP: whatever comes on the stream of a listen. On stdio: what comes on subscriptions only,
/// unless a legacy session is open, which has no tags.
fn untagged(case: &Case<'_>, out: &mut Out<'_>) {
    let is_of_stream = matches!(case.what(), Sight::Subscription { .. });
    if is_of_stream == case.exchange().is_none()
        || case.body().is_none()
        || tag(case).is_some()
        || case.is_dual()
    {
        return;
    }
    let method = short(case.method());
    let place = case.seen.call.map_or_else(String::new, |idx| format!(" of {}", case.name(idx)));
    out.gather(case, (case.seen.scope, case.seen.call, &method), |times| {
        format!("{method}{place} came {} without the id of its subscription", count(times, "time"))
    });
}

fn after_end(case: &Case<'_>, out: &mut Out<'_>) {
    let subject = case.subject();
    out.gather(case, case.seen.call, |times| {
        format!("{subject} brought {} after its closing result", count(times, "notification"))
    });
}

fn after_cancel(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::SubscriptionAfterCancel(late) = case.what() else { return };
    if !late.is_late {
        return;
    }
    let proof = match late.reason {
        Reason::Witness => ", after the answer to a request written behind the cancel",
        Reason::Telemetry => ", after the server told that it had seen the cancel",
        _ => "",
    };
    let (subject, last) = (case.subject(), Case::ms(late.margin_ns));
    out.gather(case, case.seen.call, |times| {
        format!(
            "{subject} brought {} after its cancel{proof}; the last {last} later",
            count(times, "notification")
        )
    });
}

/// The listen request whose stream brought the message.
fn listen_of_stream(case: &Case<'_>) -> Option<CallIdx> {
    let mut calls = case.exchange()?.calls().iter().copied();
    calls.find(|idx| case.model.call(*idx).is_some_and(|call| call.method == Name::LISTEN))
}

fn of_a_request(case: &Case<'_>, out: &mut Out<'_>) {
    let method = case.method();
    let what = if method == PROGRESS { "progress" } else { "log" };
    if let Some(listen) = listen_of_stream(case) {
        let subject = case.name(listen);
        out.draft(case).and_call(case.model, listen).gather(out, (listen, what), |times| {
            format!("the stream of {subject} brought {}", count(times, &format!("{what} notification")))
        });
    } else if case.exchange().is_none()
        && let Some(tag) = tag(case)
    {
        let tag = short(tag.raw());
        out.gather(case, (case.seen.scope, what, &tag), |times| {
            format!("{} tagged with the subscription {tag}", count(times, &format!("{what} notification")))
        });
    }
}

fn on_a_request(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(first) = case.exchange().and_then(|exchange| exchange.calls().first().copied()) else { return };
    if listen_of_stream(case).is_none() {
        let (method, subject) = (case.method(), case.name(first));
        out.draft(case).and_call(case.model, first).gather(out, (first, method), |times| {
            format!("{method} came {} on the stream of {subject}", count(times, "time"))
        });
    }
}

/// What counts as part of a resource is the server's business; a longer URI passes for one.
fn not_watched(case: &Case<'_>, out: &mut Out<'_>) {
    if case.method() != UPDATED {
        return;
    }
    let Some(granted) = subscription(case).and_then(|found| found.granted.as_ref()) else { return };
    let Some(uri) = case.params().and_then(|params| params.get("uri")?.text()) else { return };
    let is_same = case.model.name(&uri).is_some_and(|name| granted.uris.contains(&name));
    let is_part = || granted.uris.iter().any(|watched| uri.starts_with(case.model.text(*watched)));
    let is_watched = is_same || is_part();
    if !granted.is_cut && granted.kinds.updates && !is_watched {
        let (subject, uri) = (case.subject(), short(&uri));
        out.gather(case, case.seen.call, |times| {
            format!(
                "{subject} told {} of resources that it does not watch; last: {uri}",
                count(times, "change")
            )
        });
    }
}
