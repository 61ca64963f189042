//! Messages that midwire writes itself, and those that it changes: text in, text out.
//!
//! What is changed is cut out of the text and put back; every other byte stays as it was sent.

use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{Answer, Key, Spoil};
use crate::machine::policy::contract::Pointer;
use crate::spec::methods;
use crate::wire::json::{Document, Kind, Value};
use crate::wire::jsonrpc::Id;
use crate::wire::lines::BOM;

/// Code of an error that midwire gives in the server's place. ours: the first of those that a
/// server may define for itself.
pub const OWN_CODE: i64 = -32000;

/// What cannot be made of a text, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CannotChange(pub String);

/// `notifications/cancelled` for this request.
#[must_use]
pub fn cancelled(id: &Id, reason: Option<&str>) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(",\"reason\":{}", quoted(reason)));
    let method = quoted(methods::CANCELLED);
    format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{{"requestId":{id}{reason}}}}}"#)
}

/// Progress under this token.
#[must_use]
pub fn progress(token: &Id, progress: u64) -> String {
    let method = quoted(methods::PROGRESS);
    format!(
        r#"{{"jsonrpc":"2.0","method":{method},"params":{{"progressToken":{token},"progress":{progress}}}}}"#
    )
}

/// An error for this request.
#[must_use]
pub fn error(id: &Id, code: i64, message: &str) -> String {
    let message = quoted(message);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#)
}

/// What stands in place of the server's answer to this request; `None`: it is no message but a
/// status of HTTP.
#[must_use]
pub fn answer(id: &Id, answer: &Answer) -> Option<String> {
    Some(match answer {
        Answer::Error { code, message } => error(id, *code, message),
        Answer::Result(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Answer::Status(_) => return None,
        Answer::Malformed => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":["#),
        Answer::Oversized(bytes) => {
            let text = "x".repeat(*bytes);
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
            )
        }
    })
}

/// An answer made wrong; `None`: that is not done to its text, or there is nothing to change.
#[must_use]
pub fn spoiled(text: &Bytes, spoil: Spoil) -> Option<Bytes> {
    match spoil {
        // ours: a third is missing, so that no reader can take the rest for whole.
        Spoil::Truncate => Some(text.slice(..text.len() - text.len().div_ceil(3))),
        Spoil::WrongId => with_id(text, &other_id(&id_of(text)?)),
        Spoil::WrongIdType => with_id(text, &id_of_other_type(&id_of(text)?)),
        Spoil::DuplicateFinal | Spoil::ProgressAfterFinal | Spoil::Late => None,
    }
}

fn id_of(text: &Bytes) -> Option<Id> {
    Document::new(text.clone())?.root().get("id")?.id()
}

fn other_id(id: &Id) -> Id {
    match id {
        // ours: far from the ids that are in use.
        Id::Int(digits) => Id::from(digits.parse::<i64>().unwrap_or(0).saturating_add(1_000_000)),
        Id::Str(text) => Id::Str(format!("{text}-other").into()),
    }
}

fn id_of_other_type(id: &Id) -> Id {
    match id {
        Id::Int(digits) => Id::Str(digits.clone()),
        // A string that holds an integer becomes that; any other has none of its own.
        Id::Str(text) => Id::from(text.parse::<i64>().unwrap_or(0)),
    }
}

/// The same message with this id; `None`: it has none, or is no message.
#[must_use]
pub fn with_id(text: &Bytes, id: &Id) -> Option<Bytes> {
    let document = Document::new(text.clone())?;
    let place = document.root().get("id")?.span();
    Some(spliced(text, place, &id.to_string()))
}

/// The same text with the value at each pointer (RFC 6901) set to a JSON text, in order; an empty
/// text removes the member or item. A member that is not there is added to its object, an item at
/// `-` to its array.
///
/// # Errors
/// When the text is no JSON, or a pointer or a value cannot be used on it.
pub fn edited(text: &Bytes, set: &[(String, String)]) -> Result<Bytes, CannotChange> {
    let mut text = text.clone();
    for (pointer, value) in set {
        text = set_one(&text, pointer, value)?;
    }
    Ok(text)
}

fn set_one(text: &Bytes, pointer: &str, value: &str) -> Result<Bytes, CannotChange> {
    let cannot = |why: &str| CannotChange(format!("{pointer}: {why}"));
    if !value.is_empty() && serde_json::from_str::<&RawValue>(value).is_err() {
        return Err(cannot("the value is no JSON"));
    }
    let path =
        Pointer::new(pointer).ok_or_else(|| cannot("is no JSON Pointer; write one like /params/name"))?;
    let document = Document::new(text.clone()).ok_or_else(|| cannot("the message is no JSON"))?;
    let mut names: Vec<String> = path.names().collect();
    let Some(last) = names.pop() else {
        return if value.is_empty() {
            Err(cannot("the whole message cannot be removed; drop it"))
        } else {
            Ok(Bytes::copy_from_slice(value.as_bytes()))
        };
    };
    let parent = names
        .iter()
        .try_fold(document.root(), |at, name| child(at, name))
        .ok_or_else(|| cannot("nothing is there"))?;
    let found = child(parent, &last);
    match found {
        Some(found) if !value.is_empty() => Ok(spliced(text, found.span(), value)),
        Some(found) => {
            let place = member_place(document.root(), parent, found);
            Ok(spliced(text, place, ""))
        }
        None if value.is_empty() => Err(cannot("nothing is there")),
        None => {
            let is_item = parent.is_array() && last == "-";
            if !parent.is_object() && !is_item {
                return Err(cannot("there is no object to set a member of"));
            }
            let comma = if parent.is_empty() { "" } else { "," };
            let added =
                if is_item { format!("{comma}{value}") } else { format!("{comma}{}:{value}", quoted(&last)) };
            let end = parent.span().end.saturating_sub(1);
            Ok(spliced(text, end..end, &added))
        }
    }
}

