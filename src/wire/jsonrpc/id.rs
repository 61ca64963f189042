//! Ids and tokens: a value together with its type.

use std::fmt;

use compact_str::CompactString;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// A request id or a progress token, with its type. `7` and `"7"` differ; `7.0` equals `7`
/// (RPC-04, RPC-09).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// An integer, as its canonical decimal digits (so that numbers beyond 64 bits are kept).
    Int(CompactString),
    /// A string, unescaped.
    Str(CompactString),
}

/// Digits that an exponent may add to an integer. ours: as far as a double reaches.
const EXPONENT_LIMIT: usize = 308;

impl Id {
    /// The id in raw JSON text; `None` when it is neither a string nor an integer (`1.5`, or an
    /// exponent above 308).
    #[must_use]
    pub fn from_raw(raw: &str) -> Option<Id> {
        let raw = raw.trim_matches([' ', '\t', '\r', '\n']);
        match raw.bytes().next()? {
            b'"' => {
                let raw: &RawValue = serde_json::from_str(raw).ok()?;
                super::string(raw).map(|text| Id::Str(text.into()))
            }
            _ => integer(raw).map(Id::Int),
        }
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Id {
        Id::Int(compact_str::format_compact!("{number}"))
    }
}

impl fmt::Display for Id {
    /// `7` or `"7"`: as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Int(digits) => f.write_str(digits),
            Id::Str(text) => {
                let quoted = serde_json::to_string(text.as_str()).map_err(|_| fmt::Error)?;
                f.write_str(&quoted)
            }
        }
    }
}

/// The canonical digits of a JSON number that is an integer, however it is written: `7`, `7.0`,
/// `70e-1`, `-0`.
fn integer(number: &str) -> Option<CompactString> {
    let is_plain = number.bytes().all(|b| b.is_ascii_digit());
    if is_plain && !number.is_empty() && !number.starts_with('0') {
        return Some(number.into());
    }
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", number),
    };
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit())
        && serde_json::from_str::<IgnoredAny>(unsigned).is_ok();
    if !is_number {
        return None;
    }
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some("0".into());
    }
    // The number is `significant` × 10^scale.
    let dropped = i64::try_from(digits.len() - significant.len()).ok()?;
    let scale = exponent.parse::<i64>().ok()?.checked_add(dropped)?;
    let zeros = usize::try_from(scale.checked_sub(i64::try_from(fraction.len()).ok()?)?).ok()?;
    let significant = significant.trim_start_matches('0');
    (zeros <= EXPONENT_LIMIT)
        .then(|| compact_str::format_compact!("{sign}{significant}{}", "0".repeat(zeros)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_value_with_its_type() {
        let int = |digits: &str| Some(Id::Int(digits.into()));
        let str = |text: &str| Some(Id::Str(text.into()));
        let cases = [
            ("7", int("7")),
            (" 7\n", int("7")),
            ("7.0", int("7")),
            ("7.50e1", int("75")),
            ("70e-1", int("7")),
            ("1e3", int("1000")),
            ("1E+3", int("1000")),
            ("-0", int("0")),
            ("0", int("0")),
            ("0.0e9", int("0")),
            ("-12", int("-12")),
            ("0.5e1", int("5")),
            ("100", int("100")),
            ("9007199254740993", int("9007199254740993")),
            ("18446744073709551615", int("18446744073709551615")),
            ("123456789012345678901234567890", int("123456789012345678901234567890")),
            ("1.5", None),
            ("75e-1", None),
            ("1e309", None),
            ("1e999999999", None),
            ("1e99999999999999999999", None),
            ("\"7\"", str("7")),
            ("\"\"", str("")),
            ("\"\\u0041\"", str("A")),
            ("\"\\ud800x\"", str("\u{fffd}x")),
            ("\"7", None),
            ("null", None),
            ("true", None),
            ("{}", None),
            ("[7]", None),
            ("07", None),
            ("", None),
            ("-", None),
            ("--1", None),
            ("1 2", None),
            ("e5", None),
        ];
        for (raw, want) in cases {
            assert_eq!(Id::from_raw(raw), want, "{raw}");
        }
    }

    #[test]
    fn an_id_is_shown_as_json() {
        for (raw, shown) in [("7.0", "7"), ("\"7\"", "\"7\""), ("\"a\\n\"", "\"a\\n\"")] {
            assert_eq!(Id::from_raw(raw).unwrap().to_string(), shown);
        }
        assert_eq!(Id::from(-3).to_string(), "-3");
    }
}
