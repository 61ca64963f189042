//! Forms: the flat part of JSON Schema that an elicitation may use, and whether content fits it.
//! Written out here because a fraction is a number, whatever a general validator is told, and
//! because patterns and formats are left to the peers.

use crate::rules::case::short;
use crate::wire::json::Value;

/// Properties and values that are looked through; a longer form is not judged. ours.
const FIELDS_LIMIT: usize = 256;

/// The first property that is no simple value: an object, or a list other than a choice of several
/// (which exists `has_lists` eras only).
pub(super) fn nested(schema: Value<'_>, has_lists: bool) -> Option<String> {
    let is_nested = |property: Value<'_>| match property.get("type").and_then(Value::text).as_deref() {
        Some("object") => true,
        Some("array") => !(has_lists && property.get("items").is_some_and(is_choice)),
        _ => false,
    };
    let mut properties = schema.get("properties").into_iter().flat_map(Value::members);
    properties.find(|(_, property)| is_nested(*property)).map(|(name, _)| name.into_owned())
}

/// What does not fit, in words.
pub(super) fn misfit(schema: Value<'_>, content: Value<'_>) -> Option<String> {
    if !content.is_object() {
        return Some("its content is no object".to_owned());
    }
    let lists = [schema.get("required"), schema.get("properties"), Some(content)];
    if lists.into_iter().flatten().any(|list| list.len() > FIELDS_LIMIT) {
        return None;
    }
    let required = schema.get("required").into_iter().flat_map(Value::items).filter_map(Value::text);
    for name in required {
        if content.get(&name).is_none() {
            return Some(format!("{:?} is missing", short(&name)));
        }
    }
    for (name, value) in content.members() {
        let property = schema.at(&["properties", &name]);
        if let Some(why) = property.and_then(|property| unfit(property, value)) {
            return Some(format!("{:?} {why}: {}", short(&name), short(value.raw())));
        }
    }
    None
}

fn is_choice(property: Value<'_>) -> bool {
    ["enum", "oneOf", "anyOf"].into_iter().any(|name| property.get(name).is_some())
}

/// The values that a property chooses from; `None` where it is free, or offers too much.
fn choices(property: Value<'_>) -> Option<Vec<Value<'_>>> {
    let named = || property.get("oneOf").or_else(|| property.get("anyOf"));
    let list = property.get("enum").or_else(named).filter(|list| list.len() <= FIELDS_LIMIT)?;
    let is_plain = property.get("enum").is_some();
    list.items().map(|item| if is_plain { Some(item) } else { item.get("const") }).collect()
}

fn is_same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a.text(), b.text()) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.raw() == b.raw(),
        _ => false,
    }
}

fn unfit(property: Value<'_>, value: Value<'_>) -> Option<&'static str> {
    let limit = |name: &str| property.get(name).and_then(Value::number);
    let outside = |size: f64, least: &str, most: &str| {
        limit(least).is_some_and(|least| size < least) || limit(most).is_some_and(|most| size > most)
    };
    let kind = property.get("type").and_then(Value::text);
    match kind.as_deref() {
        Some("string") => {
            let Some(text) = value.text() else { return Some("is no string") };
            if outside(length(text.chars().count()), "minLength", "maxLength") {
                return Some("is too short or too long");
            }
        }
        Some(kind @ ("number" | "integer")) => {
            let Some(number) = value.number() else { return Some("is no number") };
            if kind == "integer" && number.fract() != 0.0 {
                return Some("is no whole number");
            }
            if outside(number, "minimum", "maximum") {
                return Some("is too small or too large");
            }
        }
        Some("boolean") if value.bool().is_none() => return Some("is neither true nor false"),
        Some("array") => {
            if !value.is_array() {
                return Some("is no list");
            }
            if outside(length(value.len()), "minItems", "maxItems") {
                return Some("has too few or too many items");
            }
            let offered = property.get("items").and_then(choices);
            let is_offered = |item: Value<'_>| {
                offered.as_ref().is_none_or(|offered| offered.iter().any(|known| is_same(*known, item)))
            };
            return (!value.items().take(FIELDS_LIMIT).all(is_offered))
                .then_some("has an item that was not offered");
        }
        _ => {}
    }
    let offered = choices(property)?;
    (!offered.iter().any(|known| is_same(*known, value))).then_some("was not offered")
}

