//! Messages that midwire writes itself: in a peer's place, or made from what a peer wrote.

use bytes::Bytes;

use super::book::OpenCall;
use super::message::Message;
use super::{Answer, Key, Refused, Retry, Spoil};
use crate::machine::policy::contract::Contract;
use crate::machine::retry::{Class, Why, classify};
use crate::spec::era::Era;
use crate::spec::methods;
use crate::wire::json::edit;
use crate::wire::jsonrpc::Id;

/// Code of an error in the server's place for a call that midwire has given up. ours: the first of
/// the codes that JSON-RPC leaves to implementations.
pub const CANCELLED_CODE: i64 = -32000;

/// Message of that error.
pub const CANCELLED_MESSAGE: &str = "cancelled by midwire";

/// The notification that gives a request up.
#[must_use]
pub fn cancel(id: &Id, reason: Option<&str>) -> Bytes {
    let reason = reason.map(|reason| format!(",\"reason\":{}", quoted(reason))).unwrap_or_default();
    let method = methods::CANCELLED;
    let params = format!("{{\"requestId\":{id}{reason}}}");
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}"))
}

/// An error in the server's place.
#[must_use]
pub fn error(id: &Id, code: i64, message: &str) -> Bytes {
    let error = format!("{{\"code\":{code},\"message\":{}}}", quoted(message));
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}"))
}

/// Progress of a call that nobody has reported.
#[must_use]
pub fn progress(token: &Id, value: u64) -> Bytes {
    let method = methods::PROGRESS;
    let params =
        format!("{{\"progressToken\":{token},\"progress\":{value},\"message\":\"sent by midwire\"}}");
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}"))
}

/// An answer in the server's place. `None`: it is a status of HTTP, which is no message.
///
/// # Errors
/// When the result is no JSON.
pub fn answer(id: &Id, era: Option<Era>, answer: &Answer) -> Result<Option<Bytes>, Refused> {
    Ok(Some(match answer {
        Answer::Status(_) => return Ok(None),
        Answer::Error { code, message } => error(id, *code, message),
        Answer::Result(json) => {
            let whole = Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":null}}"));
            edit::set(&whole, "/result", Some(&on_one_line(json)?)).map_err(invalid)?
        }
        Answer::Malformed => Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{oops")),
        Answer::Oversized(bytes) => {
            let kind = if era.is_some_and(Era::is_modern) {
                "\"resultType\":\"complete\","
            } else {
                Default::default()
            };
            let text = "x".repeat(*bytes);
            let content = format!("\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]");
            Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{{kind}{content}}}}}"))
        }
    }))
}

/// What passes in place of a final answer, in order.
#[must_use]
pub fn spoiled(text: &Bytes, id: &Id, call: Option<&OpenCall>, spoil: Spoil) -> Vec<Bytes> {
    let with_id = |id: &Id| edit::set(text, "/id", Some(&id.to_string())).unwrap_or_else(|_| text.clone());
    match spoil {
        Spoil::Truncate => vec![text.slice(..text.len() - text.len().div_ceil(4))],
        Spoil::WrongId => vec![with_id(&other(id))],
        Spoil::WrongIdType => vec![with_id(&other_type(id))],
        Spoil::DuplicateFinal => vec![text.clone(), text.clone()],
        Spoil::ProgressAfterFinal => {
            // Without a token there is no such progress; the id is what a confused server would take.
            let token = call.and_then(|call| call.token.as_ref()).unwrap_or(id);
            vec![text.clone(), progress(token, call.map_or(1, |call| call.progress + 1))]
        }
        Spoil::Late => vec![text.clone()],
    }
}

/// Another id of the same type.
fn other(id: &Id) -> Id {
    match id {
        // ours: far from what a client counts to.
        Id::Int(digits) => Id::from(digits.parse::<i64>().unwrap_or(0).wrapping_add(1_000_000_007)),
        Id::Str(text) => Id::Str(format!("{text}-wrong").into_boxed_str()),
    }
}

/// The same id in the other type.
fn other_type(id: &Id) -> Id {
    match id {
        Id::Int(digits) => Id::Str(digits.clone()),
        Id::Str(text) => Id::from(text.parse::<i64>().unwrap_or(0)),
    }
}

/// A message with values set at JSON Pointers; an empty text removes one.
///
/// # Errors
/// When a value is no JSON or its place does not exist.
pub fn edited(text: &Bytes, set: &[(String, String)]) -> Result<Bytes, Refused> {
    set.iter().try_fold(text.clone(), |text, (pointer, value)| {
        let value = (!value.trim().is_empty()).then(|| on_one_line(value)).transpose()?;
        edit::set(&text, pointer, value.as_deref()).map_err(invalid)
    })
}

