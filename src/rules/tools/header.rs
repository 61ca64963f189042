//! Arguments that are mirrored into HTTP headers: `x-mcp-header` (TOOL-12, 13).

use std::collections::HashSet;

use crate::event::Transport;
use crate::model::ListKind;
use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::listing::{items, say};
use crate::wire::json::Value;

const ANNOTATION: &str = "x-mcp-header";

/// Words of a name that tell of a secret.
const SECRETS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "secrets",
    "token",
    "credential",
    "credentials",
    "apikey",
    "pin",
];

/// Words before `token` that make it a place in a list, a count or a mark.
const HARMLESS: [&str; 9] =
    ["page", "next", "continuation", "max", "min", "sync", "cursor", "stop", "progress"];

/// Words before `key` that make it a secret.
const KEYS: [&str; 7] = ["api", "private", "secret", "access", "signing", "encryption", "ssh"];

pub(super) fn rules(book: &mut Book) {
    book.rule("TOOL-12", &[On::ResultOf("tools/list")], valid);
    book.rule("TOOL-13", &[On::ResultOf("tools/list")], harmless);
}

/// One annotation in a schema.
struct Annotation<'a> {
    /// The property that has it, in words.
    property: String,
    schema: Value<'a>,
    value: Value<'a>,
    /// `properties` keys alone lead to it.
    is_reachable: bool,
}

fn valid(case: &Case<'_>, out: &mut Out<'_>) {
    let level = if case.transport() == Transport::Stdio { Severity::Hint } else { Severity::Error };
    let mut faults = Vec::new();
    for (name, tool) in items(case, ListKind::Tools) {
        let mut names = HashSet::new();
        for annotation in annotations(tool) {
            if let Some(fault) = fault(&annotation, &mut names) {
                faults.push(format!("{ANNOTATION} of {} of {name} {fault}", short(&annotation.property)));
            }
        }
    }
    say(case, out, level, &faults);
}

fn fault(annotation: &Annotation<'_>, names: &mut HashSet<String>) -> Option<String> {
    let Some(name) = annotation.value.text() else {
        return Some(format!("is {}, not a string", short(annotation.value.raw())));
    };
    if name.is_empty() {
        return Some("is empty".to_owned());
    }
    if !name.bytes().all(is_token) {
        return Some(format!("is {}, which cannot name a header", short(annotation.value.raw())));
    }
    if !annotation.is_reachable {
        return Some("does not stand under properties alone".to_owned());
    }
    if !names.insert(name.to_ascii_lowercase()) {
        return Some(format!("names {} a second time", short(&name)));
    }
    let is_typed = |kind: Value<'_>| ["string", "integer", "boolean"].iter().any(|known| kind.is_text(known));
    match annotation.schema.get("type") {
        Some(kind) if is_typed(kind) => None,
        // Optional arguments are often written as a type or null.
        Some(kind) if kind.is_array() && kind.items().all(|kind| is_typed(kind) || kind.is_text("null")) => {
            None
        }
        Some(kind) => Some(format!("stands on the type {}", short(kind.raw()))),
        // An enum or a choice may still come to one of the three.
        None => None,
    }
}

fn harmless(case: &Case<'_>, out: &mut Out<'_>) {
    let mut faults = Vec::new();
    for (name, tool) in items(case, ListKind::Tools) {
        for annotation in annotations(tool) {
            if is_secret(&annotation.property) {
                faults.push(format!("{} of {name} is mirrored into a header", short(&annotation.property)));
            }
        }
    }
    say(case, out, Severity::Hint, &faults);
}

/// Every annotation in the input schema of a tool.
fn annotations(tool: Value<'_>) -> Vec<Annotation<'_>> {
    let mut found = Vec::new();
    let Some(schema) = tool.get("inputSchema").filter(|schema| schema.raw().contains(ANNOTATION)) else {
        return found;
    };
    // Each with the property that it belongs to, and whether properties alone led to it.
    let mut open = vec![(String::new(), schema, true)];
    while let Some((property, schema, is_reachable)) = open.pop() {
        for (name, value) in schema.members() {
            match &*name {
                ANNOTATION => found.push(Annotation {
                    is_reachable: is_reachable && !property.is_empty(),
                    property: property.clone(),
                    schema,
                    value,
                }),
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                    let is_plain = is_reachable && name == "properties";
                    open.extend(value.members().map(|(name, value)| (name.into_owned(), value, is_plain)));
                }
                "const" | "enum" | "default" | "examples" => {}
                _ => {
                    open.extend(value.is_object().then(|| (property.clone(), value, false)));
                    open.extend(value.items().map(|item| (property.clone(), item, false)));
                }
            }
        }
    }
    found
}

/// A character of an HTTP token (RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The name of a property tells of a secret.
fn is_secret(name: &str) -> bool {
    let words = words(name);
    words.iter().enumerate().any(|(idx, word)| {
        let before = idx.checked_sub(1).and_then(|before| words.get(before)).map_or("", String::as_str);
        match word.as_str() {
            "token" => !HARMLESS.contains(&before),
            "key" => KEYS.contains(&before),
            word => SECRETS.contains(&word),
        }
    })
}

/// The words of a name, in lower case: `apiKey`, `api_key` and `API-KEY` alike.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for char in name.chars() {
        if !char.is_alphanumeric() || (char.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (char.is_alphanumeric(), words.last_mut()) {
            word.extend(char.to_lowercase());
        }
        was_lower = char.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_of_secrets_are_told_from_their_likes() {
        for (name, expected) in [
            ("password", true),
            ("userPassword", true),
            ("API_KEY", true),
            ("apiKey", true),
            ("access-token", true),
            ("token", true),
            ("clientSecret", true),
            ("region", false),
            ("key", false),
            ("sortKey", false),
            ("pageToken", false),
            ("max_tokens", false),
            ("next_token", false),
            ("keyboard", false),
            ("spin", false),
        ] {
            assert_eq!(is_secret(name), expected, "{name}");
        }
    }
}
