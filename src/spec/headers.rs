//! HTTP header fields of MCP, and how their values mirror a message.
//!
//! Source: spec 2026-07-28 `basic/transports/streamable-http`, sections on standard request
//! headers and value encoding. Names compare without case, values with it.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Protocol revision of the message; equals `_meta` in the modern era.
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// The body's `method`; modern requests.
pub const METHOD: &str = "Mcp-Method";
/// The body's target ([`name_member`]); modern requests.
pub const NAME: &str = "Mcp-Name";
/// Prefix of the fields that mirror tool arguments; modern `tools/call`.
pub const PARAM_PREFIX: &str = "Mcp-Param-";
/// Session of a legacy server; ignored in the modern era.
pub const SESSION_ID: &str = "Mcp-Session-Id";
/// Where a legacy client wants a stream resumed; ignored in the modern era.
pub const LAST_EVENT_ID: &str = "Last-Event-ID";
/// Asks a reverse proxy not to gather an event stream.
pub const ACCEL_BUFFERING: &str = "X-Accel-Buffering";
/// Media type of one JSON-RPC message.
pub const JSON: &str = "application/json";
/// Media type of an event stream.
pub const EVENT_STREAM: &str = "text/event-stream";

const SENTINEL_START: &str = "=?base64?";
const SENTINEL_END: &str = "?=";

/// Why a header value cannot be read (HTTP-08, HTTP-09).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueFault {
    /// It begins like the sentinel, but not in lower case.
    MarkerCase,
    /// The closing `?=` is missing.
    NotClosed,
    /// What stands between the markers is not Base64 in the standard alphabet with padding.
    NotBase64,
    /// The decoded bytes are not UTF-8.
    NotUtf8,
    /// Control or non-ASCII characters that had to be encoded.
    NotPlain,
}

/// The member of `params` that `Mcp-Name` mirrors for this method; `None`: the header does not
/// belong to it.
#[must_use]
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// A value as it must stand in `Mcp-Name` or `Mcp-Param-*`: as it is where it can travel as
/// plain text, inside the Base64 sentinel otherwise.
#[must_use]
pub fn encode(value: &str) -> Cow<'_, str> {
    let has_outer_space = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    if is_plain(value) && !has_outer_space && !looks_encoded(value) {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{SENTINEL_START}{}{SENTINEL_END}", STANDARD.encode(value)))
}

/// The value that a header field stands for.
///
/// # Errors
/// What is wrong with its encoding.
pub fn decode(field: &str) -> Result<Cow<'_, str>, ValueFault> {
    if !looks_encoded(field) {
        return if is_plain(field) { Ok(Cow::Borrowed(field)) } else { Err(ValueFault::NotPlain) };
    }
    let inner = field.strip_prefix(SENTINEL_START).ok_or(ValueFault::MarkerCase)?;
    let inner = inner.strip_suffix(SENTINEL_END).ok_or(ValueFault::NotClosed)?;
    let bytes = STANDARD.decode(inner).map_err(|_| ValueFault::NotBase64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| ValueFault::NotUtf8)
}

/// Visible ASCII, space and tab only.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

fn looks_encoded(value: &str) -> bool {
    value.get(..SENTINEL_START.len()).is_some_and(|start| start.eq_ignore_ascii_case(SENTINEL_START))
}

/// The media type of a `Content-Type`, without its parameters, compared without case.
#[must_use]
pub fn is_media_type(content_type: &str, media_type: &str) -> bool {
    let bare = content_type.split(';').next().unwrap_or_default();
    bare.trim().eq_ignore_ascii_case(media_type)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_that_is_not_plain_text_travels_in_base64() {
        let cases = [
            ("echo", "echo"),
            ("", ""),
            ("notes://today", "notes://today"),
            ("a b\tc", "a b\tc"),
            ("größe", "=?base64?Z3LDtsOfZQ==?="),
            ("notes://日本", "=?base64?bm90ZXM6Ly/ml6XmnKw=?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("a\nb", "=?base64?YQpi?="),
            ("\t", "=?base64?CQ==?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("=?BASE64?x", "=?base64?PT9CQVNFNjQ/eA==?="),
        ];
        for (value, field) in cases {
            assert_eq!(encode(value), field, "{value:?}");
            assert_eq!(decode(field).as_deref(), Ok(value), "{field}");
        }
    }

    #[test]
    fn a_damaged_value_says_what_is_wrong() {
        let cases = [
            ("=?BASE64?YQ==?=", ValueFault::MarkerCase),
            ("=?Base64?YQ==?=", ValueFault::MarkerCase),
            ("=?base64?YQ==", ValueFault::NotClosed),
            ("=?base64?", ValueFault::NotClosed),
            ("=?base64?YQ?=", ValueFault::NotBase64),
            ("=?base64?Y_-=?=", ValueFault::NotBase64),
            ("=?base64?Y Q==?=", ValueFault::NotBase64),
            ("=?base64?/w==?=", ValueFault::NotUtf8),
            ("größe", ValueFault::NotPlain),
            ("a\u{1}b", ValueFault::NotPlain),
        ];
        for (field, fault) in cases {
            assert_eq!(decode(field), Err(fault), "{field}");
        }
        assert_eq!(decode("=?base64??=").as_deref(), Ok(""));
    }

    #[test]
    fn mcp_name_belongs_to_methods_with_a_target() {
        let cases = [
            ("tools/call", Some("name")),
            ("prompts/get", Some("name")),
            ("resources/read", Some("uri")),
            ("tasks/get", Some("taskId")),
            ("tasks/update", Some("taskId")),
            ("tasks/cancel", Some("taskId")),
            ("tools/list", None),
            ("Tools/Call", None),
            ("tasks/result", None),
            ("server/discover", None),
        ];
        for (method, member) in cases {
            assert_eq!(name_member(method), member, "{method}");
        }
    }

    #[test]
    fn a_media_type_is_told_without_its_parameters() {
        for (content_type, is_stream) in [
            ("text/event-stream", true),
            ("Text/Event-Stream ; charset=utf-8", true),
            ("text/event-streams", false),
            ("application/json", false),
            ("", false),
        ] {
            assert_eq!(is_media_type(content_type, EVENT_STREAM), is_stream, "{content_type}");
        }
    }

    proptest! {
        #[test]
        fn every_value_comes_back(value in any::<String>()) {
            let field = encode(&value);
            prop_assert!(is_plain(&field));
            let (decoded, trimmed) = (decode(&field), field.trim_matches([' ', '\t']));
            prop_assert_eq!(trimmed, &*field, "outer space would be lost");
            prop_assert_eq!(decoded.as_deref(), Ok(value.as_str()));
        }
    }
}
