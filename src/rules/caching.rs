//! Caching (CCH-01..10).

mod fetches;
mod shared;
mod stale;

use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{listed, say};
use crate::spec::lists::ListKind;
use crate::wire::json::{Kind, Value};

/// Methods whose whole results say how long they hold.
const CACHED: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

pub(super) fn rules(book: &mut Book) {
    let results = CACHED.map(On::ResultOf);
    book.rule("CCH-01", &results, hinted);
    book.rule("CCH-02", &results, time);
    book.rule("CCH-03", &results, scope);
    book.rule("CCH-04", &results, one_scope);
    shared::rules(book);
    fetches::rules(book);
    stale::rules(book);
}

/// The result, where it says itself that it is whole. An older server says nothing, and owes nothing.
fn complete<'a>(case: &Case<'a>) -> Option<Value<'a>> {
    case.result().filter(|result| result.get("resultType").is_some_and(|kind| kind.is_text("complete")))
}

/// How long a result holds, in nanoseconds.
fn ttl_ns(result: Value<'_>) -> Option<u64> {
    let ms = u64::try_from(result.get("ttlMs")?.integer()?).ok()?;
    Some(ms.saturating_mul(1_000_000))
}

fn hinted(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = complete(case) else { return };
    let missing: Vec<_> =
        ["ttlMs", "cacheScope"].into_iter().filter(|name| result.get(name).is_none()).collect();
    if !missing.is_empty() {
        let (subject, missing) = (case.subject(), missing.join(" and "));
        out.gather(case, (case.seen.scope, case.method()), |times| {
            let often = if times == 1 { String::new() } else { format!(" ({times} results)") };
            format!("the result of {subject} has no {missing}{often}")
        });
    }
}

fn time(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(ttl) = case.result().and_then(|result| result.get("ttlMs")) else { return };
    // A number too large for 64 bits is a long time all the same.
    let is_whole =
        ttl.kind() == Kind::Number && ttl.number().is_some_and(|ms| ms >= 0.0 && ms.fract() == 0.0);
    if !is_whole {
        let fault = format!("ttlMs is {}, not a whole number of milliseconds", short(ttl.raw()));
        say(case, out, Severity::Error, &[fault]);
    }
}

fn scope(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(scope) = case.result().and_then(|result| result.get("cacheScope")) else { return };
    if !(scope.is_text("public") || scope.is_text("private")) {
        let fault = format!("cacheScope is {}, neither public nor private", short(scope.raw()));
        say(case, out, Severity::Error, &[fault]);
    }
}

fn one_scope(case: &Case<'_>, out: &mut Out<'_>) {
    let scope = |result: Value<'_>| result.get("cacheScope").and_then(Value::text).map(|text| short(&text));
    let Some(kind) = ListKind::of_method(case.method()) else { return };
    let (Some(idx), Some(now)) = (case.seen.call, case.result().and_then(scope)) else { return };
    let listed = listed(case, kind);
    let walk = listed.as_ref().and_then(|listed| listed.walk_of(idx)).filter(|walk| !walk.is_cut());
    let Some(first) = walk.and_then(|walk| walk.pages().first()) else { return };
    let Some(before) = first.result().and_then(scope).filter(|before| *before != now) else { return };
    let subject = case.subject();
    out.draft(case).and_call(case.model, first.call).gather(out, (case.seen.scope, case.method()), |times| {
        let often = if times == 1 { String::new() } else { format!(" ({times} pages by now)") };
        format!("{subject} is {now}, and the first page of its walk was {before}{often}")
    });
}
