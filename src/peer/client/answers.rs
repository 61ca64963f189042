//! What the client says when its server asks for something: in a result that asks for input, or in
//! a request of its own (older eras).

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::message::raw;
use crate::wire::jsonrpc;

/// Prepared answers. A question is looked up by its key, then by its method.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// The answer for a key of `inputRequests`, or for a method such as `roots/list`.
    pub by_name: BTreeMap<String, Box<RawValue>>,
    /// Accept forms that nothing is prepared for, with the defaults of their schema and the least
    /// that each required field allows.
    pub fills_forms: bool,
}

impl Answers {
    /// The answer to one question; `None`: nothing is prepared for it. `key` is the one in
    /// `inputRequests`.
    #[must_use]
    pub fn find(&self, key: Option<&str>, method: &str, params: Option<&RawValue>) -> Option<Box<RawValue>> {
        let prepared = key.and_then(|key| self.by_name.get(key)).or_else(|| self.by_name.get(method));
        prepared.cloned().or_else(|| self.filled(method, params))
    }

    fn filled(&self, method: &str, params: Option<&RawValue>) -> Option<Box<RawValue>> {
        if !self.fills_forms || method != "elicitation/create" {
            return None;
        }
        let schema = jsonrpc::at(params?, &["requestedSchema"])?;
        let schema: Value = serde_json::from_str(schema.get()).ok()?;
        Some(raw(&json!({ "action": "accept", "content": least_of(&schema) })))
    }

    /// The object `clientCapabilities` of a client that has these answers.
    #[must_use]
    pub fn capabilities(&self) -> Value {
        let mut capabilities = Map::new();
        // Under a key of `inputRequests` anything may be asked.
        let has_keys = self.by_name.keys().any(|name| !name.contains('/'));
        let knows = |method: &str| has_keys || self.by_name.contains_key(method);
        if self.fills_forms || knows("elicitation/create") {
            capabilities.insert("elicitation".to_owned(), json!({ "form": {}, "url": {} }));
        }
        for (method, capability) in [("sampling/createMessage", "sampling"), ("roots/list", "roots")] {
            if knows(method) {
                capabilities.insert(capability.to_owned(), json!({}));
            }
        }
        Value::Object(capabilities)
    }
}

/// The least object that a schema of plain fields allows: each default, and for required fields without
/// one the least value of their type.
#[must_use]
pub fn least_of(schema: &Value) -> Value {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().into_iter().flatten();
    let content = fields.filter_map(|(name, field)| {
        let value = match field.get("default") {
            Some(default) => default.clone(),
            None if required.contains(&name.as_str()) => least(field),
            None => return None,
        };
        Some((name.clone(), value))
    });
    Value::Object(content.collect())
}

fn least(field: &Value) -> Value {
    let first = |list: &Value| list.as_array().and_then(|list| list.first()).cloned();
    if let Some(value) =
        first(&field["enum"]).or_else(|| first(&field["oneOf"]).map(|one| one["const"].clone()))
    {
        return value;
    }
    match field["type"].as_str() {
        Some("boolean") => json!(false),
        Some("integer" | "number") => field.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        Some("array") => json!([]),
        Some("object") => least_of(field),
        Some("null") => Value::Null,
        _ => {
            let len = field["minLength"].as_u64().unwrap_or(0);
            json!("x".repeat(usize::try_from(len.min(1000)).unwrap_or(0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_by_key_then_by_method_then_made_from_the_form() {
        let form = raw(&json!({ "mode": "form", "message": "?", "requestedSchema": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "default": "Ada" },
                "age": { "type": "integer", "minimum": 18 },
                "team": { "type": "string", "enum": ["blue", "red"] },
                "note": { "type": "string" },
                "code": { "type": "string", "minLength": 3 },
                "ok": { "type": "boolean" },
            },
            "required": ["age", "team", "code", "ok"],
        } }));
        let prepared = |names: &[&str]| Answers {
            by_name: names.iter().map(|name| ((*name).to_owned(), raw(*name))).collect(),
            fills_forms: false,
        };
        let filled =
            r#"{"action":"accept","content":{"age":18,"code":"xxx","name":"Ada","ok":false,"team":"blue"}}"#;
        let cases = [
            (prepared(&["who", "elicitation/create"]), Some("who"), Some("\"who\"")),
            (prepared(&["elicitation/create"]), Some("who"), Some("\"elicitation/create\"")),
            (prepared(&["elicitation/create"]), None, Some("\"elicitation/create\"")),
            (prepared(&["other"]), Some("who"), None),
            (Answers { fills_forms: true, ..Answers::default() }, Some("who"), Some(filled)),
        ];
        for (answers, key, expected) in cases {
            let found = answers.find(key, "elicitation/create", Some(&form));
            assert_eq!(found.as_deref().map(RawValue::get), expected, "{answers:?} {key:?}");
        }
        let filling = Answers { fills_forms: true, ..Answers::default() };
        assert!(filling.find(None, "sampling/createMessage", Some(&form)).is_none());
        assert!(filling.find(None, "elicitation/create", None).is_none());
    }

    #[test]
    fn only_what_can_be_answered_is_declared() {
        let cases = [
            (&[][..], json!({})),
            (&["roots/list"], json!({ "roots": {} })),
            (&["elicitation/create"], json!({ "elicitation": { "form": {}, "url": {} } })),
            (&["who"], json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} })),
        ];
        for (names, expected) in cases {
            let by_name = names.iter().map(|name| ((*name).to_owned(), raw(&json!({})))).collect();
            assert_eq!(Answers { by_name, fills_forms: false }.capabilities(), expected, "{names:?}");
        }
    }
}
