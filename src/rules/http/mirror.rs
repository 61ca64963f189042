//! Header fields that mirror the body (HTTP-03..09). The body is the truth; fields let intermediaries
//! route without reading it.

use std::borrow::Cow;

use super::posted;
use crate::model::Exchange;
use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::headers::{self, ValueFault};
use crate::spec::meta;
use crate::wire::json::Value;

pub(super) fn rules(book: &mut Book) {
    book.rule("HTTP-03", &[On::Request], version_missing);
    book.rule("HTTP-04", &[On::Request], version_differs);
    book.rule("HTTP-05", &[On::Request], method_differs);
    let named = ["tools/call", "prompts/get", "resources/read"].map(On::RequestOf);
    book.rule("HTTP-06", &named, name_missing);
    book.rule("HTTP-07", &named, name_differs);
    book.rule("HTTP-08", &[On::Request], sentinel_damaged);
    book.rule("HTTP-09", &[On::Request], not_encoded);
}

/// How a field mirrors a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mirror {
    Same,
    Different,
    /// It had to be encoded and is not.
    Bare,
    Damaged,
}

/// How a field mirrors a value of the body.
pub(super) fn mirror(field: &str, value: &str) -> Mirror {
    let field = field.trim_matches([' ', '\t']);
    if field == value.trim_matches([' ', '\t']) && headers::encode(value) != value {
        return Mirror::Bare;
    }
    match headers::decode(field) {
        Ok(text) if text == value => Mirror::Same,
        Ok(_) => Mirror::Different,
        Err(ValueFault::NotPlain) => Mirror::Bare,
        Err(_) => Mirror::Damaged,
    }
}

/// The name of a request's target that its header mirrors: of the tool, the prompt or the resource.
fn target<'a>(method: &str, params: Option<Value<'a>>) -> Option<Cow<'a, str>> {
    let member = headers::name_member(method).filter(|_| !method.starts_with("tasks/"))?;
    params?.get(member)?.text()
}

fn version(params: Option<Value<'_>>) -> Option<Cow<'_, str>> {
    params?.at(&["_meta", meta::PROTOCOL_VERSION])?.text()
}

/// The fields that every request has mirror its body. Mcp-Param fields are left out.
pub(super) fn agrees(exchange: &Exchange, request: Value<'_>) -> bool {
    let (fields, params) = (exchange.headers(), request.get("params"));
    let Some(method) = request.get("method").and_then(Value::text) else { return false };
    let is_version = fields.get(headers::PROTOCOL_VERSION) == version(params).as_deref();
    let is_method = fields.get(headers::METHOD) == Some(&*method);
    let is_name = target(&method, params).is_none_or(|name| {
        fields.get(headers::NAME).is_some_and(|field| mirror(field, &name) == Mirror::Same)
    });
    is_version && is_method && is_name
}

fn version_missing(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case) else { return };
    if exchange.headers().get(headers::PROTOCOL_VERSION).is_none() && version(case.params()).is_some() {
        missing(case, out, headers::PROTOCOL_VERSION);
    }
}

fn missing(case: &Case<'_>, out: &mut Out<'_>, field: &str) {
    let subject = case.subject();
    out.gather(case, case.seen.scope, |times| {
        format!("{} without {field}; the last: {subject}", count(times, "request"))
    });
}

/// A client whose header names a legacy version may carry `_meta` for other reasons.
fn version_differs(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case) else { return };
    let field = exchange.headers().get(headers::PROTOCOL_VERSION);
    let (Some(field), Some(body)) = (field, version(case.params())) else { return };
    if field == body {
        return;
    }
    let severity = if case.is_modern() { Severity::Error } else { Severity::Warning };
    let (subject, in_header, in_body) = (case.subject(), short(field), short(&body));
    out.draft(case).at_most(severity).gather(out, (case.seen.scope, field, &body), |times| {
        let requests = count(times, "request");
        format!(
            "{requests} with version {in_header} in the header and {in_body} in the body; the last: {subject}"
        )
    });
}

fn method_differs(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case) else { return };
    match exchange.headers().get(headers::METHOD) {
        None => missing(case, out, headers::METHOD),
        Some(field) if field != case.method() => {
            let sentence = format!("{} came with {} {}", case.subject(), headers::METHOD, short(field));
            out.say(case, sentence);
        }
        Some(_) => {}
    }
}

fn name_missing(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case) else { return };
    if exchange.headers().get(headers::NAME).is_none() && target(case.method(), case.params()).is_some() {
        missing(case, out, headers::NAME);
    }
}

fn name_differs(case: &Case<'_>, out: &mut Out<'_>) {
    let field = posted(case).and_then(|exchange| exchange.headers().get(headers::NAME));
    let (Some(field), Some(name)) = (field, target(case.method(), case.params())) else { return };
    if mirror(field, &name) == Mirror::Different {
        out.say(case, format!("{} came with {} {}", case.subject(), headers::NAME, short(field)));
    }
}

/// The fields whose values may be encoded.
pub(super) fn encodable(exchange: &Exchange) -> impl Iterator<Item = (&str, &str)> {
    let fields = exchange.headers().0.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    fields.filter(|(name, _)| name.eq_ignore_ascii_case(headers::NAME) || param(name).is_some())
}

/// The name of the parameter that a field mirrors, as it is written in the field.
pub(super) fn param(field: &str) -> Option<&str> {
    let (start, name) = field.split_at_checked(headers::PARAM_PREFIX.len())?;
    start.eq_ignore_ascii_case(headers::PARAM_PREFIX).then_some(name)
}

fn sentinel_damaged(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case) else { return };
    for (name, value) in encodable(exchange) {
        let what = match headers::decode(value.trim_matches([' ', '\t'])) {
            Ok(_) | Err(ValueFault::NotPlain) => continue,
            Err(ValueFault::MarkerCase) => "begins with a marker in other letters",
            Err(ValueFault::NotClosed) => "has no closing ?=",
            Err(ValueFault::NotBase64) => "holds no Base64",
            Err(ValueFault::NotUtf8) => "holds bytes that are not UTF-8",
        };
        out.say(case, format!("{} of {} {what}: {}", short(name), case.subject(), short(value)));
    }
}

fn not_encoded(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(exchange) = posted(case) else { return };
    let target = target(case.method(), case.params());
    for (name, value) in encodable(exchange) {
        let is_bare = match &target {
            Some(target) if param(name).is_none() => mirror(value, target) == Mirror::Bare,
            _ => headers::decode(value.trim_matches([' ', '\t'])) == Err(ValueFault::NotPlain),
        };
        if is_bare {
            out.say(
                case,
                format!("{} of {} had to be encoded: {}", short(name), case.subject(), short(value)),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_mirrors_a_value_decoded_and_exactly() {
        let cases = [
            ("echo", "echo", Mirror::Same),
            (" echo\t", "echo", Mirror::Same),
            ("Echo", "echo", Mirror::Different),
            ("=?base64?Z3LDtsOfZQ==?=", "größe", Mirror::Same),
            ("=?base64?ZWNobw==?=", "echo", Mirror::Same),
            ("größe", "größe", Mirror::Bare),
            ("padded", " padded ", Mirror::Bare),
            ("=?base64?literal?=", "=?base64?literal?=", Mirror::Bare),
            ("=?base64?ZWNobw==", "echo", Mirror::Damaged),
            ("", "", Mirror::Same),
        ];
        for (field, value, expected) in cases {
            assert_eq!(mirror(field, value), expected, "{field:?} {value:?}");
        }
        assert_eq!((param("mcp-param-Region"), param("Mcp-Name"), param("é")), (Some("Region"), None, None));
    }
}
