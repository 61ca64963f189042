//! Checks of a request's header fields.

use hyper::HeaderMap;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ORIGIN};

use crate::peer::server::caller::Caller;
use crate::peer::server::message::{Refusal, Request};
use crate::spec::{codes, headers};

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
    let mismatch = |text: String| Refusal::new(Some(&request.id), codes::HEADER_MISMATCH, text);
    let mirrored = [headers::PROTOCOL_VERSION, headers::METHOD, headers::NAME];
    if let Some(name) = mirrored.into_iter().find(|name| fields.get_all(*name).iter().count() > 1) {
        return Err(mismatch(format!("{name} occurs more than once")));
    }
    let check = |name: &str, want: &str, is_encoded: bool| {
        let field = fields.get(name).ok_or_else(|| mismatch(format!("{name} is missing")))?;
        let field = field.to_str().map_err(|_| mismatch(format!("{name} is not plain ASCII")))?;
        let value = if is_encoded {
            headers::decode(field)
                .map_err(|fault| mismatch(format!("{name} cannot be decoded: {fault:?}")))?
        } else {
            field.into()
        };
        if value == want {
            return Ok(());
        }
        Err(mismatch(format!("{name} is {value:?} but the body says {want:?}")))
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

/// On whose behalf the client says that it calls. It is told apart from others and not verified.
pub(super) fn principal(fields: &HeaderMap) -> Option<String> {
    fields.get(AUTHORIZATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