/// A person's own message, as it can be sent: one JSON object on one line.
///
/// # Errors
/// When it is not that.
pub fn checked(text: &str) -> Result<Bytes, Refused> {
    let line = Bytes::from(on_one_line(text.trim())?);
    let is_message = Message::read(&line).is_some();
    is_message.then_some(line).ok_or_else(|| Refused::Invalid("a message is one JSON object".to_owned()))
}

/// Outside strings JSON has line breaks only as white space; in strings it has none.
fn on_one_line(json: &str) -> Result<String, Refused> {
    let line = json.replace(['\r', '\n'], " ");
    let is_json = crate::wire::json::Document::new(Bytes::copy_from_slice(json.as_bytes())).is_some();
    is_json.then_some(line).ok_or_else(|| Refused::Invalid(format!("`{json}` is not one JSON value")))
}

/// Whether a request may be sent again, by what its tool's contract says. ours: of all requests
/// only a tool call changes anything by itself.
#[must_use]
pub fn class(call: &OpenCall, contract: Option<&Contract>) -> (Class, Why) {
    if call.method != methods::TOOLS_CALL {
        return (Class::Safe, Why::NoEffect);
    }
    let request: serde_json::Value =
        call.text.as_ref().and_then(|text| serde_json::from_slice(text).ok()).unwrap_or_default();
    classify(contract, request.pointer("/params/arguments").unwrap_or(&serde_json::Value::Null))
}

/// A request as it is sent again. With a fresh `id` its progress has a fresh token too, so that
/// nothing of it is taken for the client's own; `None`: it keeps both.
///
/// # Errors
/// When it was too long to be kept, the arguments are no object, a key is to change whose place no
/// contract names, or it may take effect twice and nobody said that this is wanted.
pub fn again(
    call: &OpenCall,
    retry: &Retry,
    contract: Option<&Contract>,
    id: Option<&Id>,
) -> Result<Bytes, Refused> {
    let text = call.text.clone();
    let mut text = text.ok_or_else(|| Refused::Invalid("the request was too long to be kept".to_owned()))?;
    if let Some(arguments) = &retry.arguments {
        let is_object = crate::wire::json::Document::new(Bytes::copy_from_slice(arguments.as_bytes()))
            .is_some_and(|document| document.root().is_object());
        if !is_object {
            return Err(Refused::Invalid(format!("`{arguments}` is no object of arguments")));
        }
        text = edit::set(&text, "/params/arguments", Some(&on_one_line(arguments)?)).map_err(invalid)?;
    }
    if retry.key != Key::Same {
        let pointer = contract.and_then(|contract| contract.key.as_ref());
        let pointer = pointer.ok_or_else(|| {
            Refused::Invalid("no contract says where the idempotency key stands in the arguments".to_owned())
        })?;
        let fresh = id.filter(|_| retry.key == Key::New).map(|id| quoted(&id.to_string().replace('"', "")));
        let place = format!("/params/arguments{}", pointer.as_str());
        text = edit::set(&text, &place, fresh.as_deref()).map_err(invalid)?;
    }
    let changed = OpenCall { text: Some(text.clone()), ..call.clone() };
    let (class, why) = class(&changed, contract);
    let is_other = retry.arguments.is_some() || retry.key != Key::Same;
    if !retry.is_sure && (class == Class::Unsafe || class == Class::Conditional && is_other) {
        let why = if class == Class::Unsafe {
            why.as_str()
        } else {
            "another key or other arguments are another intent"
        };
        let target = call.target.as_deref().unwrap_or_default();
        return Err(Refused::Unsafe(format!("`{} {target}` may take effect twice: {why}", call.method)));
    }
    let Some(id) = id.filter(|_| !retry.has_same_id) else { return Ok(text) };
    text = edit::set(&text, "/id", Some(&id.to_string())).map_err(invalid)?;
    if call.token.is_some() {
        text = edit::set(&text, "/params/_meta/progressToken", Some(&id.to_string())).map_err(invalid)?;
    }
    Ok(text)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[expect(clippy::needless_pass_by_value, reason = "given to map_err")]
fn invalid(error: edit::EditError) -> Refused {
    Refused::Invalid(error.to_string())
}

#[cfg(test)]
mod tests;
