//! The vectors, and which differences count.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const CHARGE: &str = "a858743e0990b172cd863784ae2d4fa92badf7d21c73c1ccff188025d9f9da73";

fn charge(arguments: &str) -> String {
    let key = Pointer::new("/key").unwrap();
    fingerprint(Some("demo"), "charge_account", arguments, Some(&key)).unwrap()
}

#[test]
fn the_vectors_of_the_fingerprint_hold() {
    assert_eq!(charge(r#"{"account":"acct-7","cents":1200}"#), CHARGE);
    assert!(charge(r#"{"account":"acct-7","cents":700}"#).starts_with("df215eef"));
    for (quantity, start) in [(2, "cf4626b4"), (3, "9c65aabd")] {
        let arguments = format!(r#"{{"sku":"SKU-1","quantity":{quantity}}}"#);
        let found = fingerprint(Some("demo"), "reserve_inventory", &arguments, None).unwrap();
        assert!(found.starts_with(start), "{quantity}: {found}");
    }
}

#[test]
fn only_what_changes_the_intent_changes_the_fingerprint() {
    let same = [
        r#"{"key":"checkout-7","account":"acct-7","cents":1200}"#,
        r#"{"cents":1200,"account":"acct-7"}"#,
        " { \"cents\" : 1200 ,\r\n\t\"account\" : \"acct-7\" } ",
        r#"{"cents":1200,"account":"\u0061cct-7"}"#,
        r#"{"cents":7,"cents":1200,"account":"acct-7"}"#,
    ];
    for arguments in same {
        assert_eq!(charge(arguments), CHARGE, "{arguments}");
    }
    let other = [
        r#"{"account":"acct-7","cents":1200.0}"#,
        r#"{"account":"acct-7","cents":"1200"}"#,
        r#"{"account":"acct-7","cents":1200,"note":null}"#,
        r#"{"account":"acct-7","cents":1200,"deep":{"key":"checkout-7"}}"#,
        r#"{"account":"Acct-7","cents":1200}"#,
        "null",
    ];
    for arguments in other {
        assert_ne!(charge(arguments), CHARGE, "{arguments}");
    }
    let arguments = r#"{"account":"acct-7","cents":1200}"#;
    for (tenant, operation) in
        [(None, "charge_account"), (Some("other"), "charge_account"), (Some("demo"), "x")]
    {
        assert_ne!(fingerprint(tenant, operation, arguments, None).unwrap(), CHARGE);
    }
}

#[test]
fn the_compact_form_is_sorted_and_keeps_numbers_as_written() {
    let cases = [
        (
            r#"{"b":1,"a":{"d":[1, 2.50 ,1e3,-0],"c":true}}"#,
            "",
            r#"{"a":{"c":true,"d":[1,2.50,1e3,-0]},"b":1}"#,
        ),
        ("123456789012345678901234567890", "", "123456789012345678901234567890"),
        (r#"{"é":1,"z":2,"Z":3,"":4}"#, "", r#"{"":4,"Z":3,"z":2,"é":1}"#),
        (r#""\u00e9\n\u001f\/\ud83d\ude00""#, "", "\"é\\n\\u001f/\u{1f600}\""),
        (r#"{"a":{"k":1,"b":2},"k":3}"#, "/a/k", r#"{"a":{"b":2},"k":3}"#),
        (r#"{"a/b":{"~k":1},"a":{"b":1}}"#, "/a~1b/~0k", r#"{"a":{"b":1},"a/b":{}}"#),
        (r#"{"a":[{"k":1}]}"#, "/a/0/k", r#"{"a":[{"k":1}]}"#),
        (r#"{"a":1}"#, "/b", r#"{"a":1}"#),
    ];
    for (json, without, expected) in cases {
        let pointer = (!without.is_empty()).then(|| Pointer::new(without).unwrap());
        assert_eq!(compact(json, pointer.as_ref()).as_deref(), Ok(expected), "{json} {without}");
    }
}

#[test]
fn what_cannot_be_read_has_no_fingerprint() {
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(compact(&deep(DEPTH_LIMIT), None).is_ok());
    let unreadable = ["", "{", "{} {}", r#""\ud800""#, r#"{"\ud800":1}"#, "nul"];
    for json in unreadable.map(str::to_owned).into_iter().chain([DEPTH_LIMIT + 1, 100_000].map(deep)) {
        assert_eq!(compact(&json, None), Err(Unreadable));
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The compact form says the same, is its own compact form, and does not depend on blanks.
    #[test]
    fn the_compact_form_is_one_form(value in json()) {
        let form = compact(&value.to_string(), None).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Value>(&form).unwrap(), &value);
        prop_assert_eq!(compact(&form, None), Ok(form.clone()));
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(compact(&pretty, None), Ok(form));
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let is_json = serde_json::from_str::<Value>(&text).is_ok();
        prop_assert_eq!(compact(&text, None).is_ok(), is_json);
    }
}