fn child<'a>(parent: Value<'a>, name: &str) -> Option<Value<'a>> {
    match parent.kind() {
        Kind::Object => parent.get(name),
        Kind::Array => parent.items().nth(name.parse().ok()?),
        _ => None,
    }
}

/// Where a member or an item stands with its name and one of the commas beside it.
fn member_place(root: Value<'_>, parent: Value<'_>, found: Value<'_>) -> Range<usize> {
    let (inside, place) = (parent.span(), found.span());
    // A member begins behind the value before it; without one, behind the brace.
    let previous = if parent.is_array() {
        parent.items().take_while(|item| item.span().start < place.start).last()
    } else {
        parent.members().map(|(_, value)| value).take_while(|value| value.span().start < place.start).last()
    };
    let start = previous.map_or(inside.start + 1, |value| value.span().end);
    let from = root.span().start;
    let after = root.raw().get(place.end - from..(inside.end - from).saturating_sub(1)).unwrap_or_default();
    let is_last = after.trim_start().is_empty();
    match (previous, is_last) {
        (None, false) => start..place.end + after.find(',').map_or(0, |at| at + 1),
        _ => start..place.end,
    }
}

/// The request again with this id and, where they are given, other arguments; `key` is where its
/// idempotency key stands in the arguments, and `fresh` is another one.
///
/// # Errors
/// When it is no message, or the key that is to change is not declared.
pub fn again(
    text: &Bytes,
    id: &Id,
    arguments: Option<&str>,
    key: (Key, Option<&Pointer>),
    fresh: &str,
) -> Result<Bytes, CannotChange> {
    let with_id = with_id(text, id).ok_or_else(|| CannotChange("it is no request with an id".to_owned()))?;
    let mut set = Vec::new();
    if let Some(arguments) = arguments {
        set.push(("/params/arguments".to_owned(), arguments.to_owned()));
    }
    match key {
        (Key::Same, _) => {}
        (_, None) => {
            let why = "no contract of the policy says where its idempotency key stands";
            return Err(CannotChange(why.to_owned()));
        }
        (Key::New, Some(pointer)) => {
            set.push((format!("/params/arguments{}", pointer.as_str()), quoted(fresh)));
        }
        (Key::None, Some(pointer)) => {
            set.push((format!("/params/arguments{}", pointer.as_str()), String::new()));
        }
    }
    edited(&with_id, &set)
}

/// JSON as a person typed it, on one line: outside strings a line break is white space, inside
/// them there is none.
///
/// # Errors
/// When it is not one JSON value.
pub fn one_line(text: &str) -> Result<Bytes, CannotChange> {
    let line = Bytes::from(text.trim().replace(['\r', '\n'], " "));
    let is_json = serde_json::from_str::<&RawValue>(text).is_ok();
    is_json.then_some(line).ok_or_else(|| CannotChange(format!("`{text}` is not one JSON value")))
}

/// A person's own message, as it can be sent: one JSON object on one line.
///
/// # Errors
/// When it is not that.
pub fn own_message(text: &str) -> Result<Bytes, CannotChange> {
    let line = one_line(text)?;
    let is_object = line.starts_with(b"{");
    is_object.then_some(line).ok_or_else(|| CannotChange("a message is one JSON object".to_owned()))
}

