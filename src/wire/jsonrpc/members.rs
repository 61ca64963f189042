//! Objects and arrays as lists of borrowed raw text, and strings out of it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{BATCH_LIMIT, MEMBER_LIMIT};

/// Names and raw values of an object, in order.
pub(super) struct Object<'a> {
    pub(super) members: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// Members beyond the limit.
    pub(super) left_out: usize,
}

/// Raw items of an array, in order.
pub(super) struct Array<'a> {
    pub(super) items: Vec<&'a RawValue>,
    /// Items beyond the limit.
    pub(super) left_out: usize,
}

pub(super) fn object(json: &str) -> serde_json::Result<Object<'_>> {
    serde_json::from_str(json)
}

pub(super) fn array(json: &str) -> serde_json::Result<Array<'_>> {
    serde_json::from_str(json)
}

/// The members of an object in the order sent, duplicates included, at most [`MEMBER_LIMIT`];
/// `None` when `raw` is no object. One pass over the text, where [`at`] takes one for each path.
#[must_use]
pub fn members(raw: &RawValue) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    object(raw.get()).ok().map(|object| object.members)
}

/// The raw text at a path of member names below `raw`, such as `["_meta", "progressToken"]`;
/// `None` where a step is missing or is no object. Of duplicates the last counts. Reads only
/// along the path.
#[must_use]
pub fn at<'a>(raw: &'a RawValue, path: &[&str]) -> Option<&'a RawValue> {
    path.iter().try_fold(raw, |raw, name| {
        let mut parser = serde_json::Deserializer::from_str(raw.get());
        parser.deserialize_map(LastNamed(name)).ok().flatten()
    })
}

/// The string in raw JSON text, unescaped; `None` when it is no string. Lone surrogates are
/// replaced, not refused.
#[must_use]
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    text(raw.get())
}

/// The same, of text that is known to be one JSON value.
pub(in crate::wire) fn text(raw: &str) -> Option<Cow<'_, str>> {
    let quoted = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', quoted.as_bytes()).is_none() {
        return Some(Cow::Borrowed(quoted));
    }
    serde_json::from_str::<Text>(raw).ok().map(|text| text.0)
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut object = Object { members: Vec::with_capacity(4), left_out: 0 };
        while object.members.len() < MEMBER_LIMIT {
            let Some((Text(name), raw)) = map.next_entry()? else { return Ok(object) };
            object.members.push((name, raw));
        }
        while map.next_entry::<Text<'de>, IgnoredAny>()?.is_some() {
            object.left_out += 1;
        }
        Ok(object)
    }
}

impl<'de> Deserialize<'de> for Array<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ArrayVisitor)
    }
}

struct ArrayVisitor;

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = Array<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Array<'de>, A::Error> {
        let mut array = Array { items: Vec::new(), left_out: 0 };
        while array.items.len() < BATCH_LIMIT {
            let Some(raw) = seq.next_element()? else { return Ok(array) };
            array.items.push(raw);
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            array.left_out += 1;
        }
        Ok(array)
    }
}

/// Finds the last member of this name.
struct LastNamed<'n>(&'n str);

impl<'de> Visitor<'de> for LastNamed<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut last = None;
        while let Some(Text(name)) = map.next_key()? {
            if name == self.0 {
                last = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(last)
    }
}

/// A string as text. Read as bytes, because the parser refuses lone surrogates in `str`.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Text<'de>, E> {
        Ok(Text(String::from_utf8_lossy(bytes)))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(mended(bytes))))
    }
}

/// Text in which each lone surrogate, which the parser writes as three bytes `ED A0..BF xx`, is
/// one replacement character (three bytes as well).
fn mended(bytes: &[u8]) -> String {
    let mut bytes = bytes.to_vec();
    let mut from = 0;
    while let Some(found) = bytes.get(from..).and_then(|rest| memchr::memchr(0xed, rest)) {
        let start = from + found;
        if let Some(surrogate) = bytes.get_mut(start..start + 3)
            && surrogate.get(1).is_some_and(|second| *second >= 0xa0)
        {
            surrogate.copy_from_slice("\u{fffd}".as_bytes());
        }
        from = start + 1;
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
