//! What a tool's schema says about header fields: `x-mcp-header` on its parameters.
//!
//! Source: spec 2026-07-28 `server/tools#x-mcp-header`. An annotation stands on a property of the type
//! string, integer or boolean, which is reached from the root through `properties` alone; its value is
//! an HTTP token, and no other of the tool is the same without case.

use std::borrow::Cow;

use crate::wire::json::{Kind, Value};

const ANNOTATION: &str = "x-mcp-header";

/// Schemas inside schemas that are followed. ours: deeper ones are not written by people.
const DEPTH: u32 = 16;

/// Characters of a foreign name that are shown.
const SHORT_CHARS: usize = 80;

/// Members of a schema that hold values, not schemas.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Types that a header field cannot mirror.
const OTHER_TYPES: [&str; 4] = ["number", "object", "array", "null"];

/// A parameter that is mirrored in a header field.
#[derive(Debug, Clone)]
pub struct Param<'a> {
    /// The field, without `Mcp-Param-`.
    pub field: Cow<'a, str>,
    /// Names of properties from the root.
    pub path: Vec<Cow<'a, str>>,
}

/// What a tool's schema says about header fields.
#[derive(Debug, Clone, Default)]
pub struct Annotations<'a> {
    /// The parameters, in the order of the schema.
    pub params: Vec<Param<'a>>,
    /// What is wrong with one of them; the first one found.
    pub fault: Option<String>,
}

impl<'a> Annotations<'a> {
    /// Reads the definition of a tool.
    #[must_use]
    pub fn of(tool: Value<'a>) -> Annotations<'a> {
        let mut all = Annotations::default();
        // Most tools have none.
        if let Some(schema) = tool.get("inputSchema").filter(|schema| schema.raw().contains(ANNOTATION)) {
            all.read(schema, &mut Vec::new(), DEPTH);
        }
        all
    }

    fn read(&mut self, schema: Value<'a>, path: &mut Vec<Cow<'a, str>>, depth: u32) {
        if depth == 0 {
            return;
        }
        for (name, property) in schema.get("properties").into_iter().flat_map(Value::members) {
            path.push(name);
            if let Some(annotation) = property.get(ANNOTATION) {
                self.annotated(property, annotation, path);
            }
            self.read(property, path, depth - 1);
            path.pop();
        }
        let is_aside = |name: &str| name != "properties" && name != ANNOTATION && !VALUES.contains(&name);
        let mut aside = schema.members().filter(|(name, _)| is_aside(name));
        if let Some((place, _)) = aside.find(|(_, part)| hides(*part, depth)) {
            self.fault.get_or_insert_with(|| format!("{ANNOTATION} below {}", short(&place)));
        }
    }

    fn annotated(&mut self, property: Value<'a>, annotation: Value<'a>, path: &[Cow<'a, str>]) {
        let field = annotation.text().filter(|text| is_token(text));
        let kind = property.get("type").and_then(Value::text);
        let fault = match &field {
            None => Some(format!("{ANNOTATION} is no header name")),
            Some(field) if self.params.iter().any(|param| param.field.eq_ignore_ascii_case(field)) => {
                Some(format!("{ANNOTATION} {field} stands twice"))
            }
            Some(_) => kind
                .filter(|kind| OTHER_TYPES.contains(&&**kind))
                .map(|kind| format!("{ANNOTATION} on a {kind}")),
        };
        match (fault, field) {
            (None, Some(field)) => self.params.push(Param { field, path: path.to_vec() }),
            (fault, _) => self.fault = self.fault.take().or(fault),
        }
    }
}

/// Whether a schema, or a part of it, holds an annotation.
fn hides(schema: Value<'_>, depth: u32) -> bool {
    if depth == 0 || !schema.raw().contains(ANNOTATION) {
        return false;
    }
    let is_annotation = |name: &str, value: Value<'_>| name == ANNOTATION && value.kind() == Kind::String;
    let is_value = |name: &str| VALUES.contains(&name);
    schema.items().any(|item| hides(item, depth - 1))
        || schema
            .members()
            .any(|(name, part)| is_annotation(&name, part) || (!is_value(&name) && hides(part, depth - 1)))
}

/// The beginning of a name from outside.
fn short(name: &str) -> &str {
    name.char_indices().nth(SHORT_CHARS).map_or(name, |(at, _)| name.get(..at).unwrap_or_default())
}

/// A name that HTTP allows for a field.
fn is_token(text: &str) -> bool {
    let is_other = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_other(byte))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::wire::json::Document;

    #[test]
    fn annotations_are_found_by_their_path_and_faults_are_told() {
        /// A schema, the headers found in it by path, and what is wrong.
        type Row = (&'static str, &'static [(&'static str, &'static str)], Option<&'static str>);
        let cases: &[Row] = &[
            (r#"{"properties":{"a":{"type":"string"}}}"#, &[], None),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":"Region"},"o":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"Shard"}}}}}"#,
                &[("Region", "a"), ("Shard", "o/b")],
                None,
            ),
            (r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#, &[], None),
            (r#"{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}"#, &[("A", "a")], None),
            (
                r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
                &[],
                Some("x-mcp-header is no header name"),
            ),
            (r#"{"properties":{"a":{"x-mcp-header":"a b"}}}"#, &[], Some("x-mcp-header is no header name")),
            (
                r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
                &[],
                Some("x-mcp-header on a number"),
            ),
            (
                r#"{"properties":{"a":{"x-mcp-header":"A"},"b":{"x-mcp-header":"a"}}}"#,
                &[("A", "a")],
                Some("x-mcp-header a stands twice"),
            ),
            (
                r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
                &[],
                Some("x-mcp-header below items"),
            ),
            (
                r#"{"oneOf":[{"properties":{"a":{"x-mcp-header":"A"}}}]}"#,
                &[],
                Some("x-mcp-header below oneOf"),
            ),
            (
                r##"{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string","x-mcp-header":"A"}}}"##,
                &[],
                Some("x-mcp-header below $defs"),
            ),
            (
                r#"{"patternProperties":{"^a":{"type":"string","x-mcp-header":"A"}}}"#,
                &[],
                Some("x-mcp-header below patternProperties"),
            ),
            (r#"{"properties":{"a":{"default":{"x-mcp-header":"A"}}}}"#, &[], None),
        ];
        for (schema, params, fault) in cases {
            let document = Document::new(Bytes::from(format!(r#"{{"inputSchema":{schema}}}"#))).unwrap();
            let all = Annotations::of(document.root());
            let found: Vec<_> =
                all.params.iter().map(|param| (param.field.to_string(), param.path.join("/"))).collect();
            let expected: Vec<_> =
                params.iter().map(|(field, path)| ((*field).to_owned(), (*path).to_owned())).collect();
            assert_eq!((found, all.fault.as_deref()), (expected, *fault), "{schema}");
        }
    }
}
