//! What midwire writes is what it says it is, and nothing else in a message changes.

use super::*;
use crate::command::book::Book;
use crate::command::message::Place;
use crate::event::{Dir, Transport};

const PLACE: Place =
    Place { dir: Dir::C2s, transport: Transport::Stdio, stream: None, conn: None, status: None, era: None };

fn call(text: &str) -> OpenCall {
    let mut book = Book::default();
    let message = Message::read(&Bytes::copy_from_slice(text.as_bytes())).unwrap();
    book.note(PLACE, &message).unwrap().clone()
}

fn charge() -> OpenCall {
    call(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"charge","arguments":{"n": 1.0,"key":"k1"},"_meta":{"progressToken":"t"}}}"#,
    )
}

fn contract(rest: &str) -> Contract {
    toml::from_str(&format!("tools = [\"charge\"]\n{rest}")).unwrap()
}

#[test]
fn an_answer_in_the_servers_place_is_for_its_call() {
    let id = Id::Str("a\"b".into());
    let cases = [
        (
            Answer::Error { code: -32603, message: "no \"way\"".to_owned() },
            r#"{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32603,"message":"no \"way\""}}"#,
        ),
        (Answer::Result("{\n\"x\": 1}".to_owned()), r#"{"jsonrpc":"2.0","id":"a\"b","result":{ "x": 1}}"#),
        (Answer::Malformed, r#"{"jsonrpc":"2.0","id":"a\"b","result":{oops"#),
        (
            Answer::Oversized(3),
            r#"{"jsonrpc":"2.0","id":"a\"b","result":{"content":[{"type":"text","text":"xxx"}]}}"#,
        ),
    ];
    for (wanted, expected) in cases {
        assert_eq!(answer(&id, None, &wanted).unwrap().unwrap(), expected, "{wanted:?}");
    }
    assert_eq!(answer(&id, None, &Answer::Status(503)), Ok(None));
    assert!(answer(&id, None, &Answer::Result("{} {}".to_owned())).is_err());
}

#[test]
fn a_spoiled_answer_is_wrong_in_one_way() {
    let text = Bytes::from_static(br#"{"jsonrpc":"2.0","id":7,"result":{"a": 1e2}}"#);
    let whole = std::str::from_utf8(&text).unwrap();
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"message":"sent by midwire"}}"#;
    let cases: [(Spoil, &[&str]); 6] = [
        (Spoil::Truncate, &[r#"{"jsonrpc":"2.0","id":7,"result":"#]),
        (Spoil::WrongId, &[r#"{"jsonrpc":"2.0","id":1000000014,"result":{"a": 1e2}}"#]),
        (Spoil::WrongIdType, &[r#"{"jsonrpc":"2.0","id":"7","result":{"a": 1e2}}"#]),
        (Spoil::DuplicateFinal, &[whole, whole]),
        (Spoil::ProgressAfterFinal, &[whole, progress]),
        (Spoil::Late, &[whole]),
    ];
    for (spoil, expected) in cases {
        assert_eq!(spoiled(&text, &Id::from(7), Some(&charge()), spoil), expected, "{spoil:?}");
    }
}

#[test]
fn a_request_sent_again_keeps_all_but_what_must_change() {
    let keyed = contract("side_effect = \"effect\"\nkey = \"/key\"");
    let reads = contract("side_effect = \"none\"");
    let id = Id::Str("midwire-7-1".into());
    let plain = Retry { key: Key::Same, arguments: None, has_same_id: false, is_sure: false };
    let sure = Retry { is_sure: true, ..plain.clone() };
    let sent = |id: &str, arguments: &str, token: &str| {
        Ok(Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"charge","arguments":{arguments},"_meta":{{"progressToken":{token}}}}}}}"#
        )))
    };
    let (fresh, same) = (r#""midwire-7-1""#, r#"{"n": 1.0,"key":"k1"}"#);
    let cases = [
        (plain.clone(), Some(&reads), sent(fresh, same, fresh)),
        (plain.clone(), Some(&keyed), sent(fresh, same, fresh)),
        (sure.clone(), None, sent(fresh, same, fresh)),
        (Retry { has_same_id: true, ..sure.clone() }, None, sent("7", same, r#""t""#)),
        (Retry { key: Key::None, ..sure.clone() }, Some(&keyed), sent(fresh, r#"{"n": 1.0}"#, fresh)),
        (
            Retry { key: Key::New, ..sure.clone() },
            Some(&keyed),
            sent(fresh, r#"{"n": 1.0,"key":"midwire-7-1"}"#, fresh),
        ),
        (Retry { arguments: Some("{\n}".to_owned()), ..sure.clone() }, None, sent(fresh, "{ }", fresh)),
    ];
    for (retry, contract, expected) in cases {
        assert_eq!(again(&charge(), &retry, contract, Some(&id)), expected, "{retry:?}");
    }
    let refused = [
        (plain.clone(), None, "may take effect twice: no contract says what it does"),
        (Retry { key: Key::None, ..plain.clone() }, Some(&keyed), "may take effect twice"),
        (Retry { arguments: Some("{}".to_owned()), ..plain.clone() }, Some(&keyed), "may take effect twice"),
        (Retry { key: Key::New, ..sure.clone() }, None, "no contract says where"),
        (Retry { arguments: Some("[]".to_owned()), ..sure }, None, "no object of arguments"),
    ];
    for (retry, contract, expected) in refused {
        let error = again(&charge(), &retry, contract, Some(&id)).unwrap_err().to_string();
        assert!(error.contains(expected), "{retry:?}: {error}");
    }
    let list = call(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(again(&list, &plain, None, Some(&id)).is_ok());
}

#[test]
fn a_persons_message_is_one_object_on_one_line() {
    assert_eq!(checked("{\n \"a\": 1 }\n").unwrap(), r#"{  "a": 1 }"#);
    for text in ["", "[]", "{} {}", "{\"a\":\"\n\"}", "7"] {
        assert!(checked(text).is_err(), "{text:?}");
    }
}
