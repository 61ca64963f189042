//! What rules about lists and their items share.

use std::borrow::Cow;

use super::Severity;
use super::case::{Case, short};
use super::findings::Out;
use crate::model::Listed;
use crate::spec::lists::ListKind;
use crate::wire::json::Value;

/// Faults named in one sentence; more are counted.
const NAMED: usize = 3;

/// The items of a page, with what each is called.
pub(super) fn items<'a>(case: &Case<'a>, kind: ListKind) -> impl Iterator<Item = (String, Value<'a>)> {
    let items = case.result().and_then(|result| result.get(kind.member()));
    items.into_iter().flat_map(Value::items).enumerate().map(move |(idx, item)| {
        let name = item.get(kind.key()).and_then(Value::text).filter(|name| !name.is_empty());
        (name.map_or_else(|| format!("item {}", idx + 1), |name| short(&name)), item)
    })
}

/// The list of this kind as the receiver of the case was told it.
pub(super) fn listed<'a>(case: &Case<'a>, kind: ListKind) -> Option<Listed<'a>> {
    case.model.listed(case.model.viewer(case.seen.call?)?, kind)
}

/// The result is a whole one: it neither asks for input nor stands for a task.
pub(super) fn is_complete(case: &Case<'_>) -> bool {
    let named = case.result().and_then(|result| result.get("resultType"));
    named.is_none_or(|named| named.is_text("complete")) && case.call().is_some_and(|call| !call.is_task)
}

/// Says what is wrong with an answer: one finding for the same faults, however often they are told.
pub(super) fn say(case: &Case<'_>, out: &mut Out<'_>, at_most: Severity, faults: &[String]) {
    if faults.is_empty() {
        return;
    }
    let named = faults.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = match faults.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let subject = case.subject();
    out.draft(case).at_most(at_most).gather(out, (case.seen.scope, faults), |times| {
        let often = if times == 1 { String::new() } else { format!(" (told {times} times)") };
        format!("{subject}: {named}{more}{often}")
    });
}

/// A member that must be a string: what is wrong with it.
pub(super) fn string_fault(item: Value<'_>, member: &str) -> Option<String> {
    match item.get(member) {
        Some(value) if value.text().is_some() => None,
        Some(value) => Some(format!("{member} is {}, not a string", short(value.raw()))),
        None => Some(format!("{member} is missing")),
    }
}

/// Text is Base64 in the standard alphabet; white space and missing padding are let pass.
pub(super) fn is_base64(text: &str) -> bool {
    let mut count = 0_usize;
    let mut padding = 0_usize;
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        match byte {
            b'=' => padding += 1,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' if padding == 0 => count += 1,
            _ => return false,
        }
    }
    count % 4 != 1 && padding <= 2
}

/// A member that must hold Base64: what is wrong with it.
pub(super) fn base64_fault(item: Value<'_>, member: &str) -> Option<String> {
    if let Some(fault) = string_fault(item, member) {
        return Some(fault);
    }
    let text = item.get(member).and_then(Value::text).unwrap_or(Cow::Borrowed(""));
    (!is_base64(&text)).then(|| format!("{member} is not Base64"))
}

#[cfg(test)]
mod tests {
    use super::is_base64;

    #[test]
    fn base64_is_told_from_other_text() {
        for (text, expected) in [
            ("", true),
            ("YQ==", true),
            ("YQ", true),
            ("YWJj", true),
            ("YW\nJj\n", true),
            ("Y", false),
            ("YQ=a", false),
            ("YQ===", false),
            ("a-b_", false),
            ("data:image/png;base64,YQ==", false),
        ] {
            assert_eq!(is_base64(text), expected, "{text:?}");
        }
    }
}