/// The text with what stands at `place` of its document replaced.
fn spliced(text: &Bytes, place: Range<usize>, with: &str) -> Bytes {
    // A byte order mark is not part of the document.
    let shift = if text.starts_with(BOM) { BOM.len() } else { 0 };
    let front = text.get(..place.start + shift).unwrap_or_default();
    let back = text.get(place.end + shift..).unwrap_or_default();
    [front, with.as_bytes(), back].concat().into()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    #[test]
    fn a_pointer_changes_its_own_value_and_no_other_byte() {
        let text = r#" { "id" : 1.0 , "params":{"name":"a~/b", "n":[1, 2 ,3],"z":{}} } "#;
        let cases = [
            ("/id", "7", Ok(r#" { "id" : 7 , "params":{"name":"a~/b", "n":[1, 2 ,3],"z":{}} } "#)),
            (
                "/params/n/1",
                "{}",
                Ok(r#" { "id" : 1.0 , "params":{"name":"a~/b", "n":[1, {} ,3],"z":{}} } "#),
            ),
            ("/params/n/0", "", Ok(r#" { "id" : 1.0 , "params":{"name":"a~/b", "n":[ 2 ,3],"z":{}} } "#)),
            ("/params/n/2", "", Ok(r#" { "id" : 1.0 , "params":{"name":"a~/b", "n":[1, 2],"z":{}} } "#)),
            (
                "/params/n/-",
                "4",
                Ok(r#" { "id" : 1.0 , "params":{"name":"a~/b", "n":[1, 2 ,3,4],"z":{}} } "#),
            ),
            ("/params/name", "", Ok(r#" { "id" : 1.0 , "params":{ "n":[1, 2 ,3],"z":{}} } "#)),
            ("/params/z", "", Ok(r#" { "id" : 1.0 , "params":{"name":"a~/b", "n":[1, 2 ,3]} } "#)),
            (
                "/params/z/~0x",
                "true",
                Ok(r#" { "id" : 1.0 , "params":{"name":"a~/b", "n":[1, 2 ,3],"z":{"~x":true}} } "#),
            ),
            (
                "/params/q",
                "1",
                Ok(r#" { "id" : 1.0 , "params":{"name":"a~/b", "n":[1, 2 ,3],"z":{},"q":1} } "#),
            ),
            ("/params/q", "", Err("nothing is there")),
            ("/no/q", "1", Err("nothing is there")),
            ("/id/q", "1", Err("no object")),
            ("id", "1", Err("no JSON Pointer")),
            ("/id", "{", Err("no JSON")),
            ("", "", Err("drop it")),
        ];
        for (pointer, value, expected) in cases {
            let found = edited(&bytes(text), &[(pointer.to_owned(), value.to_owned())]);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{pointer} {value}"),
                (Err(error), Err(why)) => assert!(error.0.contains(why), "{pointer}: {error}"),
                (found, _) => panic!("{pointer} {value}: {found:?}"),
            }
        }
        let marked = bytes("\u{feff}{\"id\":1}");
        assert_eq!(with_id(&marked, &Id::from(2)).unwrap(), "\u{feff}{\"id\":2}");
    }

    #[test]
    fn an_answer_is_made_wrong_in_one_way() {
        let text = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let named = r#"{"jsonrpc":"2.0","id":"a","result":{}}"#;
        let cases = [
            (text, Spoil::WrongId, Some(r#"{"jsonrpc":"2.0","id":1000007,"result":{}}"#)),
            (text, Spoil::WrongIdType, Some(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#)),
            (named, Spoil::WrongId, Some(r#"{"jsonrpc":"2.0","id":"a-other","result":{}}"#)),
            (named, Spoil::WrongIdType, Some(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#)),
            (text, Spoil::Truncate, Some(r#"{"jsonrpc":"2.0","id":7,"#)),
            ("{}", Spoil::WrongId, None),
            (text, Spoil::Late, None),
        ];
        for (text, spoil, expected) in cases {
            assert_eq!(spoiled(&bytes(text), spoil).as_deref(), expected.map(str::as_bytes), "{spoil:?}");
        }
    }

    #[test]
    fn a_request_again_differs_where_it_was_asked_to() {
        let text = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"k":"x"}}}"#;
        let key = Pointer::new("/k").unwrap();
        let call = |arguments: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":"m","method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            )
        };
        let cases = [
            (None, (Key::Same, None), Ok(call(r#"{"a":1,"k":"x"}"#))),
            (None, (Key::New, Some(&key)), Ok(call(r#"{"a":1,"k":"fresh"}"#))),
            (None, (Key::None, Some(&key)), Ok(call(r#"{"a":1}"#))),
            (Some(r#"{"a":2}"#), (Key::Same, None), Ok(call(r#"{"a":2}"#))),
            (Some(r#"{"a":2}"#), (Key::New, Some(&key)), Ok(call(r#"{"a":2,"k":"fresh"}"#))),
            (None, (Key::New, None), Err(())),
        ];
        for (arguments, key, expected) in cases {
            let found = again(&bytes(text), &Id::Str("m".into()), arguments, key, "fresh");
            assert_eq!(found.map_err(|_| ()), expected.map(Bytes::from), "{arguments:?} {key:?}");
        }
    }

    #[test]
    fn a_persons_message_is_one_object_on_one_line() {
        assert_eq!(own_message("{\n \"a\": 1 }\n").unwrap(), r#"{  "a": 1 }"#);
        for text in ["", "[]", "{} {}", "{\"a\":\"\n\"}", "7"] {
            assert!(own_message(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_midwire_writes_can_be_read() {
        let id = Id::Str("a\"b".into());
        let texts = [
            cancelled(&id, Some("no\nmore")),
            cancelled(&id, None),
            progress(&id, 3),
            error(&id, OWN_CODE, "x\"y"),
            answer(&id, &Answer::Result("{\"a\":1}".to_owned())).unwrap(),
            answer(&id, &Answer::Oversized(100)).unwrap(),
        ];
        for text in texts {
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        }
        assert!(
            serde_json::from_str::<serde_json::Value>(&answer(&id, &Answer::Malformed).unwrap()).is_err()
        );
        assert_eq!(answer(&id, &Answer::Status(500)), None);
    }
}
