//! Resources: lists, templates, contents, annotations (RES-01..06).

mod template;

use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{base64_fault, is_complete, items, say, string_fault};
use crate::spec::codes::{
    HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_REQUIRED_CLIENT_CAPABILITY,
    RESOURCE_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION,
};
use crate::spec::lists::ListKind;
use crate::wire::json::Value;

/// Answers whose items or blocks may be annotated, other than tools, whose annotations are others.
const ANNOTATED: &[On] = &[
    On::ResultOf("resources/list"),
    On::ResultOf("resources/templates/list"),
    On::ResultOf("tools/call"),
    On::ResultOf("prompts/get"),
];

/// Codes that say something else than that a resource is missing, whatever their message.
const OTHER_CODES: [i64; 6] = [
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    HEADER_MISMATCH,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
];

pub(super) fn rules(book: &mut Book) {
    book.rule("RES-01", &[On::ResultOf("resources/read")], contents);
    book.rule("RES-02", &[On::ResultOf("resources/read")], not_empty);
    let lists = [On::ResultOf("resources/list"), On::ResultOf("resources/templates/list")];
    book.rule("RES-03", &lists, named);
    book.rule("RES-04", &lists, well_formed);
    book.rule("RES-05", ANNOTATED, in_range);
    book.rule("RES-06", &[On::ErrorOf("resources/read")], missing);
}

fn contents(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result().filter(|result| result.is_object() && is_complete(case)) else { return };
    let mut faults = Vec::new();
    match result.get("contents") {
        Some(contents) if contents.is_array() => {
            for (idx, item) in contents.items().enumerate() {
                let fault = content_fault(item);
                faults.extend(fault.map(|fault| format!("item {}: {fault}", idx + 1)));
            }
        }
        Some(contents) => faults.push(format!("contents is {}, not an array", short(contents.raw()))),
        None => faults.push("the result has no contents".to_owned()),
    }
    say(case, out, Severity::Error, &faults);
}

fn content_fault(item: Value<'_>) -> Option<String> {
    string_fault(item, "uri").or_else(|| match (item.get("text"), item.get("blob")) {
        (None, None) => Some("it has neither text nor blob".to_owned()),
        (Some(_), _) => string_fault(item, "text"),
        (None, Some(_)) => base64_fault(item, "blob"),
    })
}

fn not_empty(case: &Case<'_>, out: &mut Out<'_>) {
    let contents = case.result().filter(|_| is_complete(case)).and_then(|result| result.get("contents"));
    if contents.is_some_and(|contents| contents.is_array() && contents.is_empty()) {
        say(
            case,
            out,
            Severity::Hint,
            &["contents is empty: a resource without parts, or none at all".to_owned()],
        );
    }
}

/// What the method of the case lists.
fn kind(case: &Case<'_>) -> Option<ListKind> {
    ListKind::of_method(case.method())
}

fn named(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(kind), Some(result)) = (kind(case), case.result()) else { return };
    let mut faults = Vec::new();
    match result.get(kind.member()) {
        Some(list) if list.is_array() => {}
        Some(list) => faults.push(format!("{} is {}, not an array", kind.member(), short(list.raw()))),
        None => faults.push(format!("there is no array of {}", kind.member())),
    }
    for (name, item) in items(case, kind) {
        let fault = string_fault(item, kind.key()).or_else(|| string_fault(item, "name"));
        faults.extend(fault.map(|fault| format!("{name}: {fault}")));
    }
    say(case, out, Severity::Error, &faults);
}

fn well_formed(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(kind) = kind(case) else { return };
    let mut faults = Vec::new();
    for (_, item) in items(case, kind) {
        let Some(text) = item.get(kind.key()).and_then(Value::text) else { continue };
        let fault = match kind {
            ListKind::Templates => template::fault(&text),
            _ if has_scheme(&text) => None,
            _ => Some("is no absolute URI".to_owned()),
        };
        faults.extend(fault.map(|fault| format!("{} {fault}", short(&text))));
    }
    say(case, out, Severity::Warning, &faults);
}

/// It begins with a scheme (RFC 3986 section 3.1).
fn has_scheme(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else { return false };
    scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn in_range(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(result) = case.result().filter(|result| result.raw().contains("\"annotations\"")) else {
        return;
    };
    let list = kind(case).and_then(|kind| result.get(kind.member()));
    let messages = result.get("messages").into_iter().flat_map(Value::items);
    let blocks = messages.filter_map(|message| message.get("content"));
    let blocks = blocks.chain(result.get("content").into_iter().flat_map(Value::items));
    let mut faults = Vec::new();
    for (idx, item) in list.into_iter().flat_map(Value::items).chain(blocks).enumerate() {
        let fault = item.get("annotations").and_then(annotation_fault);
        faults.extend(fault.map(|fault| format!("item {}: {fault}", idx + 1)));
    }
    say(case, out, Severity::Error, &faults);
}

fn annotation_fault(annotations: Value<'_>) -> Option<String> {
    if let Some(priority) = annotations.get("priority")
        && !priority.number().is_some_and(|number| (0.0..=1.0).contains(&number))
    {
        return Some(format!("priority is {}, not a number from 0 to 1", short(priority.raw())));
    }
    let audience = annotations.get("audience")?;
    let is_known = |role: Value<'_>| role.is_text("user") || role.is_text("assistant");
    let is_right = audience.is_array() && audience.items().all(is_known);
    (!is_right).then(|| format!("audience is {}, not a list of user and assistant", short(audience.raw())))
}

fn missing(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.call() else { return };
    let Some(code) = call.error_code.filter(|code| !OTHER_CODES.contains(code)) else { return };
    let Some(message) = case.error().and_then(|error| error.get("message")).and_then(Value::text) else {
        return;
    };
    let uri = call.target.map_or("", |target| case.model.text(target));
    if tells_missing(&message, uri) {
        let subject = case.subject();
        out.gather(case, (case.seen.scope, code), |times| {
            let often = if times == 1 { String::new() } else { format!(", {times} times by now") };
            format!(
                "{subject} failed with {code} \"{}\", and a missing resource is {INVALID_PARAMS}{often}",
                short(&message)
            )
        });
    }
}

/// A message says that the resource asked for does not exist, and not that something else does not.
fn tells_missing(message: &str, uri: &str) -> bool {
    let lower = message.to_lowercase();
    let is_about_it = lower.contains("resource") || (!uri.is_empty() && message.contains(uri));
    let says_so = ["not found", "does not exist", "doesn't exist", "no such", "unknown resource"];
    is_about_it && says_so.iter().any(|words| lower.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_with_a_scheme_are_absolute() {
        for (uri, expected) in [
            ("file:///a", true),
            ("notes+v1.x:today", true),
            ("/a/b", false),
            ("notes", false),
            ("1a:b", false),
            (":a", false),
            ("a b:c", false),
        ] {
            assert_eq!(has_scheme(uri), expected, "{uri}");
        }
    }

    #[test]
    fn messages_about_the_resource_are_told_from_others() {
        for (message, expected) in [
            ("Resource not found", true),
            ("Unknown resource: notes://a", true),
            ("notes://a does not exist", true),
            ("Session not found", false),
            ("tool not found", false),
            ("resource is locked", false),
        ] {
            assert_eq!(tells_missing(message, "notes://a"), expected, "{message}");
        }
    }
}
