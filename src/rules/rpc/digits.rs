//! Integers that a double cannot hold, and values that come back with other digits (RPC-29, REL-18).

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::what;
use crate::event::Dir;
use crate::model::{Call, CallIdx, ScopeIdx};
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::wire::json::{Kind, Value};
use crate::wire::jsonrpc::Id;

/// The largest integer up to which a double tells every one from its neighbour: 2^53 - 1.
const SAFE: &str = "9007199254740991";

/// Unsafe integers of one side that are remembered. ours: an echo comes soon or never.
const HANDED_LIMIT: usize = 64;

pub(super) fn rules(book: &mut Book) {
    book.rule("RPC-29", &[On::Message], Echoes::default());
    book.rule("REL-18", &[On::Message], beyond_double);
}

/// Runs of as many digits as an unsafe integer has. One of every 16 bytes is looked at: no such run
/// fits between two of them.
fn runs(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let mut passed = 0;
    (SAFE.len() - 1..text.len()).step_by(SAFE.len()).filter_map(move |at| {
        let (before, after) = text.split_at_checked(at)?;
        if at < passed || !after.first().is_some_and(u8::is_ascii_digit) {
            return None;
        }
        let start = at - before.iter().rev().take_while(is_digit).count();
        passed = at + after.iter().take_while(is_digit).count();
        (passed - start >= SAFE.len()).then_some(start..passed)
    })
}

/// The digits of an integer as written, without its sign.
fn digits_of(raw: &str) -> &str {
    raw.strip_prefix('-').unwrap_or(raw)
}

fn is_unsafe(digits: &str) -> bool {
    digits.len() > SAFE.len() || (digits.len() == SAFE.len() && digits > SAFE)
}

/// Integers of a message beyond ±(2^53 - 1).
fn unsafe_integers(body: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let text = body.raw().as_bytes();
    let start = body.span().start;
    runs(text).filter_map(move |run| {
        let sign = run.start.checked_sub(1).and_then(|at| text.get(at)) == Some(&b'-');
        let value = body.starting_at(start + run.start - usize::from(sign))?;
        let digits = digits_of(value.raw());
        let is_integer = value.kind() == Kind::Number && digits.len() == run.len();
        (is_integer && is_unsafe(digits)).then_some(value)
    })
}

fn beyond_double(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(number) = case.body().and_then(|body| unsafe_integers(body).next()) else { return };
    let (number, what) = (short(number.raw()), what(case));
    out.gather(case, (case.seen.scope, case.row().map(|row| row.dir)), |times| {
        let verb = if times == 1 { "holds an integer" } else { "hold integers" };
        format!("{} {verb} beyond 2^53 - 1; last: {number} in {what}", count(times, "message"))
    });
}

/// What a double makes of digits: its exact value, and the shortest digits that mean it.
fn rounded(digits: &str) -> Option<[String; 2]> {
    let double: f64 = digits.parse().ok()?;
    double.is_finite().then(|| [format!("{double:.0}"), format!("{double}")])
}

/// These digits are others, and what a double makes of the original.
fn is_rounded_from(digits: &str, original: &str) -> bool {
    digits != original && rounded(original).is_some_and(|forms| forms.iter().any(|form| form == digits))
}

/// The open request of a side whose id or token, as `name_of` tells it, is this one after it went
/// through a double.
pub(super) fn rounded_from(
    case: &Case<'_>,
    name: &Id,
    asker: Dir,
    name_of: fn(&Call) -> Option<&Id>,
) -> Option<CallIdx> {
    let Id::Int(digits) = name else { return None };
    // Rounding may lead down to 2^53 itself, which is unsafe as well.
    if !is_unsafe(digits_of(digits)) {
        return None;
    }
    case.model.open_in(case.seen.scope).find(|idx| {
        case.model.call(*idx).is_some_and(|call| match name_of(call) {
            Some(Id::Int(original)) => call.sender == asker && is_rounded_from(digits, original),
            _ => false,
        })
    })
}

/// An unsafe integer that a side has sent.
struct Handed {
    digits: Box<str>,
    call: Option<CallIdx>,
}

/// Values that come back from the other side.
#[derive(Default)]
struct Echoes {
    handed: HashMap<(ScopeIdx, Dir), VecDeque<Handed>>,
}

impl Look for Echoes {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(body), Some(row)) = (case.body(), case.row()) else { return };
        let other = if row.dir == Dir::C2s { Dir::S2c } else { Dir::C2s };
        for number in unsafe_integers(body) {
            let digits = number.raw();
            let knows = |dir| {
                let handed = self.handed.get(&(case.seen.scope, dir));
                handed.is_some_and(|list| list.iter().any(|one| &*one.digits == digits))
            };
            if knows(row.dir) {
                continue;
            }
            if !knows(other)
                && let Some(list) = self.handed.get(&(case.seen.scope, other))
                && let Some(original) = list.iter().rev().find(|one| is_rounded_from(digits, &one.digits))
            {
                tell(case, out, number, original);
            }
            let mine = self.handed.entry((case.seen.scope, row.dir)).or_default();
            if mine.len() == HANDED_LIMIT {
                mine.pop_front();
            }
            mine.push_back(Handed { digits: digits.into(), call: case.seen.call });
        }
    }
}

fn tell(case: &Case<'_>, out: &mut Out<'_>, number: Value<'_>, original: &Handed) {
    // Elsewhere the same digits could be a value of their own, by a rare chance.
    let is_echo =
        is_echoed_member(case, number) || (case.seen.call.is_some() && case.seen.call == original.call);
    let severity = if is_echo { Severity::Error } else { Severity::Warning };
    let sentence =
        format!("{} came back as {} in {}", short(&original.digits), short(number.raw()), what(case));
    let mut draft = out.draft(case).at_most(severity);
    if let Some(call) = original.call {
        draft = draft.and_call(case.model, call);
    }
    draft.say(out, sentence);
}

/// It stands where only a value of the other side can stand.
fn is_echoed_member(case: &Case<'_>, number: Value<'_>) -> bool {
    let is_it = |value: Option<Value<'_>>| value.is_some_and(|value| value.position() == number.position());
    let is_answer = case.body().is_some_and(|body| body.get("method").is_none());
    let members = ["progressToken", "requestId", "cursor", "requestState"];
    (is_answer && is_it(case.body().and_then(|body| body.get("id"))))
        || members.iter().any(|name| is_it(case.params().and_then(|params| params.get(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_of_digits_are_found_wherever_they_stand() {
        for before in 0..40 {
            for len in 14..40 {
                let text = format!("{}{}{}", "x".repeat(before), "7".repeat(len), "y".repeat(9));
                let found: Vec<_> = runs(text.as_bytes()).collect();
                let want: Vec<_> = (len >= 16).then_some(before..before + len).into_iter().collect();
                assert_eq!(found, want, "{len} digits behind {before}");
            }
        }
    }

    #[test]
    fn digits_are_rounded_as_a_double_does() {
        let cases = [
            ("9007199254740992", "9007199254740993", true),
            ("1234567890123456768", "1234567890123456789", true),
            ("1234567890123456800", "1234567890123456789", true),
            ("1234567890123456788", "1234567890123456789", false),
            ("1234567890123456789", "1234567890123456789", false),
            ("9007199254740993", "9007199254740992", false),
        ];
        for (digits, original, want) in cases {
            assert_eq!(is_rounded_from(digits, original), want, "{original} as {digits}");
        }
    }
}
