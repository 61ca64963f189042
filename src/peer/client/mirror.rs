//! Header fields that mirror the arguments of a call, as the definition of its tool wants them.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::spec::annotations::Annotations;
use crate::spec::headers;
use crate::wire::json::{Document, Kind, Value};

/// The fields `Mcp-Param-*` of one call, values not yet encoded: an argument that is missing or null
/// has none (HTTP-25, HTTP-26).
///
/// # Errors
/// What is wrong with the annotations of the tool: then it is not called over HTTP (HTTP-30).
pub fn fields(tool: &RawValue, arguments: &RawValue) -> Result<Vec<(String, String)>, String> {
    let read = |raw: &RawValue| Document::new(Bytes::copy_from_slice(raw.get().as_bytes()));
    let (Some(tool), Some(arguments)) = (read(tool), read(arguments)) else { return Ok(Vec::new()) };
    let annotations = Annotations::of(tool.root());
    if let Some(fault) = annotations.fault {
        return Err(fault);
    }
    let value_of = |path: &[std::borrow::Cow<'_, str>]| {
        path.iter().try_fold(arguments.root(), |value, name| value.get(name)).and_then(text)
    };
    let mirrored = annotations.params.iter().filter_map(|param| {
        let name = format!("{}{}", headers::PARAM_PREFIX, param.field);
        Some((name, value_of(&param.path)?))
    });
    Ok(mirrored.collect())
}

/// What is wrong with the annotations of a tool, if anything is.
#[must_use]
pub fn fault(tool: &RawValue) -> Option<String> {
    fields(tool, RawValue::NULL).err()
}

/// An argument as the text of a field. Anything but a string, a boolean and an integer has none.
fn text(value: Value<'_>) -> Option<String> {
    match value.kind() {
        Kind::String => value.text().map(std::borrow::Cow::into_owned),
        Kind::Bool | Kind::Number => Some(value.raw().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::peer::client::raw;

    #[test]
    fn arguments_are_mirrored_as_the_definition_wants_them() {
        let tool = |properties: &Value| {
            raw(&json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties } }))
        };
        let good = tool(&json!({
            "region": { "type": "string", "x-mcp-header": "Region" },
            "shard": { "type": "integer", "x-mcp-header": "Shard" },
            "dry": { "type": "boolean", "x-mcp-header": "Dry" },
            "deep": { "type": "object", "properties": {
                "key": { "type": "string", "x-mcp-header": "Deep" },
            } },
            "free": { "type": "string" },
        }));
        let cases: [(Value, &[(&str, &str)]); 5] = [
            (json!({}), &[]),
            (json!({ "region": null, "free": "x" }), &[]),
            (json!({ "region": "größe", "shard": 7 }), &[("Region", "größe"), ("Shard", "7")]),
            (json!({ "dry": false, "deep": { "key": " k " } }), &[("Deep", " k "), ("Dry", "false")]),
            (json!({ "region": "" }), &[("Region", "")]),
        ];
        for (arguments, expected) in cases {
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, value)| (format!("Mcp-Param-{name}"), (*value).to_owned()))
                .collect();
            assert_eq!(fields(&good, &raw(&arguments)), Ok(expected), "{arguments}");
        }
        let twice = json!({ "a": { "type": "string", "x-mcp-header": "A" }, "b": { "x-mcp-header": "a" } });
        for bad in [
            json!({ "a": { "type": "number", "x-mcp-header": "A" } }),
            json!({ "a": { "type": "string", "x-mcp-header": "a b" } }),
            json!({ "a": { "type": "array", "items": { "x-mcp-header": "A" } } }),
            twice,
        ] {
            assert!(fields(&tool(&bad), &raw(&json!({}))).is_err(), "{bad}");
            assert!(fault(&tool(&bad)).is_some());
        }
        assert_eq!(fault(&good), None);
    }
}