fn length(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::wire::json::Document;

    fn document(text: &str) -> Document {
        Document::new(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn content_fits_or_is_told_what_does_not() {
        let schema = document(
            r#"{"type":"object","required":["team"],"properties":{
                "team":{"type":"string","minLength":2,"maxLength":4},
                "size":{"type":"integer","minimum":1,"maximum":9},
                "share":{"type":"number"},
                "ok":{"type":"boolean"},
                "day":{"type":"string","enum":["mon","tue"]},
                "level":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},
                "days":{"type":"array","maxItems":2,"items":{"type":"string","enum":["mon","tue"]}},
                "tags":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}}}"#,
        );
        let cases = [
            (r#"{"team":"blue"}"#, None),
            (r#"{"team":"blue","size":3.0,"share":0.5,"ok":true,"other":{}}"#, None),
            (r#"{"team":"blue","day":"mon","level":"b","days":["tue","mon"],"tags":["x"]}"#, None),
            (r#"{"team":"bl\u00fc"}"#, None),
            ("{}", Some(r#""team" is missing"#)),
            ("[]", Some("its content is no object")),
            (r#"{"team":7}"#, Some(r#""team" is no string: 7"#)),
            (r#"{"team":"b"}"#, Some(r#""team" is too short or too long: "b""#)),
            (r#"{"team":"blue","size":2.5}"#, Some(r#""size" is no whole number: 2.5"#)),
            (r#"{"team":"blue","size":10}"#, Some(r#""size" is too small or too large: 10"#)),
            (r#"{"team":"blue","share":"1"}"#, Some(r#""share" is no number: "1""#)),
            (r#"{"team":"blue","ok":null}"#, Some(r#""ok" is neither true nor false: null"#)),
            (r#"{"team":"blue","day":"wed"}"#, Some(r#""day" was not offered: "wed""#)),
            (r#"{"team":"blue","level":"c"}"#, Some(r#""level" was not offered: "c""#)),
            (
                r#"{"team":"blue","days":["wed"]}"#,
                Some(r#""days" has an item that was not offered: ["wed"]"#),
            ),
            (r#"{"team":"blue","days":"mon"}"#, Some(r#""days" is no list: "mon""#)),
        ];
        for (content, expected) in cases {
            let content = document(content);
            assert_eq!(
                misfit(schema.root(), content.root()).as_deref(),
                expected,
                "{}",
                content.root().raw()
            );
        }
    }

    #[test]
    fn a_form_too_long_to_be_looked_through_is_left_alone() {
        let fields: Vec<String> =
            (0..=FIELDS_LIMIT).map(|nth| format!("\"f{nth}\":{{\"type\":\"string\"}}")).collect();
        let schema = document(&format!("{{\"properties\":{{{}}}}}", fields.join(",")));
        let content = document(r#"{"f0":7}"#);
        assert_eq!(misfit(schema.root(), content.root()), None);
    }

    #[test]
    fn only_a_choice_of_several_may_be_a_list() {
        let cases = [
            (r#"{"properties":{"a":{"type":"string"},"b":{"enum":["x"]}}}"#, None, None),
            (r#"{"properties":{"a":{"type":"object"}}}"#, Some("a"), Some("a")),
            (r#"{"properties":{"a":{"type":"array","items":{"type":"string"}}}}"#, Some("a"), Some("a")),
            (r#"{"properties":{"a":{"type":"array","items":{"enum":["x"]}}}}"#, None, Some("a")),
            (r#"{"properties":{"a":{"type":"array","items":{"anyOf":[{"const":"x"}]}}}}"#, None, Some("a")),
        ];
        for (schema, with_lists, without) in cases {
            let document = document(schema);
            assert_eq!(nested(document.root(), true).as_deref(), with_lists, "{schema}");
            assert_eq!(nested(document.root(), false).as_deref(), without, "{schema}");
        }
    }
}
