//! Schemas and values, sound and hostile.

use super::*;

const MODERN: Option<Era> = Some(Era::V2026_07_28);
const OLD: Option<Era> = Some(Era::V2025_06_18);

#[test]
fn a_value_is_told_what_does_not_fit() {
    let tree = r##"{"type":"object","properties":{"n":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["n"]}"##;
    let defs = r##"{"$defs":{"day":{"enum":["mon","tue"]}},"properties":{"on":{"$ref":"#/$defs/day"}}}"##;
    let cases = [
        (r#"{"type":"object"}"#, "{}", None),
        (r#"{"type":"object"}"#, "[]", Some("[] is not of type \"object\"")),
        (r#"{"type":"integer"}"#, "7.0", None),
        (tree, r#"{"n":1,"kids":[{"n":2,"kids":[]}]}"#, None),
        (tree, r#"{"n":1,"kids":[{"kids":[]}]}"#, Some("/kids/0: \"n\" is a required property")),
        (defs, r#"{"on":"mon"}"#, None),
        (defs, r#"{"on":"sun"}"#, Some("/on: \"sun\" is not one of \"mon\" or \"tue\"")),
        (r#"{"type":"string","format":"email"}"#, r#""nobody""#, None),
        (r#"{"pattern":"^[a-z]{1,64}$"}"#, r#""A""#, Some("\"A\" does not match \"^[a-z]{1,64}$\"")),
        ("true", "1", None),
    ];
    for (schema, value, expected) in cases {
        let ready = Schema::compile(schema, MODERN).unwrap_or_else(|| panic!("not ready: {schema}"));
        assert_eq!(ready.first_error(value).as_deref(), expected, "{schema} {value}");
    }
}

#[test]
fn what_cannot_be_decided_here_is_no_answer() {
    let twice = |n: usize| {
        format!(r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{}"}},{{"$ref":"#/$defs/d{}"}}]}}"##, n + 1, n + 1)
    };
    let doubling: Vec<_> = (0..40).map(twice).collect();
    let doubling =
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d40":{{"type":"string"}}}}}}"##, doubling.join(","));
    let chain: Vec<_> = (0..900).map(|n| format!(r##""d{n}":{{"$ref":"#/$defs/d{}"}}"##, n + 1)).collect();
    let chain = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d900":{{}}}}}}"##, chain.join(","));
    let deep = format!("{}{}{}", r#"{"items":"#.repeat(100), "{}", "}".repeat(100));
    let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(SCHEMA_BYTES));
    let cases = [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"anyOf":[{"$ref":"#"}]}]}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"if":{"$ref":"#/$defs/a"}}}}"##,
        r#"{"$ref":"https://example.com/schema.json"}"#,
        r#"{"$ref":"other.json#/a"}"#,
        r##"{"$ref":"#anchor"}"##,
        r##"{"$dynamicRef":"#node"}"##,
        r#"{"$schema":"https://example.com/mine","type":"object"}"#,
        r#"{"properties":{"a":{"$id":"urn:a","type":"string"}}}"#,
        r#"{"pattern":"(?=a)(?!b)c"}"#,
        r#"{"pattern":"((a{90}){90}){90}"}"#,
        r#"{"type":"nothing"}"#,
        "{",
        &doubling,
        &chain,
        &deep,
        &long,
    ];
    for schema in cases {
        assert!(Schema::compile(schema, MODERN).is_none(), "{}", short(schema));
    }
    // One that branches at each level, over a deep value.
    let branching =
        r##"{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}},"minProperties":1}"##;
    let ready = Schema::compile(branching, MODERN).unwrap();
    let nested = |levels: usize| format!("{}{{}}{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    for (levels, is_checked) in [(2, true), (14, false), (40, false), (100, false)] {
        assert_eq!(ready.first_error(&nested(levels)).is_some(), is_checked, "{levels}");
    }
    let string = Schema::compile(r#"{"type":"integer"}"#, MODERN).unwrap();
    assert!(string.first_error(r#""a""#).is_some());
    assert!(string.first_error(&format!(r#""{}""#, "x".repeat(VALUE_BYTES))).is_none());
    let pattern = Schema::compile(r#"{"pattern":"^a+$"}"#, MODERN).unwrap();
    assert!(pattern.first_error(&format!(r#""{}b""#, "a".repeat(600 << 10))).is_none());
}

#[test]
fn a_schema_is_judged_by_its_own_dialect() {
    let seven = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[{"type":"string"}]}}}"#;
    let tuple = r#"{"type":"object","properties":{"a":{"items":[{"type":"string"}]}}}"#;
    let broken = |text: &str| Some(SchemaFault::Broken(text.to_owned()));
    let cases = [
        (r#"{"type":"object"}"#, MODERN, None),
        (r#"{"type":"object","properties":{"a":true}}"#, MODERN, None),
        (r#"{"type":"objekt"}"#, MODERN, broken("/type: \"objekt\" fits none of its alternatives")),
        (seven, MODERN, None),
        (tuple, OLD, None),
        (tuple, None, None),
        (r#"{"pattern":"(?<=a)b"}"#, MODERN, None),
        (r#"{"$schema":"urn:x"}"#, MODERN, Some(SchemaFault::Dialect("urn:x".to_owned()))),
        (r#"{"$schema":7}"#, MODERN, Some(SchemaFault::Dialect("7".to_owned()))),
    ];
    for (schema, era, expected) in cases {
        assert_eq!(fault(schema, era), expected, "{schema}");
    }
    assert!(matches!(fault(tuple, MODERN), Some(SchemaFault::Broken(_))));
    assert!(matches!(fault(r#"{"required":"a"}"#, OLD), Some(SchemaFault::Broken(_))));
}

#[test]
fn the_same_text_is_judged_once() {
    let mut kept = Kept::default();
    assert_eq!(*kept.get("{}", MODERN, || 1), 1);
    assert_eq!(*kept.get("{}", MODERN, || 2), 1);
    assert_eq!(*kept.get("{}", OLD, || 3), 3, "the dialect may differ");
    for number in 0..2 * KEPT {
        kept.get(&number.to_string(), MODERN, || number);
    }
    assert!(kept.by_text.len() <= KEPT);
}
