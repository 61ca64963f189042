//! What follows from what: a finding that another one explains hangs under it, so that one mistake
//! is told once.

use super::Finding;
use super::findings::Findings;
use crate::model::ScopeIdx;

/// Where cause and consequence must meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    /// They are about the same call.
    Call,
    /// They are in the same process or session.
    Scope,
}

/// A consequence, what may have caused it (the likeliest first), and where they must meet.
const CAUSES: &[(&str, &[&str], Join)] = &[
    // An answer that cannot be matched leaves its call open.
    ("REL-11", &["RPC-09", "SSE-10", "SSE-06", "STD-06", "STD-08"], Join::Call),
    ("REL-11", &["RPC-08", "STD-03", "STD-01", "STD-13", "RPC-26", "STD-08"], Join::Scope),
    ("STD-11", &["REL-11"], Join::Call),
    // The token is the id.
    ("PRG-06", &["RPC-05", "RPC-07"], Join::Call),
    ("PRG-07", &["RPC-06", "RPC-07"], Join::Call),
    ("SUB-11", &["LOG-04", "PRG-04"], Join::Call),
    // Work that goes on comes to an answer.
    ("CAN-05", &["CAN-06"], Join::Call),
    ("STD-08", &["RPC-09"], Join::Call),
    ("STD-11", &["RPC-09"], Join::Call),
    ("STD-08", &["RPC-08"], Join::Scope),
    ("STD-11", &["RPC-08"], Join::Scope),
    // Ids that two requests share, and ids that came back with other digits.
    ("REL-11", &["RPC-29", "RPC-05", "RPC-06", "RPC-07"], Join::Call),
    ("STD-08", &["RPC-29", "RPC-05", "RPC-07"], Join::Call),
    ("STD-11", &["RPC-29", "RPC-05", "RPC-07"], Join::Call),
    // A request that must not be is answered all the same.
    ("RPC-25", &["RPC-24"], Join::Call),
    // A task for a client that did not declare them is a type that it does not know.
    ("TSK-01", &["RPC-21"], Join::Call),
    // One member that is missing is told by the rule that looks at nothing else.
    ("VER-07", &["RPC-20"], Join::Call),
    ("MET-06", &["MET-01", "MET-02"], Join::Call),
    ("MET-07", &["MET-01", "MET-02"], Join::Call),
    // How a call was cut, told from several sides.
    ("REL-14", &["REL-13"], Join::Call),
    ("REL-15", &["REL-13"], Join::Call),
    ("REL-16", &["REL-13"], Join::Call),
    // A repetition begins with a loss.
    ("REL-01", &["REL-09", "RTY-01", "SSE-06", "REL-19", "REL-13"], Join::Call),
    ("REL-09", &["RTY-01", "SSE-06", "REL-19", "REL-13"], Join::Call),
    ("RTY-01", &["SSE-06", "REL-19", "REL-13"], Join::Call),
    ("REL-05", &["REL-10"], Join::Call),
    ("SSE-06", &["REL-17"], Join::Call),
    // What comes after the end of a stream is wrong in its own way, too.
    ("RPC-10", &["SSE-04"], Join::Call),
    ("PRG-02", &["SSE-04"], Join::Call),
    ("SUB-12", &["SSE-02"], Join::Call),
    // One message on the wrong stream, one result without its type.
    ("SUB-11", &["PRG-04", "LOG-04"], Join::Call),
    ("SUB-12", &["SSE-02"], Join::Call),
    ("SUB-13", &["RPC-20"], Join::Call),
    // What was granted too generously is delivered too.
    ("SUB-05", &["SUB-04"], Join::Call),
    // The answers that go with a state of somebody else.
    ("MRT-10", &["MRT-07", "MRT-08"], Join::Call),
];

/// The finding that explains this one, if one was made before.
pub(super) fn cause_of(findings: &Findings, finding: &Finding, scope: ScopeIdx) -> Option<usize> {
    let mine = CAUSES.iter().filter(|(consequence, ..)| *consequence == finding.rule);
    mine.flat_map(|(_, causes, join)| causes.iter().map(move |cause| (*cause, *join))).find_map(
        |(cause, join)| match join {
            Join::Call => finding.calls.iter().find_map(|call| findings.about(cause, *call)),
            Join::Scope => findings.within(cause, scope),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::catalogue;

    #[test]
    fn causes_are_rules_and_nothing_causes_itself() {
        for (consequence, causes, _) in CAUSES {
            assert!(catalogue::find(consequence).is_some(), "{consequence}");
            for cause in *causes {
                assert!(catalogue::find(cause).is_some() && cause != consequence, "{consequence} {cause}");
            }
        }
    }
}
