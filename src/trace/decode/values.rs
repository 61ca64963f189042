//! The values that members of a line can have.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::event::Headers;
use crate::time::Mono;

/// Milliseconds as written → nanoseconds, exactly where the text is plain decimal.
pub(super) fn ms<E: Error>(text: Option<&RawValue>) -> Result<Option<Mono>, E> {
    let Some(text) = text.map(RawValue::get) else { return Ok(None) };
    if text == "null" {
        return Ok(None);
    }
    let ns = decimal_ms(text).or_else(|| rounded_ms(text));
    ns.map(|ns| Some(Mono(ns))).ok_or_else(|| E::custom(format_args!("{text} is not a time in milliseconds")))
}

/// `digits[.digits]`; what is finer than a nanosecond is cut.
fn decimal_ms(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !whole.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut ns: u64 = whole.parse().ok()?;
    let mut digits = fraction.bytes();
    for _ in 0..6 {
        let digit = digits.next().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        ns = ns.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    digits.all(|digit| digit.is_ascii_digit()).then_some(ns)
}

/// Any other JSON number that is not below zero, to the nearest nanosecond.
fn rounded_ms(text: &str) -> Option<u64> {
    let ms: f64 = text.parse().ok()?;
    let ns = (ms * 1e6).round();
    // 2^53 ns are 104 days; beyond that a number with an exponent says too little.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    (0.0..=9_007_199_254_740_992.0).contains(&ns).then_some(ns as u64)
}

/// A text, borrowed from the line where it holds no escapes.
pub(super) struct TextSeed;

impl<'de> DeserializeSeed<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A text as bytes of its own; `None` for null.
pub(super) struct BytesSeed;

impl<'de> DeserializeSeed<'de> for BytesSeed {
    type Value = Option<Bytes>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl Visitor<'_> for BytesSeed {
    type Value = Option<Bytes>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Bytes::copy_from_slice(text.as_bytes())))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// A text, or a number or truth value as text.
pub(super) struct ScalarSeed;

impl<'de> DeserializeSeed<'de> for ScalarSeed {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<String, D::Error> {
        json.deserialize_any(self)
    }
}

impl Visitor<'_> for ScalarSeed {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<String, E> {
        Ok(truth.to_string())
    }
}

/// Header fields: an object whose values are texts, or arrays of texts where a name is repeated.
pub(super) struct HeadersSeed;

impl<'de> DeserializeSeed<'de> for HeadersSeed {
    type Value = Headers;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Headers, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadersSeed {
    type Value = Headers;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object of header fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value_seed(FieldSeed { name, fields: &mut fields })?;
        }
        Ok(Headers(fields))
    }
}

/// The value or values of one field, appended to `fields`.
struct FieldSeed<'f> {
    name: String,
    fields: &'f mut Vec<(String, String)>,
}

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a text or an array of texts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.fields.push((self.name, text.to_owned()));
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.fields.push((self.name, number.to_string()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<(), A::Error> {
        while let Some(text) = texts.next_element_seed(ScalarSeed)? {
            self.fields.push((self.name.clone(), text));
        }
        Ok(())
    }
}
