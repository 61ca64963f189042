//! What must be read from envelopes: whole, damaged, deep, hostile.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn envelope(text: &str) -> Envelope<'_> {
    match read(text.as_bytes()) {
        Frame::Message(envelope) => envelope,
        other => unreachable!("{text}: {other:?}"),
    }
}

fn raw(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_message_is_told_by_its_members() {
    use EnvelopeFault::*;
    let cases: [(&str, Kind, &[EnvelopeFault]); 21] = [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Kind::Request, &[]),
        (r#"{"id":1,"method":"ping","jsonrpc":"2.0"}"#, Kind::Request, &[]),
        (r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, Kind::Notification, &[]),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Kind::Result, &[]),
        (r#"{"result":null,"jsonrpc":"2.0","id":"a"}"#, Kind::Result, &[]),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":""}}"#, Kind::Error, &[]),
        (r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":""}}"#, Kind::Error, &[]),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":""}}"#, Kind::Error, &[]),
        (r#"{"jsonrpc":"\u0032.0","id":7.0,"method":"ping"}"#, Kind::Request, &[]),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, Kind::Request, &[BadVersion]),
        (r#"{"jsonrpc":"2.00","id":1,"method":"ping"}"#, Kind::Request, &[BadVersion]),
        (r#"{"id":1,"method":"ping"}"#, Kind::Request, &[BadVersion]),
        (r#"{"jsonrpc":"2.0"}"#, Kind::Invalid, &[NoKind]),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#, Kind::Invalid, &[NoKind]),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","error":{},"result":{}}"#, Kind::Invalid, &[NoKind]),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#, Kind::Invalid, &[ResultAndError]),
        (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, Kind::Request, &[BadId(String::new())]),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Kind::Result, &[BadId(String::new())]),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, Kind::Request, &[BadId(String::new())]),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Kind::Request, &[MethodNotString]),
        ("{}", Kind::Invalid, &[BadVersion, NoKind]),
    ];
    for (text, kind, faults) in cases {
        let got = envelope(text);
        assert_eq!(got.kind, kind, "{text}");
        let without_text: Vec<_> = got
            .faults
            .iter()
            .map(|fault| if let BadId(_) = fault { BadId(String::new()) } else { fault.clone() })
            .collect();
        assert_eq!(without_text, faults, "{text}");
    }
}

#[test]
fn order_duplicates_null_and_big_numbers_are_kept() {
    let text = r#"{"b":null,"id":1,"a":123456789012345678901234567890,"id":2,"b":1E5,"id":3}"#;
    let got = envelope(text);
    let seen: Vec<_> = got.members.iter().map(|(name, raw)| format!("{name}={}", raw.get())).collect();
    assert_eq!(seen, ["b=null", "id=1", "a=123456789012345678901234567890", "id=2", "b=1E5", "id=3"]);
    assert_eq!(got.id(), Some(Id::from(3)), "the last of duplicates counts");
    let twice: Vec<_> =
        got.faults.iter().filter(|f| matches!(f, EnvelopeFault::DuplicateMember(_))).collect();
    assert_eq!(
        twice,
        [&EnvelopeFault::DuplicateMember("id".into()), &EnvelopeFault::DuplicateMember("b".into())]
    );
    assert!(got.faults.contains(&EnvelopeFault::NoKind));
    assert!(!envelope(r#"{"method":"a"}"#).has_id());
    assert!(envelope(r#"{"method":"a","id":null}"#).has_id());
    let bad = envelope(r#"{"jsonrpc":"2.0","id":{"a" : 1},"method":"a"}"#);
    assert_eq!(bad.faults, [EnvelopeFault::BadId(r#"{"a" : 1}"#.into())]);
}

#[test]
fn escapes_and_lone_surrogates_are_read() {
    let got = envelope(r#"{"jsonrpc":"2.0","\u0069d":"\ud800","method":"a\/\u00e9","\udc00":1}"#);
    assert_eq!(got.id(), Some(Id::Str("\u{fffd}".into())));
    assert_eq!(got.method().as_deref(), Some("a/é"));
    assert_eq!(got.members[3].0, "\u{fffd}");
    assert_eq!(got.faults, []);
    let cases = [
        (r#""plain""#, Some("plain")),
        (r#""é\ud83d\ude00""#, Some("é😀")),
        (r#""\ud83d""#, Some("\u{fffd}")),
        (r#""\ud83dx\ude00\ud83d""#, Some("\u{fffd}x\u{fffd}\u{fffd}")),
        (r#""한\ud800""#, Some("한\u{fffd}")),
        ("7", None),
        ("null", None),
    ];
    for (text, want) in cases {
        assert_eq!(string(raw(text)).as_deref(), want, "{text}");
    }
}

#[test]
fn depth_is_no_limit() {
    for depth in [127, 128, 100_000] {
        let deep = "[".repeat(depth) + &"]".repeat(depth);
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{deep},"y":1}}}}"#);
        let got = envelope(&text);
        assert_eq!((got.kind, got.faults.len()), (Kind::Request, 0));
        let params = got.member("params").unwrap();
        assert_eq!(at(params, &["y"]).map(RawValue::get), Some("1"));
        assert_eq!(members(params).unwrap().len(), 2);
        assert!(matches!(read(deep.as_bytes()), Frame::Batch(items) if items.len() == 1));
        assert!(matches!(read("[".repeat(depth).as_bytes()), Frame::NotJson { .. }));
    }
}

#[test]
fn a_frame_that_is_no_message_says_what_it_is() {
    assert!(matches!(read(b""), Frame::Blank));
    assert!(matches!(read(b" \t\r\n"), Frame::Blank));
    assert!(matches!(read(b"\xef\xbb\xbf"), Frame::Blank));
    assert!(matches!(read(b"\xef\xbb\xbf{\"method\":\"a\"}"), Frame::Message(_)));
    for other in ["1", "null", " true ", "\"text\"", "1e999"] {
        assert!(matches!(read(other.as_bytes()), Frame::OtherJson), "{other}");
    }
    let cases: [(&[u8], usize); 9] = [
        (b"not json", 1),
        (b"Server ready", 0),
        (b"{not json", 1),
        (b"{\"a\":1} x", 8),
        (b"{\"a\":1", 6),
        (b"{\n  \"a\": ?\n}", 9),
        (b"\xef\xbb\xbf?", 3),
        (b"{\"a\":\"\x01\"}", 6),
        (b"[1,]", 3),
    ];
    for (bytes, want) in cases {
        let Frame::NotJson { at, why } = read(bytes) else { unreachable!("{bytes:?}") };
        assert!(at.abs_diff(want) <= 1, "{bytes:?}: {at} {why}");
    }
    assert!(matches!(read(b"{\"a\":\"Gr\xfc\xdf\"}"), Frame::NotUtf8 { at: 8 }));
}

#[test]
fn bytes_outside_utf8_can_be_replaced_and_read() {
    let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"text\":\"Gr\xfc\xdfe\"}}";
    let text = String::from_utf8_lossy(bytes);
    assert_eq!(envelope(&text).id(), Some(Id::from(3)));
}

#[test]
fn a_batch_is_read_message_by_message() {
    let Frame::Batch(items) =
        read(br#" [{"jsonrpc":"2.0","id":1,"method":"a"}, 7, {"jsonrpc":"2.0","method":"b"}]"#)
    else {
        unreachable!()
    };
    assert_eq!(
        items.iter().map(|e| e.kind).collect::<Vec<_>>(),
        [Kind::Request, Kind::Invalid, Kind::Notification]
    );
    assert!(items[1].members.is_empty());
    assert!(matches!(read(b"[]"), Frame::Batch(items) if items.is_empty()));
}

#[test]
fn members_and_messages_over_the_limit_are_counted() {
    let many: Vec<String> = (0..300).map(|i| format!(r#""m{i}":{i}"#)).collect();
    let text = format!("{{{}}}", many.join(","));
    let got = envelope(&text);
    assert_eq!(got.members.len(), MEMBER_LIMIT);
    assert!(got.faults.contains(&EnvelopeFault::OverLimit(300 - MEMBER_LIMIT)));
    let batch = format!("[{}]", vec!["{}"; BATCH_LIMIT + 3].join(","));
    let Frame::Batch(items) = read(batch.as_bytes()) else { unreachable!() };
    assert_eq!(items.len(), BATCH_LIMIT + 1);
    assert_eq!(items.last().unwrap().faults, [EnvelopeFault::OverLimit(3)]);
}

#[test]
fn a_path_is_followed_through_objects() {
    let params = raw(r#"{"_meta":{"progressToken":1},"name":"echo","_meta":{"progressToken":"t","a":{}}}"#);
    let cases: [(&[&str], Option<&str>); 6] = [
        (&["_meta", "progressToken"], Some("\"t\"")),
        (&["name"], Some("\"echo\"")),
        (&["_meta", "a", "b"], None),
        (&["name", "x"], None),
        (&["absent"], None),
        (&[], Some(params.get())),
    ];
    for (path, want) in cases {
        assert_eq!(at(params, path).map(RawValue::get), want, "{path:?}");
    }
    assert_eq!(members(raw("[1]")).map(|m| m.len()), None);
}

/// JSON values of moderate size, with the names of an envelope among their members.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::from("2.0")),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("jsonrpc".to_owned()),
        Just("id".to_owned()),
        Just("method".to_owned()),
        Just("result".to_owned()),
        Just("error".to_owned()),
        "\\PC{0,5}",
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::hash_map(name.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn agrees(text: &str) {
    match (read(text.as_bytes()), &serde_json::from_str::<Value>(text).unwrap()) {
        (Frame::Message(envelope), Value::Object(object)) => {
            assert_eq!(envelope.members.len(), object.len());
            for (name, member) in object {
                let raw = envelope.member(name).unwrap();
                assert_eq!(&serde_json::from_str::<Value>(raw.get()).unwrap(), member);
                assert_eq!(string(raw).as_deref(), member.as_str());
                for (below, inner) in member.as_object().into_iter().flatten() {
                    let raw = at(raw, &[below]).unwrap();
                    assert_eq!(&serde_json::from_str::<Value>(raw.get()).unwrap(), inner);
                }
            }
            assert_eq!(envelope.has_id(), object.contains_key("id"));
        }
        (Frame::Batch(items), Value::Array(array)) => {
            assert_eq!(items.len(), array.len());
            for (item, value) in items.iter().zip(array) {
                assert_eq!(item.members.len(), value.as_object().map_or(0, serde_json::Map::len));
            }
        }
        (Frame::OtherJson, Value::Object(_) | Value::Array(_)) => unreachable!("{text}"),
        (Frame::OtherJson, _) => {}
        (frame, _) => unreachable!("{text}: {frame:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn reading_agrees_with_a_whole_parse(value in json(), is_pretty in any::<bool>()) {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        agrees(&text.unwrap());
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_agree_on_what_is_json(
        bytes in proptest::collection::vec(any::<u8>(), 0..60)
    ) {
        let is_json = serde_json::from_slice::<Value>(&bytes).is_ok();
        if let Frame::NotJson { at, .. } | Frame::NotUtf8 { at } = read(&bytes) {
            prop_assert!(!is_json && at <= bytes.len());
        }
    }

    #[test]
    fn text_near_json_never_panics_and_agrees_on_what_is_json(
        text in "[\\[\\]{}:,\"0-9eE.\\-+ a-f\\\\u\r\n]{0,30}"
    ) {
        let is_json = serde_json::from_str::<Value>(&text).is_ok();
        let frame = read(text.as_bytes());
        if is_json {
            prop_assert!(!matches!(frame, Frame::NotJson { .. } | Frame::Blank), "read as {:?}", frame);
        }
        if let Some(id) = Id::from_raw(&text) {
            prop_assert_eq!(Id::from_raw(&id.to_string()), Some(id));
        }
    }
}
