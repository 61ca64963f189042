//! Keys of `_meta` and of extensions, and the values that have a form (MET-08..12).

use crate::machine::task;
use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::era::Era;
use crate::spec::meta;
use crate::spec::methods::DISCOVER;
use crate::wire::json::Value;

/// Keys that MCP and its extensions define under a reserved prefix.
const DEFINED: [&str; 8] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::SERVER_INFO,
    meta::SUBSCRIPTION_ID,
    meta::LOG_LEVEL,
    meta::RELATED_TASK,
    task::EXTENSION,
];

/// Levels of logs. Source: RFC 5424, as the schema's `LoggingLevel` lists them.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

pub(super) fn rules(book: &mut Book) {
    book.rule("MET-08", &[On::Message], bad_key);
    book.rule("MET-09", &[On::Message], reserved_key);
    book.rule("MET-10", &[On::Message], bad_trace);
    book.rule("MET-11", &[On::Request], bad_level);
    book.rule("MET-12", &[On::Request, On::ResultOf(DISCOVER)], bad_extension);
}

/// The parts of a key: its prefix, where it has one, and its name.
fn parts(key: &str) -> (Option<&str>, &str) {
    key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name))
}

/// Dotted labels, each from a letter to a letter or digit, with hyphens inside.
fn is_prefix(prefix: &str) -> bool {
    prefix.split('.').all(|label| {
        label.starts_with(|first: char| first.is_ascii_alphabetic())
            && label.ends_with(|last: char| last.is_ascii_alphanumeric())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

/// From a letter or digit to one; an empty name is allowed.
fn is_name(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    name.is_empty()
        || (name.starts_with(is_end)
            && name.ends_with(is_end)
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)))
}

fn is_key(key: &str) -> bool {
    // What most messages have needs no look at its form.
    if DEFINED.contains(&key) {
        return true;
    }
    let (prefix, name) = parts(key);
    prefix.is_none_or(is_prefix) && is_name(name)
}

/// `_meta` keys that are wrong in a way.
fn tell_keys(
    case: &Case<'_>,
    out: &mut Out<'_>,
    severity: Severity,
    is_wrong: impl Fn(&str) -> bool,
    why: &str,
) {
    let Some(keys) = case.metadata() else { return };
    let Some((key, _)) = keys.members().find(|(key, _)| is_wrong(key)) else { return };
    let dir = case.row().map(|row| row.dir);
    out.draft(case).at_most(severity).gather(out, (case.seen.scope, dir), |times| {
        format!("{} with a key in _meta {why}; last: {}", count(times, "message"), short(&key))
    });
}

fn bad_key(case: &Case<'_>, out: &mut Out<'_>) {
    // The grammar came with 2025-06-18.
    let is_binding = case.era().is_some_and(|era| era >= Era::V2025_06_18);
    let severity = if is_binding { Severity::Warning } else { Severity::Hint };
    tell_keys(case, out, severity, |key| !is_key(key), "that is none by its form");
}

/// The second label of its prefix is MCP's own, and MCP does not define it.
fn is_reserved(key: &str) -> bool {
    if DEFINED.contains(&key) {
        return false;
    }
    let second = parts(key).0.and_then(|prefix| prefix.split('.').nth(1));
    matches!(second, Some("mcp" | "modelcontextprotocol"))
}

fn reserved_key(case: &Case<'_>, out: &mut Out<'_>) {
    tell_keys(case, out, Severity::Hint, is_reserved, "under a prefix that is reserved for MCP");
}

fn bad_trace(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(keys) = case.metadata() else { return };
    let is_bad = |(key, value): &(std::borrow::Cow<'_, str>, Value<'_>)| {
        let is_form: fn(&str) -> bool = match &**key {
            "traceparent" => is_trace_parent,
            "tracestate" => is_trace_state,
            "baggage" => is_baggage,
            _ => return false,
        };
        !value.text().is_some_and(|text| is_form(&text))
    };
    let Some((key, value)) = keys.members().find(is_bad) else { return };
    let dir = case.row().map(|row| row.dir);
    out.gather(case, (case.seen.scope, dir), |times| {
        let messages = count(times, "message");
        format!("{messages} with trace context that W3C does not know; last: {key} {}", short(value.raw()))
    });
}

/// W3C Trace Context, `traceparent`: version, trace, parent and flags in lower-case hexadecimal.
/// Later versions may have more behind.
fn is_trace_parent(text: &str) -> bool {
    let is_hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, len| is_hex(part, len) && part.bytes().any(|byte| byte != b'0');
    let mut parts = text.splitn(5, '-');
    let mut next = || parts.next().unwrap_or_default();
    let version = next();
    let is_whole = is_hex(version, 2) && version != "ff" && is_id(next(), 32) && is_id(next(), 16);
    is_whole && is_hex(next(), 2) && (version != "00" || parts.next().is_none())
}

/// W3C Trace Context, `tracestate`: up to 32 pairs of a simple key and a printable value.
fn is_trace_state(text: &str) -> bool {
    let is_key_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let is_pair = |pair: &str| {
        pair.split_once('=').is_some_and(|(key, value)| {
            (1..=256).contains(&key.len())
                && key.bytes().all(is_key_byte)
                && value.len() <= 256
                && value.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b',' && byte != b'=')
        })
    };
    let pairs = || text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs().count() <= 32 && pairs().all(is_pair)
}

