//! How a client posts: the HTTP method, what it accepts, what it declares, what it relies on
//! (HTTP-01, HTTP-02, HTTP-20, HTTP-22, HTTP-24).

use super::{Endpoints, may_be_http_sse, posted};
use crate::event::Headers;
use crate::model::{FrameFault, Sight};
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::rules::{Blame, Severity};
use crate::spec::headers;

pub(super) fn rules(book: &mut Book) {
    let frame = On::Sight(SightKind::Frame);
    book.rule("HTTP-01", &[On::Request, On::Notification, frame], one_message_by_post);
    book.rule("HTTP-02", &[On::Request, On::Notification], accepts_both);
    book.rule("HTTP-20", &[On::Request, On::Sight(SightKind::HttpRequest)], NoGet::default());
    book.rule("HTTP-22", &[On::Request], relies_on_session);
    book.rule("HTTP-24", &[On::Request], declares_json);
}

fn one_message_by_post(case: &Case<'_>, out: &mut Out<'_>) {
    if let Sight::Frame { fault: FrameFault::Concatenated { messages }, .. } = case.what() {
        out.say(case, format!("one POST body holds {}, one after the other", count(*messages, "message")));
        return;
    }
    let Some(exchange) = posted(case) else { return };
    let http_method = short(exchange.method());
    if matches!(case.what(), Sight::Message) && !http_method.eq_ignore_ascii_case("POST") {
        let method = short(case.method());
        out.gather(case, (case.seen.scope, &http_method), |times| {
            format!("{} sent by {http_method}; the last: {method}", count(times, "message"))
        });
    }
}

/// How far a list of media types covers one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cover {
    No,
    /// By a range such as `*/*`.
    Range,
    Named,
}

fn cover(fields: &Headers, media_type: &str) -> Cover {
    let (group, _) = media_type.split_once('/').unwrap_or((media_type, ""));
    let of_item = |item: &str| {
        let bare = item.split(';').next().unwrap_or_default().trim();
        if bare.eq_ignore_ascii_case(media_type) {
            Cover::Named
        } else if bare == "*/*"
            || bare.strip_suffix("/*").is_some_and(|bare| bare.eq_ignore_ascii_case(group))
        {
            Cover::Range
        } else {
            Cover::No
        }
    };
    fields.all("accept").flat_map(|value| value.split(',')).map(of_item).max().unwrap_or(Cover::No)
}

fn accepts_both(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case).filter(|_| !may_be_http_sse(case)) else { return };
    let types = [headers::JSON, headers::EVENT_STREAM];
    let least = types.into_iter().map(|media_type| (cover(exchange.headers(), media_type), media_type)).min();
    let Some((found, media_type)) = least.filter(|(found, _)| *found != Cover::Named) else { return };
    let draft = out.draft(case).at_most(match found {
        Cover::Range => Severity::Warning,
        _ => Severity::Error,
    });
    let accepts = exchange.headers().get("accept").map_or_else(|| "nothing".to_owned(), short);
    draft.gather(out, (case.seen.scope, &accepts), |times| {
        format!("{} that accept {accepts}, without {media_type}", count(times, "POST"))
    });
}

/// The GET stream and the DELETE of earlier revisions, asked for as a client of this one.
#[derive(Default)]
struct NoGet(Endpoints);

impl Look for NoGet {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(exchange) = self.0.asked(case) else { return };
        let method = exchange.method();
        let is_get = method == "GET" && cover(exchange.headers(), headers::EVENT_STREAM) == Cover::Named;
        let is_delete = method == "DELETE" && self.0.has(exchange);
        if !(is_get || is_delete) {
            return;
        }
        let draft = out.draft(case).blame(Blame::Client).and_event(case.event_number());
        match exchange.resumes() {
            Some(idx) if is_get => {
                let sentence = format!("a GET would take up the stream of {} again", case.name(idx));
                draft.and_call(case.model, idx).say(out, sentence);
            }
            _ => {
                draft.gather(out, (case.seen.scope, method), |times| {
                    format!("{} under a version that has none", count(times, method))
                });
            }
        }
    }
}

fn relies_on_session(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case) else { return };
    for field in [headers::SESSION_ID, headers::LAST_EVENT_ID] {
        if exchange.headers().get(field).is_some() {
            out.gather(case, (case.seen.scope, field), |times| {
                format!("{} with {field}, which means nothing here", count(times, "request"))
            });
        }
    }
}

fn declares_json(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case) else { return };
    let declared = exchange.headers().get("content-type");
    if declared.is_none_or(|declared| !headers::is_media_type(declared, headers::JSON)) {
        let declared = declared.map_or_else(
            || "without a Content-Type".to_owned(),
            |declared| format!("declared as {}", short(declared)),
        );
        out.gather(case, (case.seen.scope, &declared), |times| {
            format!("{} {declared}", count(times, "POST"))
        });
    }
}
