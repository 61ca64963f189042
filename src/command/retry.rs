//! A request that is sent again: whether it may be, and what it says then.

use bytes::Bytes;

use super::book::OpenCall;
use super::text::{self, CannotChange};
use super::{Key, Refused, Retry};
use crate::machine::policy::contract::Contract;
use crate::machine::retry::{Class, Why, classify};
use crate::spec::methods;
use crate::wire::jsonrpc::Id;

/// Where a request names the token of its progress.
const TOKEN: &str = "/params/_meta/progressToken";

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

/// A request as it is sent again. With `id`, a fresh one, its progress has a fresh token too, so
/// that nothing of it is taken for the client's own; with the same id it keeps both.
///
/// # Errors
/// When it was too long to be kept or cannot be changed so, or when it may take effect twice and
/// nobody said that this is wanted.
pub fn again(call: &OpenCall, retry: &Retry, contract: Option<&Contract>, id: &Id) -> Result<Bytes, Refused> {
    let text = call.text.as_ref();
    let text = text.ok_or_else(|| Refused::Invalid("the request was too long to be kept".to_owned()))?;
    let invalid = |error: CannotChange| Refused::Invalid(error.0);
    let arguments = retry.arguments.as_deref().map(text::one_line).transpose().map_err(invalid)?;
    if arguments.as_ref().is_some_and(|arguments| !arguments.starts_with(b"{")) {
        return Err(Refused::Invalid("the arguments are no JSON object".to_owned()));
    }
    let arguments = arguments.as_deref().map(String::from_utf8_lossy);
    let key = (retry.key, contract.and_then(|contract| contract.key.as_ref()));
    let fresh = id.to_string().replace('"', "");
    let own = if retry.has_same_id { &call.id } else { id };
    let mut again = text::again(text, own, arguments.as_deref(), key, &fresh).map_err(invalid)?;
    if !retry.has_same_id && call.token.is_some() {
        again = text::edited(&again, &[(TOKEN.to_owned(), id.to_string())]).map_err(invalid)?;
    }
    let (class, why) = class(&OpenCall { text: Some(again.clone()), ..call.clone() }, contract);
    let is_other = retry.arguments.is_some() || retry.key != Key::Same;
    let why = match class {
        Class::Unsafe => why.as_str(),
        Class::Conditional if is_other => "another key or other arguments are another intent",
        Class::Conditional | Class::Safe => return Ok(again),
    };
    if retry.is_sure {
        return Ok(again);
    }
    let target = call.target.as_deref().unwrap_or_default();
    Err(Refused::Unsafe(format!("`{} {target}` may take effect twice: {why}", call.method)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::book::Book;
    use crate::command::message::{Message, Place};
    use crate::event::{Dir, Transport};

    const PLACE: Place = Place {
        dir: Dir::C2s,
        transport: Transport::Stdio,
        stream: None,
        conn: None,
        status: None,
        era: None,
    };

    fn call(text: &str) -> OpenCall {
        let mut book = Book::default();
        let message = Message::read(&Bytes::copy_from_slice(text.as_bytes())).unwrap();
        book.note(PLACE, &message).unwrap().clone()
    }

    fn contract(rest: &str) -> Contract {
        toml::from_str(&format!("tools = [\"charge\"]\n{rest}")).unwrap()
    }

    fn charge(id: &str, arguments: &str, token: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"charge","arguments":{arguments},"_meta":{{"progressToken":{token}}}}}}}"#
        )
    }

    #[test]
    fn a_request_sent_again_keeps_all_but_what_must_change() {
        let keyed = contract("side_effect = \"effect\"\nkey = \"/key\"");
        let reads = contract("side_effect = \"none\"");
        let id = Id::Str("midwire-7-1".into());
        let plain = Retry { key: Key::Same, arguments: None, has_same_id: false, is_sure: false };
        let sure = Retry { is_sure: true, ..plain.clone() };
        let (fresh, same) = (r#""midwire-7-1""#, r#"{"n": 1.0,"key":"k1"}"#);
        let first = call(&charge("7", same, r#""t""#));
        let cases = [
            (plain.clone(), Some(&reads), charge(fresh, same, fresh)),
            (plain.clone(), Some(&keyed), charge(fresh, same, fresh)),
            (sure.clone(), None, charge(fresh, same, fresh)),
            (Retry { has_same_id: true, ..sure.clone() }, None, charge("7", same, r#""t""#)),
            (Retry { key: Key::None, ..sure.clone() }, Some(&keyed), charge(fresh, r#"{"n": 1.0}"#, fresh)),
            (
                Retry { key: Key::New, ..sure.clone() },
                Some(&keyed),
                charge(fresh, r#"{"n": 1.0,"key":"midwire-7-1"}"#, fresh),
            ),
            (Retry { arguments: Some("{\n}".to_owned()), ..sure.clone() }, None, charge(fresh, "{ }", fresh)),
        ];
        for (retry, contract, expected) in cases {
            let found = again(&first, &retry, contract, &id);
            assert_eq!(found, Ok(Bytes::from(expected)), "{retry:?}");
        }
        let refused = [
            (plain.clone(), None, "may take effect twice: no contract says what it does"),
            (Retry { key: Key::None, ..plain.clone() }, Some(&keyed), "may take effect twice"),
            (Retry { arguments: Some("{}".to_owned()), ..plain.clone() }, Some(&keyed), "take effect twice"),
            (Retry { key: Key::New, ..sure.clone() }, None, "no contract"),
            (Retry { arguments: Some("[]".to_owned()), ..sure.clone() }, None, "no JSON object"),
            (Retry { arguments: Some("{".to_owned()), ..sure }, None, "not one JSON value"),
        ];
        for (retry, contract, expected) in refused {
            let error = again(&first, &retry, contract, &id).unwrap_err().to_string();
            assert!(error.contains(expected), "{retry:?}: {error}");
        }
        let list = call(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert!(again(&list, &plain, None, &id).is_ok());
    }
}
