//! What the answer to `server/discover` proves about a server.

use serde_json::value::RawValue;

use crate::peer::client::{Outcome, Report};
use crate::spec::codes;
use crate::spec::transport::Transport;
use crate::wire::jsonrpc;

/// What is proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A modern server that speaks these revisions.
    Modern {
        /// `supportedVersions`.
        supported: Vec<String>,
    },
    /// A modern server that does not speak the revision of the question.
    Refused {
        /// `data.supported`.
        supported: Vec<String>,
    },
    /// An error that only modern servers know.
    ModernError(i64),
    /// Nothing: an old, a slow, a broken and a dead server may all behave so.
    Ambiguous(&'static str),
    /// Nothing, and it does not even look like an old server.
    Outage(&'static str),
}

/// Judges one answer. On HTTP only a refusal of the request itself may come from an old server; a
/// failure of the way is an outage (`// ours:` the specification speaks of bodies of 400, 404, 405).
pub(super) fn judge(report: &Report, transport: Transport) -> Verdict {
    let is_http = transport == Transport::Http;
    match &report.outcome {
        Outcome::Complete(result) => match versions(result, "supportedVersions") {
            Some(supported) if has_object(result, "capabilities") => Verdict::Modern { supported },
            _ => Verdict::Ambiguous("the result is none of server/discover"),
        },
        Outcome::Error { code: codes::UNSUPPORTED_PROTOCOL_VERSION, data, .. } => {
            let supported = data.as_ref().and_then(|data| versions(data, "supported"));
            Verdict::Refused { supported: supported.unwrap_or_default() }
        }
        Outcome::Error { code, .. }
            if matches!(*code, codes::HEADER_MISMATCH | codes::MISSING_REQUIRED_CLIENT_CAPABILITY) =>
        {
            Verdict::ModernError(*code)
        }
        // Servers of older eras have no status for a method that they do not know.
        Outcome::Error { code: codes::METHOD_NOT_FOUND, .. } if is_http && report.status == Some(404) => {
            Verdict::ModernError(codes::METHOD_NOT_FOUND)
        }
        Outcome::Error { .. } if is_server_fault(report.status) => {
            Verdict::Outage("the server fails to answer")
        }
        Outcome::Error { .. } => Verdict::Ambiguous("an error that any server may give"),
        Outcome::Refused { .. } if matches!(report.status, Some(400 | 404 | 405)) => {
            Verdict::Ambiguous("refused without an MCP answer")
        }
        Outcome::Refused { .. } => Verdict::Outage("refused for a reason that is none of an era"),
        Outcome::GivenUp(_) if is_http => Verdict::Outage("silence"),
        Outcome::GivenUp(_) => Verdict::Ambiguous("silence"),
        Outcome::Lost(_) if is_http => Verdict::Outage("the connection ended"),
        Outcome::Lost(_) => Verdict::Ambiguous("the server ended"),
        Outcome::InputRequired(_) | Outcome::Task(_) | Outcome::TaskCancelled | Outcome::Invalid(_) => {
            Verdict::Ambiguous("the answer is not valid")
        }
    }
}

fn is_server_fault(status: Option<u16>) -> bool {
    status.is_some_and(|status| status >= 500)
}

fn has_object(result: &RawValue, name: &str) -> bool {
    jsonrpc::at(result, &[name]).is_some_and(|raw| raw.get().starts_with('{'))
}

fn versions(result: &RawValue, name: &str) -> Option<Vec<String>> {
    serde_json::from_str(jsonrpc::at(result, &[name])?.get()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::peer::client::{Reason, raw};
    use crate::time::Ms;
    use crate::wire::jsonrpc::Id;

    fn report(outcome: Outcome, status: Option<u16>) -> Report {
        let (id, faults) = (Id::from(1), Vec::new());
        Report { id, outcome, status, progress: 0, rejected: 0, elapsed: Ms(0), faults, challenge: None }
    }

    fn complete(result: &Value) -> Outcome {
        Outcome::Complete(raw(result))
    }

    fn error(code: i64, data: Option<&Value>) -> Outcome {
        Outcome::Error { code, message: String::new(), data: data.map(raw) }
    }

    /// How it came, what it was with which status, and the class of what it proves.
    type Row = (Transport, Outcome, Option<u16>, fn(&Verdict) -> bool);

    #[test]
    fn an_answer_proves_what_only_one_era_says() {
        use Transport::{Http, Stdio};
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let good = json!({ "supportedVersions": ["2026-07-28", "2027-01-01"], "capabilities": {} });
        let data = json!({ "supported": ["2027-01-01"], "requested": "2026-07-28" });
        let refused = || error(-32022, Some(&data));
        let html = || Outcome::Refused { body: "<html>".to_owned() };
        let ambiguous = |verdict: &Verdict| matches!(verdict, Verdict::Ambiguous(_));
        let outage = |verdict: &Verdict| matches!(verdict, Verdict::Outage(_));
        let modern = Verdict::Modern { supported: texts(&["2026-07-28", "2027-01-01"]) };
        let exact = [
            (Stdio, complete(&good), None, modern.clone()),
            (Http, complete(&good), Some(200), modern),
            (Stdio, refused(), None, Verdict::Refused { supported: texts(&["2027-01-01"]) }),
            (Http, refused(), Some(400), Verdict::Refused { supported: texts(&["2027-01-01"]) }),
            (Stdio, error(-32022, None), None, Verdict::Refused { supported: Vec::new() }),
            (Stdio, error(-32020, None), None, Verdict::ModernError(-32020)),
            (Http, error(-32021, None), Some(400), Verdict::ModernError(-32021)),
            (Http, error(-32601, None), Some(404), Verdict::ModernError(-32601)),
        ];
        for (transport, outcome, status, expected) in exact {
            let told = format!("{transport:?} {outcome:?} {status:?}");
            assert_eq!(judge(&report(outcome, status), transport), expected, "{told}");
        }
        let classes: [Row; 16] = [
            (Stdio, error(-32601, None), None, ambiguous),
            (Http, error(-32601, None), Some(200), ambiguous),
            (Http, error(-32000, None), Some(400), ambiguous),
            (Stdio, error(-32002, None), None, ambiguous),
            (Stdio, complete(&json!({})), None, ambiguous),
            (Stdio, complete(&json!({ "supportedVersions": ["2026-07-28"] })), None, ambiguous),
            (Stdio, complete(&json!({ "supportedVersions": "all", "capabilities": {} })), None, ambiguous),
            (Stdio, Outcome::GivenUp(Reason::Maximum), None, ambiguous),
            (Stdio, Outcome::Lost(String::new()), None, ambiguous),
            (Stdio, Outcome::Invalid(String::new()), None, ambiguous),
            (Http, html(), Some(404), ambiguous),
            (Http, html(), Some(405), ambiguous),
            (Http, html(), Some(503), outage),
            (Http, html(), Some(401), outage),
            (Http, error(-32603, None), Some(500), outage),
            (Http, Outcome::GivenUp(Reason::Maximum), None, outage),
        ];
        for (transport, outcome, status, is_class) in classes {
            let told = format!("{transport:?} {outcome:?} {status:?}");
            let verdict = judge(&report(outcome, status), transport);
            assert!(is_class(&verdict), "{told}: {verdict:?}");
        }
    }
}
