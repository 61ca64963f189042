//! What every modern request says in `_meta`, and what becomes of one that does not
//! (MET-01, MET-02, MET-06, MET-07).

use crate::event::Transport;
use crate::model::Exchange;
use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::spec::codes;
use crate::spec::meta;
use crate::spec::methods::INITIALIZE;
use crate::wire::json::Value;

pub(super) fn rules(book: &mut Book) {
    book.rule("MET-01", &[On::Request], no_version);
    book.rule("MET-02", &[On::Request], no_capabilities);
    book.rule("MET-06", &[On::Result], served);
    book.rule("MET-07", &[On::Error], refused_otherwise);
}

/// A request that must say it all: of the client, and read.
pub(super) fn is_bound(case: &Case<'_>) -> bool {
    case.is_from_client() && case.method() != INITIALIZE && case.body().is_some()
}

/// It names its version.
pub(super) fn has_version(case: &Case<'_>) -> bool {
    case.meta(meta::PROTOCOL_VERSION).is_some_and(|version| version.text().is_some())
}

fn lacks(case: &Case<'_>, out: &mut Out<'_>, what: &str) {
    let subject = case.subject();
    out.gather(case, case.seen.scope, |times| {
        format!("{} without {what} in _meta; last: {subject}", count(times, "request"))
    });
}

fn no_version(case: &Case<'_>, out: &mut Out<'_>) {
    if is_bound(case) && !has_version(case) {
        lacks(case, out, "a protocolVersion");
    }
}

fn no_capabilities(case: &Case<'_>, out: &mut Out<'_>) {
    let has = || case.meta(meta::CLIENT_CAPABILITIES).is_some_and(Value::is_object);
    if is_bound(case) && has_version(case) && !has() {
        lacks(case, out, "clientCapabilities");
    }
}

/// What the request of an answer lacked.
fn lacked(case: &Case<'_>, out: &Out<'_>) -> Option<&'static str> {
    let call = case.seen.call.filter(|_| case.is_from_server())?;
    let is_about = |rule| out.findings.about(rule, call).is_some();
    if is_about("MET-01") {
        return Some("protocolVersion");
    }
    is_about("MET-02").then_some("clientCapabilities")
}

fn served(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(lacked) = lacked(case, out) else { return };
    // A pipe has no header that says the era beside `_meta`: a server of both eras may have taken the
    // request for a legacy one.
    let is_doubtful = lacked == "protocolVersion" && case.transport() == Transport::Stdio;
    let severity = if is_doubtful { Severity::Warning } else { Severity::Error };
    let sentence = format!("{}, which lacks {lacked}, was served", case.subject());
    out.draft(case).at_most(severity).say(out, sentence);
}

fn refused_otherwise(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(lacked), Some(code)) = (lacked(case, out), case.code()) else { return };
    let status = case.exchange().and_then(Exchange::status);
    // Without the version, header and body disagree as well; other checks may come first.
    let is_fitting = match code {
        codes::INVALID_PARAMS => true,
        codes::HEADER_MISMATCH => lacked == "protocolVersion",
        _ => false,
    };
    let is_checked_before = code == codes::METHOD_NOT_FOUND || matches!(status, Some(401 | 403));
    if is_checked_before || (is_fitting && status.is_none_or(|status| status == 400)) {
        return;
    }
    let with = status.map_or_else(String::new, |status| format!(" and status {status}"));
    out.say(case, format!("{}, which lacks {lacked}, was refused with {code}{with}", case.subject()));
}