/// W3C Baggage: pairs of a token and a percent-encoded value, with properties behind.
fn is_baggage(text: &str) -> bool {
    let is_token = |key: &str| {
        let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
    };
    let is_value =
        |value: &str| value.bytes().all(|byte| (b'!'..=b'~').contains(&byte) && !b"\",;\\".contains(&byte));
    let is_property = |property: &str| match property.split_once('=') {
        Some((key, value)) => is_token(key.trim()) && is_value(value.trim()),
        None => is_token(property.trim()),
    };
    text.split(',').map(str::trim).filter(|member| !member.is_empty()).all(|member| {
        let mut parts = member.split(';');
        let pair = parts.next().unwrap_or_default();
        pair.contains('=') && is_property(pair) && parts.all(is_property)
    })
}

fn bad_level(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(level) = case.meta(meta::LOG_LEVEL) else { return };
    if !LEVELS.iter().any(|known| level.is_text(known)) {
        let level = short(level.raw());
        out.say(case, format!("{} asks for logs of the level {level}, which is none", case.subject()));
    }
}

fn bad_extension(case: &Case<'_>, out: &mut Out<'_>) {
    let declared = if case.is_from_client() {
        case.meta(meta::CLIENT_CAPABILITIES)
    } else {
        case.result().and_then(|result| result.get("capabilities"))
    };
    let Some(extensions) = declared.and_then(|declared| declared.get("extensions")) else { return };
    let is_bad = |id: &str| parts(id).0.is_none() || !is_key(id);
    let Some((id, _)) = extensions.members().find(|(id, _)| is_bad(id)) else { return };
    let dir = case.row().map(|row| row.dir);
    out.gather(case, (case.seen.scope, dir), |times| {
        format!("{} declaring the extension {}, which is no id", count(times, "message"), short(&id))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_by_their_form() {
        let good = ["a", "", "progressToken", "io.modelcontextprotocol/x", "x/y_z.1-2", "a-b.c/", "ui/x"];
        let bad = ["_a", "a_", "1a/b", "a-/b", "a..b/c", "/a", "a b", "a/b/c", "ä", "a.b/-c"];
        for key in good {
            assert!(is_key(key), "{key}");
        }
        for key in bad {
            assert!(!is_key(key), "{key}");
        }
        let reserved = ["io.mcp/x", "dev.modelcontextprotocol/y", "io.modelcontextprotocol/other"];
        assert!(reserved.iter().all(|key| is_reserved(key)));
        let free = ["com.example.mcp/x", "mcp/x", "io.modelcontextprotocol/protocolVersion", "x"];
        assert!(!free.iter().any(|key| is_reserved(key)));
    }

    #[test]
    fn trace_context_is_told_by_its_form() {
        type Check = fn(&str) -> bool;
        let cases: &[(Check, &str, bool)] = &[
            (is_trace_parent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true),
            (is_trace_parent, "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", true),
            (is_trace_parent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", false),
            (is_trace_parent, "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false),
            (is_trace_parent, "00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
            (is_trace_parent, "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            (is_trace_parent, "", false),
            (is_trace_state, "congo=t61rcWkgMzE, rojo=00f067aa0ba902b7", true),
            (is_trace_state, "tenant@vendor=1,,", true),
            (is_trace_state, "", true),
            (is_trace_state, "Key=1", false),
            (is_trace_state, "key", false),
            (is_trace_state, "a=b=c", false),
            (is_baggage, "userId=alice,serverNode=DF%2028;ttl=1;flag", true),
            (is_baggage, "a=1 , b=2", true),
            (is_baggage, "a", false),
            (is_baggage, "a b=1", false),
            (is_baggage, "a=\"x\"", false),
        ];
        for (check, text, want) in cases {
            assert_eq!(check(text), *want, "{text}");
        }
    }
}
