//! One value of a text set or removed; every other byte stays as it was sent.

use std::ops::Range;

use bytes::Bytes;

use super::{BOM, Document, Kind, Value};

/// Why a text cannot be changed so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text itself cannot be read.
    #[error("the text is not one JSON value")]
    NotJson,
    /// The new value is none.
    #[error("`{0}` is not one JSON value")]
    BadValue(String),
    /// The place does not exist, and neither does the container that would hold it.
    #[error("there is no place `{0}`; write one like /params/name")]
    NoPlace(String),
}

/// Sets the value at a JSON Pointer (RFC 6901), or removes it with `None`. A member that an existing
/// object lacks is added at its end, an item at `-` at the end of an array; removing what is not
/// there changes nothing.
///
/// # Errors
/// When the text or the value is no JSON, or nothing could stand there; the text is as it was.
pub fn set(text: &Bytes, pointer: &str, value: Option<&str>) -> Result<Bytes, EditError> {
    if let Some(value) = value
        && Document::new(Bytes::copy_from_slice(value.as_bytes())).is_none()
    {
        return Err(EditError::BadValue(value.to_owned()));
    }
    let document = Document::new(text.clone()).ok_or(EditError::NotJson)?;
    let no_place = || EditError::NoPlace(pointer.to_owned());
    let (path, last) = pointer.rsplit_once('/').ok_or_else(no_place)?;
    let names = path.split('/').skip(1).map(unescaped);
    let parent = names
        .into_iter()
        .try_fold(document.root(), |value, name| child(value, &name))
        .ok_or_else(no_place)?;
    let last = unescaped(last);
    let change = match (child(parent, &last), value) {
        (Some(old), Some(new)) => Some((old.span(), new.to_owned())),
        (Some(old), None) => Some((with_comma(&document, parent, old), String::new())),
        (None, None) => None,
        (None, Some(new)) => Some(added(parent, &last, new).ok_or_else(no_place)?),
    };
    let Some((span, new)) = change else { return Ok(text.clone()) };
    let bom = if text.starts_with(BOM) { BOM } else { b"" };
    let whole = document.text.as_bytes();
    let before = whole.get(..span.start).unwrap_or_default();
    let after = whole.get(span.end..).unwrap_or_default();
    Ok(Bytes::from([bom, before, new.as_bytes(), after].concat()))
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// The member or item of this name or number.
fn child<'a>(value: Value<'a>, name: &str) -> Option<Value<'a>> {
    match value.kind() {
        Kind::Array => value.items().nth(name.parse().ok()?),
        _ => value.get(name),
    }
}

/// Where something new stands in a container, and with what around it.
fn added(parent: Value<'_>, name: &str, new: &str) -> Option<(Range<usize>, String)> {
    let named = match parent.kind() {
        Kind::Object => format!("{}:{new}", serde_json::to_string(name).ok()?),
        Kind::Array if name == "-" => new.to_owned(),
        _ => return None,
    };
    let comma = if parent.is_empty() { "" } else { "," };
    let last = parent.children().last().map(|last| last.span().end);
    let at = last.unwrap_or(parent.span().start + 1);
    Some((at..at, format!("{comma}{named}")))
}

/// The bytes that go with a value that goes: its name, and one comma beside it.
fn with_comma(document: &Document, parent: Value<'_>, old: Value<'_>) -> Range<usize> {
    let text = document.text.as_bytes();
    let name = parent.children().pairs().find(|(_, value)| value.position() == old.position());
    let is_member = parent.kind() == Kind::Object;
    let start = name.filter(|_| is_member).map_or(old.span().start, |(name, _)| name.span().start);
    let end = old.span().end;
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\t' | b'\r');
    let after = text.get(end..).unwrap_or_default();
    let blanks = after.iter().take_while(is_blank).count();
    if after.get(blanks) == Some(&b',') {
        let more = after.get(blanks + 1..).unwrap_or_default().iter().take_while(is_blank).count();
        return start..end + blanks + 1 + more;
    }
    let before = text.get(..start).unwrap_or_default();
    let blanks = before.iter().rev().take_while(is_blank).count();
    let comma = start.checked_sub(blanks + 1).filter(|at| text.get(*at) == Some(&b','));
    comma.unwrap_or(start)..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_changes_and_every_other_byte_stays() {
        let text = r#"{ "jsonrpc":"2.0", "id":1e2,"params":{"a":[1, 2,3],"b\u0063":null , "n":{}}}"#;
        let cases = [
            (
                "/id",
                Some("7"),
                r#"{ "jsonrpc":"2.0", "id":7,"params":{"a":[1, 2,3],"b\u0063":null , "n":{}}}"#,
            ),
            ("/id", None, r#"{ "jsonrpc":"2.0", "params":{"a":[1, 2,3],"b\u0063":null , "n":{}}}"#),
            ("/jsonrpc", None, r#"{ "id":1e2,"params":{"a":[1, 2,3],"b\u0063":null , "n":{}}}"#),
            (
                "/params/a/1",
                Some("{}"),
                r#"{ "jsonrpc":"2.0", "id":1e2,"params":{"a":[1, {},3],"b\u0063":null , "n":{}}}"#,
            ),
            (
                "/params/a/2",
                None,
                r#"{ "jsonrpc":"2.0", "id":1e2,"params":{"a":[1, 2],"b\u0063":null , "n":{}}}"#,
            ),
            (
                "/params/a/-",
                Some("4"),
                r#"{ "jsonrpc":"2.0", "id":1e2,"params":{"a":[1, 2,3,4],"b\u0063":null , "n":{}}}"#,
            ),
            (
                "/params/bc",
                Some("0"),
                r#"{ "jsonrpc":"2.0", "id":1e2,"params":{"a":[1, 2,3],"b\u0063":0 , "n":{}}}"#,
            ),
            ("/params/n", None, r#"{ "jsonrpc":"2.0", "id":1e2,"params":{"a":[1, 2,3],"b\u0063":null }}"#),
            (
                "/params/n/x~1y",
                Some("1"),
                r#"{ "jsonrpc":"2.0", "id":1e2,"params":{"a":[1, 2,3],"b\u0063":null , "n":{"x/y":1}}}"#,
            ),
            (
                "/more",
                Some("[]"),
                r#"{ "jsonrpc":"2.0", "id":1e2,"params":{"a":[1, 2,3],"b\u0063":null , "n":{}},"more":[]}"#,
            ),
            ("/more", None, text),
        ];
        for (pointer, value, expected) in cases {
            let found = set(&Bytes::from_static(text.as_bytes()), pointer, value).unwrap();
            assert_eq!(found, expected, "{pointer} {value:?}");
            assert!(Document::new(found).is_some(), "{pointer} {value:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let cases = [
            ("{}", "/a/b", Some("1"), EditError::NoPlace("/a/b".to_owned())),
            ("{}", "a", Some("1"), EditError::NoPlace("a".to_owned())),
            ("[1]", "/7", Some("1"), EditError::NoPlace("/7".to_owned())),
            ("{}", "/a", Some("1 2"), EditError::BadValue("1 2".to_owned())),
            ("{", "/a", Some("1"), EditError::NotJson),
        ];
        for (text, pointer, value, expected) in cases {
            let found = set(&Bytes::from_static(text.as_bytes()), pointer, value);
            assert_eq!(found, Err(expected), "{text} {pointer}");
        }
    }
}
