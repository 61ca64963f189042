//! Values are found, and the index agrees with a parser on any text.

use proptest::prelude::*;

use super::*;

fn document(text: &str) -> Document {
    Document::new(Bytes::copy_from_slice(text.as_bytes())).unwrap()
}

#[test]
fn values_are_found_by_name_and_keep_their_text() {
    let document =
        document(r#" {"a":{"b":[1, "two" ,{"c":null}],"n":7.0},"a\u0062":"x\ny","d":true,"a":{"z":-1}} "#);
    let root = document.root();
    assert_eq!(root.get("a").unwrap().raw(), r#"{"z":-1}"#, "the last of equal names counts");
    assert_eq!(root.get("ab").unwrap().text().unwrap(), "x\ny");
    assert_eq!(root.at(&["a", "z"]).unwrap().integer(), Some(-1));
    assert_eq!(root.get("d").unwrap().bool(), Some(true));
    assert_eq!(root.members().map(|(name, _)| name.into_owned()).collect::<Vec<_>>(), ["a", "ab", "d", "a"]);
    let (_, first) = root.members().next().unwrap();
    assert_eq!(
        first.get("b").unwrap().items().map(Value::raw).collect::<Vec<_>>(),
        ["1", "\"two\"", "{\"c\":null}"]
    );
    assert_eq!(first.get("n").unwrap().integer(), Some(7));
    assert_eq!((first.len(), first.get("b").unwrap().len()), (2, 3));
    assert!(root.get("b").is_none() && root.get("d").unwrap().get("x").is_none());
}

#[test]
fn what_is_no_json_has_no_index() {
    let broken = ["", " ", "{", "]", "\"a", "\"a\\", "x", "{\"a\":1", "[1,2}}", "[1,2}"];
    let astray =
        ["1 2", "{}{}", "[1,]", "[,1]", "{\"a\":1,}", "{\"a\" 1}", "{1:2}", "{\"a\"}", "[1 2]", "{,}"];
    let numbers = ["01", "-", "+1", "1.", ".5", "1e", "1e+", "-01", "--1", "1.e1", "0x1", "1a", "NaN"];
    let words = ["tru", "True", "nul", "falsey", "null1"];
    let strings = ["\"\t\"", "\"\u{0}\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\\"", "'a'"];
    let long = format!("\"{}\n\"", "x".repeat(100));
    let all = broken.iter().chain(&astray).chain(&numbers).chain(&words).chain(&strings);
    for text in all.copied().chain([long.as_str()]) {
        assert!(Document::new(Bytes::copy_from_slice(text.as_bytes())).is_none(), "{text:?}");
    }
    let many = format!("[{}0]", "0,".repeat(NODE_LIMIT));
    assert!(Document::new(Bytes::from(many)).is_none());
    assert!(Document::new(Bytes::from_static(b"\"\xff\"")).is_none());
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_value() {
    assert_eq!(document("\u{feff}{\"a\":1}").root().raw(), "{\"a\":1}");
}

#[test]
fn depth_is_no_limit() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(document(&deep).root().len(), 1);
}

/// The same value, told by a parser.
fn plain(value: Value<'_>) -> serde_json::Value {
    match value.kind() {
        Kind::Array => value.items().map(plain).collect(),
        Kind::Object => value.members().map(|(name, value)| (name.into_owned(), plain(value))).collect(),
        _ => serde_json::from_str(value.raw()).unwrap(),
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::vec((any::<String>(), inner), 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Bytes that mean something in JSON, or must not stand there.
const ODD: [u8; 24] = *b"{}[]\",:\\ \n\t\x01-+.eE019utfn";

proptest! {
    #[test]
    fn the_index_agrees_with_a_parser(value in any_json(), is_pretty in any::<bool>()) {
        let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        prop_assert_eq!(plain(document(&text.unwrap()).root()), value);
    }

    /// What a parser takes for JSON has an index, and nothing else has one.
    #[test]
    fn the_index_is_as_strict_as_a_parser(
        value in any_json(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(ODD.to_vec())), 0..3),
    ) {
        let mut text = value.to_string().into_bytes();
        for (place, byte) in hits {
            let at = place.index(text.len());
            text[at] = byte;
        }
        let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(&text).is_ok();
        prop_assert_eq!(Document::new(Bytes::from(text)).is_some(), is_json);
    }

    #[test]
    fn any_bytes_are_indexed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(document) = Document::new(Bytes::from(bytes)) {
            let root = document.root();
            let _ = (root.get("a"), root.text(), root.integer(), root.number(), root.len());
            for value in root.items() {
                let _ = value.raw();
            }
        }
    }
}
