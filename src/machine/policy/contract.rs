//! What a tool does to the world, as its owner declares it. Annotations of the server are hints of
//! a stranger and are no contract.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Subject;
use super::pattern::{Pattern, any, any_or_all};

/// Whether a call changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideEffect {
    /// It only reads.
    None,
    /// It changes something that a second call would change again.
    Effect,
}

/// What is declared about some tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Names of the tools.
    pub tools: Vec<Pattern>,
    /// Names, commands or URLs of their servers; nothing listed: all.
    #[serde(default)]
    pub servers: Vec<Pattern>,
    /// Whether a call changes anything.
    pub side_effect: SideEffect,
    /// Where the idempotency key stands in the arguments; absent: the tool has none.
    #[serde(default)]
    pub key: Option<Pointer>,
    /// Where the receipt of an effect stands in the result: equal receipts, one effect.
    #[serde(default)]
    pub receipt: Option<Pointer>,
    /// Where the things stand in the arguments that together name one intent; nothing listed: all
    /// arguments but the key do.
    #[serde(default)]
    pub business_ids: Vec<Pointer>,
    /// Where things stand in the result that may differ between an effect and its replay.
    #[serde(default)]
    pub volatile: Vec<Pointer>,
}

impl Contract {
    /// It speaks of the tool of this call.
    #[must_use]
    pub fn is_for(&self, subject: &Subject<'_>) -> bool {
        subject.tool.is_some_and(|tool| any(&self.tools, tool)) && any_or_all(&self.servers, subject.server)
    }
}

/// A JSON Pointer (RFC 6901): `/structuredContent/receipt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(String);

impl Pointer {
    /// The pointer that is written so; `None`: it is none.
    #[must_use]
    pub fn new(text: &str) -> Option<Pointer> {
        let escapes = text.split('~').skip(1);
        let is_pointer = (text.is_empty() || text.starts_with('/'))
            && escapes.map(|rest| rest.bytes().next()).all(|code| matches!(code, Some(b'0' | b'1')));
        is_pointer.then(|| Pointer(text.to_owned()))
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names on the way, unescaped, outermost first.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"))
    }

    /// What stands there.
    #[must_use]
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        value.pointer(&self.0)
    }
}

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Pointer, D::Error> {
        let text = String::deserialize(from)?;
        Pointer::new(&text).ok_or_else(|| {
            let what = format!("{text:?} is no JSON Pointer; write one like \"/order/id\"");
            serde::de::Error::custom(what)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_checked_and_finds_what_it_names() {
        let value = serde_json::json!({"a": {"b/c": [1, 2], "~": 3}});
        let cases = [
            ("/a/b~1c/1", Some(Some("2"))),
            ("/a/~0", Some(Some("3"))),
            ("", Some(Some(r#"{"a":{"b/c":[1,2],"~":3}}"#))),
            ("/a/x", Some(None)),
            ("a/b", None),
            ("/a/~2", None),
            ("/a/~", None),
        ];
        for (text, expected) in cases {
            let found = Pointer::new(text).map(|pointer| pointer.find(&value).map(ToString::to_string));
            assert_eq!(found, expected.map(|found| found.map(str::to_owned)), "{text:?}");
        }
    }
}
