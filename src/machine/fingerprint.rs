//! What makes two calls the same intent: a fingerprint of operation, tenant and arguments.
//!
//! It is taken from the text of the arguments, so that numbers count as they were written and no
//! member is lost. `// ours:` members are sorted by the bytes of their names; of two members of
//! one name the last counts, as most readers have it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::policy::contract::Pointer;

/// Nesting that is followed. ours: no contract asks for more.
const DEPTH_LIMIT: usize = 64;

/// Text of which no fingerprint can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the arguments are no JSON, hold half of a character, or are nested deeper than {DEPTH_LIMIT}")]
pub struct Unreadable;

/// The fingerprint of a call: SHA-256 in lowercase hex of the compact form of
/// `{"args":…,"operation":…,"tenant":…}`. `key` is where the idempotency key stands in the
/// arguments: it names the intent and is no part of it. Without a tenant that member is left out.
///
/// # Errors
/// When the arguments cannot be read.
pub fn fingerprint(
    tenant: Option<&str>,
    operation: &str,
    arguments: &str,
    key: Option<&Pointer>,
) -> Result<String, Unreadable> {
    let mut text = String::from("{\"args\":");
    text.push_str(&compact(arguments, key)?);
    text.push_str(",\"operation\":");
    write_string(&mut text, operation)?;
    if let Some(tenant) = tenant {
        text.push_str(",\"tenant\":");
        write_string(&mut text, tenant)?;
    }
    text.push('}');
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        write!(hex, "{byte:02x}").map_err(|_| Unreadable)?;
    }
    Ok(hex)
}

/// JSON in its compact form: no blanks, members sorted on every level, strings with the fewest
/// escapes, numbers as written; without the member that `without` points to.
///
/// # Errors
/// When the text cannot be read.
pub fn compact(json: &str, without: Option<&Pointer>) -> Result<String, Unreadable> {
    let without: Option<Vec<String>> = without.map(|pointer| pointer.names().collect());
    let raw: &RawValue = serde_json::from_str(json).map_err(|_| Unreadable)?;
    let mut text = String::with_capacity(json.len());
    write_value(&mut text, raw, without.as_deref(), DEPTH_LIMIT)?;
    Ok(text)
}

/// `without`: names of members from here down to the one that is left out.
fn write_value(
    text: &mut String,
    raw: &RawValue,
    without: Option<&[String]>,
    depth: usize,
) -> Result<(), Unreadable> {
    let json = raw.get();
    let inner = || depth.checked_sub(1).ok_or(Unreadable);
    match json.bytes().next() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).map_err(|_| Unreadable)?;
            let (skipped, deeper) = match without {
                Some([name]) => (Some(name), None),
                Some([name, rest @ ..]) => (None, Some((name, rest))),
                _ => (None, None),
            };
            text.push('{');
            let kept = members.iter().filter(|(name, _)| skipped != Some(*name));
            for (idx, (name, value)) in kept.enumerate() {
                if idx > 0 {
                    text.push(',');
                }
                write_string(text, name)?;
                text.push(':');
                let without = deeper.and_then(|(next, rest)| (next == name).then_some(rest));
                write_value(text, value, without, inner()?)?;
            }
            text.push('}');
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| Unreadable)?;
            text.push('[');
            for (idx, item) in items.into_iter().enumerate() {
                if idx > 0 {
                    text.push(',');
                }
                // A key that stands in an array is one of many, and no key.
                write_value(text, item, None, inner()?)?;
            }
            text.push(']');
        }
        Some(b'"') => {
            let string: String = serde_json::from_str(json).map_err(|_| Unreadable)?;
            write_string(text, &string)?;
        }
        _ => text.push_str(json),
    }
    Ok(())
}

fn write_string(text: &mut String, string: &str) -> Result<(), Unreadable> {
    text.push_str(&serde_json::to_string(string).map_err(|_| Unreadable)?);
    Ok(())
}

#[cfg(test)]
mod tests;
