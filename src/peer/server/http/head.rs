//! Checks of a request's header fields.

use std::borrow::Cow;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ORIGIN};

use serde_json::Value;

use crate::peer::server::caller::Caller;
use crate::peer::server::message::{Refusal, Request};
use crate::spec::annotations::Annotations;
use crate::spec::headers::ValueFault;
use crate::spec::{codes, headers};
use crate::wire::json::Document;
use crate::wire::jsonrpc::Id;

/// A status and a line for people: the request is refused without a JSON-RPC body.
type PlainRefusal = (u16, &'static str);

/// An `Origin` must be exactly one of those allowed; without one it is no browser.
pub(super) fn check_origin(fields: &HeaderMap, allowed: &[String]) -> Result<(), PlainRefusal> {
    let mut origins = fields.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => Ok(()),
        (Some(_), Some(_)) => Err((400, "more than one Origin")),
        (Some(origin), None) if allowed.iter().any(|one| one.as_bytes() == origin.as_bytes()) => Ok(()),
        (Some(_), None) => Err((403, "this Origin is not allowed")),
    }
}

/// JSON in.
pub(super) fn check_content_type(fields: &HeaderMap) -> Result<(), PlainRefusal> {
    let content_type = fields.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if headers::is_media_type(content_type, headers::JSON) {
        return Ok(());
    }
    Err((415, "Content-Type must be application/json"))
}

/// JSON in, and both JSON and event streams accepted; no wildcards, for the client must list both.
pub(super) fn check_media_types(fields: &HeaderMap) -> Result<(), PlainRefusal> {
    check_content_type(fields)?;
    let accepts = |media_type: &str| {
        let values = fields.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|one| headers::is_media_type(one, media_type))
    };
    if accepts(headers::JSON) && accepts(headers::EVENT_STREAM) {
        return Ok(());
    }
    Err((406, "Accept must list application/json and text/event-stream"))
}

/// Header fields that mirror the body: once each, and equal after decoding (HTTP-03 to HTTP-09).
pub(super) fn check_mirrored(fields: &HeaderMap, request: &Request, caller: &Caller) -> Result<(), Refusal> {
    let mirrored = [headers::PROTOCOL_VERSION, headers::METHOD, headers::NAME];
    if let Some(name) = mirrored.into_iter().find(|name| fields.get_all(*name).iter().count() > 1) {
        return Err(mismatch(request, format!("{name} occurs more than once")));
    }
    let check = |name: &str, want: &str, is_encoded: bool| {
        let value = value(fields, request, name, is_encoded)?;
        match value {
            None => Err(mismatch(request, format!("{name} is missing"))),
            Some(value) if value == want => Ok(()),
            Some(value) => Err(mismatch(request, format!("{name} is {value:?} but the body says {want:?}"))),
        }
    };
    check(headers::PROTOCOL_VERSION, &caller.version, false)?;
    check(headers::METHOD, &request.method, false)?;
    if let Some(member) = headers::name_member(&request.method) {
        // A body without the member has nothing to mirror; its handler will refuse it.
        if let Some(target) = request.string_at(&[member]) {
            check(headers::NAME, &target, true)?;
        }
    }
    Ok(())
}

/// Header fields that mirror arguments, as the definition of the tool wants them: there when the
/// argument is, absent when it is absent or null, and equal (HTTP-25 to HTTP-28).
pub(super) fn check_params(fields: &HeaderMap, request: &Request, definition: &Value) -> Result<(), Refusal> {
    let Some(definition) = Document::new(Bytes::from(definition.to_string())) else { return Ok(()) };
    for param in Annotations::of(definition.root()).params {
        let name = format!("{}{}", headers::PARAM_PREFIX, param.field);
        let path: Vec<&str> =
            ["arguments"].into_iter().chain(param.path.iter().map(|name| &**name)).collect();
        let argument = request.value_at(&path).filter(|argument| !argument.is_null());
        if fields.get_all(&name).iter().count() > 1 {
            return Err(mismatch(request, format!("{name} occurs more than once")));
        }
        match (value(fields, request, &name, true)?, argument) {
            (None, None) => {}
            (Some(value), Some(argument)) if is_same(&value, &argument) => {}
            (None, Some(_)) => return Err(mismatch(request, format!("{name} is missing"))),
            (Some(_), None) => {
                return Err(mismatch(request, format!("{name} is there although the argument is not")));
            }
            (Some(value), Some(argument)) => {
                return Err(mismatch(request, format!("{name} is {value:?} but the body says {argument}")));
            }
        }
    }
    Ok(())
}

fn mismatch(request: &Request, text: String) -> Refusal {
    Refusal::new(Some(&request.id), codes::HEADER_MISMATCH, text)
}

/// What a field stands for; `None`: it is not there. What only begins like the sentinel is not in
/// it, and is compared as it is.
fn value<'a>(
    fields: &'a HeaderMap,
    request: &Request,
    name: &str,
    is_encoded: bool,
) -> Result<Option<Cow<'a, str>>, Refusal> {
    let Some(field) = fields.get(name) else { return Ok(None) };
    let field = field.to_str().map_err(|_| mismatch(request, format!("{name} is not plain ASCII")))?;
    if !is_encoded {
        return Ok(Some(field.into()));
    }
    match headers::decode(field) {
        Ok(value) => Ok(Some(value)),
        Err(ValueFault::NotClosed | ValueFault::MarkerCase) => Ok(Some(field.into())),
        Err(fault) => Err(mismatch(request, format!("{name} cannot be decoded: {fault:?}"))),
    }
}

/// Strings and booleans as they are, integers as numbers.
fn is_same(field: &str, argument: &Value) -> bool {
    match argument {
        Value::String(text) => field == text,
        Value::Number(number) => {
            let id = Id::from_raw(&number.to_string());
            id.is_some() && Id::from_raw(field) == id
        }
        Value::Bool(flag) => field == if *flag { "true" } else { "false" },
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// On whose behalf the client says that it calls. It is told apart from others and not verified.
pub(super) fn principal(fields: &HeaderMap) -> Option<String> {
    fields.get(AUTHORIZATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
