//! Error codes: whose they are, and which of them a modern server may still send (RPC-14..17).

use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::{Case, count};
use crate::rules::findings::Out;
use crate::spec::codes::{self, CodeClass};

pub(super) fn rules(book: &mut Book) {
    book.rule("RPC-14", &[On::Error], reserved_for_mcp);
    book.rule("RPC-15", &[On::Error], legacy_range);
    book.rule("RPC-16", &[On::Error], retired);
    book.rule("RPC-17", &[On::Error], reserved_for_json_rpc);
}

/// The code of a server's error, and what the era makes of it.
fn code_of(case: &Case<'_>) -> Option<(i64, CodeClass)> {
    let code = case.code().filter(|_| case.is_from_server())?;
    Some((code, codes::class(code, case.era()?)))
}

fn tell(case: &Case<'_>, out: &mut Out<'_>, code: i64, severity: Severity, what: &str) {
    let subject = case.subject();
    out.draft(case).at_most(severity).gather(out, (case.seen.scope, code), |times| {
        format!("{} with the code {code}, {what}; last: for {subject}", count(times, "error"))
    });
}

fn reserved_for_mcp(case: &Case<'_>, out: &mut Out<'_>) {
    if let Some((code, CodeClass::ReservedForMcp)) = code_of(case) {
        let is_attributed = case.seen.call.is_some() || !case.is_dual();
        let severity = if is_attributed { Severity::Error } else { Severity::Hint };
        tell(case, out, code, severity, "which MCP has reserved and not defined");
    }
}

fn legacy_range(case: &Case<'_>, out: &mut Out<'_>) {
    if let Some((code, CodeClass::LegacyRange)) = code_of(case) {
        tell(case, out, code, Severity::Hint, "from a range in which no code has a meaning any more");
    }
}

fn retired(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((code @ (codes::RESOURCE_NOT_FOUND | codes::URL_ELICITATION_REQUIRED), CodeClass::OtherEra)) =
        code_of(case)
    else {
        return;
    };
    // A server that knows nothing of the modern era may send what it always sent.
    let severity = match case.speaks() {
        speaks if speaks.modern => Severity::Error,
        speaks if speaks.legacy => return,
        _ => Severity::Hint,
    };
    tell(case, out, code, severity, "which this era has retired");
}

fn reserved_for_json_rpc(case: &Case<'_>, out: &mut Out<'_>) {
    if let Some((code, CodeClass::ReservedForJsonRpc)) = code_of(case) {
        tell(case, out, code, Severity::Hint, "which JSON-RPC has reserved");
    }
}
