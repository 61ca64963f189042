//! Header fields that mirror arguments, as a tool's definition wants them (HTTP-25..28, HTTP-30).

use super::mirror::{Mirror, encodable, mirror, param};
use super::posted;
use crate::model::{Definition, Exchange};
use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, short};
use crate::rules::findings::{Draft, Out};
use crate::spec::annotations::{Annotations, Param};
use crate::spec::headers;
use crate::wire::json::{Kind, Value};

/// Integers beyond it are compared as they are written.
const EXACT: f64 = 9_007_199_254_740_992.0;

pub(super) fn rules(book: &mut Book) {
    let call = [On::RequestOf("tools/call")];
    book.rule("HTTP-25", &call, |case: &Case<'_>, out: &mut Out<'_>| each(case, out, Wrong::Missing));
    book.rule("HTTP-26", &call, |case: &Case<'_>, out: &mut Out<'_>| each(case, out, Wrong::Needless));
    book.rule("HTTP-27", &call, |case: &Case<'_>, out: &mut Out<'_>| each(case, out, Wrong::Different));
    book.rule("HTTP-28", &[On::ResultOf("tools/call")], served);
    book.rule("HTTP-30", &call, invalid_tool);
}

/// What can be wrong with the field of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Missing,
    Needless,
    Different,
}

/// The field that mirrors a parameter.
fn field<'a>(exchange: &'a Exchange, name: &str) -> Option<&'a str> {
    let is_it = |field: &str| param(field).is_some_and(|field| field.eq_ignore_ascii_case(name));
    encodable(exchange).find(|(field, _)| is_it(field)).map(|(_, value)| value)
}

fn compare(exchange: &Exchange, wanted: &Param<'_>, params: Option<Value<'_>>) -> Option<Wrong> {
    let arguments = params.and_then(|params| params.get("arguments"));
    let argument = wanted.path.iter().try_fold(arguments, |value, name| Some(value?.get(name))).flatten();
    match (field(exchange, &wanted.field), argument.filter(|argument| !argument.is_null())) {
        (None, None) => None,
        (None, Some(_)) => Some(Wrong::Missing),
        (Some(_), None) => Some(Wrong::Needless),
        (Some(field), Some(argument)) => differs(field, argument).then_some(Wrong::Different),
    }
}

/// Strings are compared exactly, integers as numbers. What is not well encoded is told by HTTP-08 and
/// HTTP-09.
fn differs(field: &str, argument: Value<'_>) -> bool {
    match argument.kind() {
        Kind::String => argument.text().is_some_and(|text| mirror(field, &text) == Mirror::Different),
        Kind::Bool => mirror(field, argument.raw()) == Mirror::Different,
        Kind::Number => {
            let Ok(text) = headers::decode(field.trim()) else { return false };
            let numbers = text.parse::<f64>().ok().zip(argument.number());
            let is_equal = numbers.is_some_and(|(a, b)| a.abs() < EXACT && (a - b).abs() < f64::EPSILON);
            text != argument.raw() && !is_equal
        }
        Kind::Null | Kind::Array | Kind::Object => false,
    }
}

/// The tool's definition, and a finding that is a hint unless this client surely was given it.
fn definition<'a>(case: &Case<'a>, out: &Out<'_>) -> Option<(Definition<'a>, Draft)> {
    let definition = case.model.definition(case.seen.call?)?;
    let draft = out.draft(case).and_event(case.model.row(definition.row)?.n);
    let is_sure = definition.is_current && is_one_client(case, &definition);
    Some((definition, if is_sure { draft } else { draft.at_most(Severity::Hint) }))
}

/// The list was given to the client of this request: on its connection, or under its token.
fn is_one_client(case: &Case<'_>, definition: &Definition<'_>) -> bool {
    let listed = case.model.row(definition.row).and_then(|row| row.call);
    let has_token = case.exchange().is_some_and(|exchange| exchange.headers().get("authorization").is_some());
    has_token || listed.is_some_and(|listed| case.is_one_connection(listed))
}

fn each(case: &Case<'_>, out: &mut Out<'_>, wrong: Wrong) {
    let Some(exchange) = posted(case) else { return };
    let is_silent = wrong != Wrong::Missing && !encodable(exchange).any(|(name, _)| param(name).is_some());
    let Some((definition, draft)) = (if is_silent { None } else { definition(case, out) }) else { return };
    let all = Annotations::of(definition.value);
    // Such a tool is not to be called at all (HTTP-30).
    if all.fault.is_some() {
        return;
    }
    let Some(wanted) = all.params.iter().find(|param| compare(exchange, param, case.params()) == Some(wrong))
    else {
        return;
    };
    let (subject, name) = (case.subject(), short(&wanted.field));
    let sentence = match wrong {
        Wrong::Missing => format!("{subject} came without {}{name}", headers::PARAM_PREFIX),
        Wrong::Needless => {
            format!("{subject} came with {}{name} and no such argument", headers::PARAM_PREFIX)
        }
        Wrong::Different => {
            let value = short(field(exchange, &wanted.field).unwrap_or_default());
            format!("{subject} came with {}{name} {value}, which is not the argument", headers::PARAM_PREFIX)
        }
    };
    draft.say(out, sentence);
}

/// The fields of the arguments are as the definition wants them; `None`: it is not known.
pub(super) fn agree(case: &Case<'_>) -> Option<bool> {
    let definition = case.model.definition(case.seen.call?).filter(|definition| definition.is_current)?;
    let all = Annotations::of(definition.value);
    let (exchange, params) = (case.exchange()?, case.request_params());
    Some(all.fault.is_none() && all.params.iter().all(|wanted| compare(exchange, wanted, params).is_none()))
}

fn served(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(call) = case.seen.call else { return };
    let Some(fault) = out.findings.about_any(&["HTTP-25", "HTTP-26", "HTTP-27"], call) else { return };
    if out.findings.all().get(fault).is_some_and(|finding| finding.severity == Severity::Error) {
        let sentence =
            format!("{} got a result although its header fields do not mirror its arguments", case.subject());
        out.draft(case).because(Some(fault)).say(out, sentence);
    }
}

fn invalid_tool(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((definition, draft)) = posted(case).and_then(|_| definition(case, out)) else { return };
    if let Some(fault) = Annotations::of(definition.value).fault {
        draft.say(out, format!("{} names a tool whose definition is to be dropped: {fault}", case.subject()));
    }
}
