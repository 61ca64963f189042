//! When the answer to `initialize` may be believed. The envelope (`jsonrpc`, id with its type,
//! result and no error) was checked when it was read.

use serde_json::value::RawValue;

use crate::peer::client::Outcome;
use crate::spec::era::Era;
use crate::wire::jsonrpc;

/// The revision of the session.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn accept(outcome: &Outcome, revisions: &[Era]) -> Result<Era, String> {
    let result = match outcome {
        Outcome::Complete(result) => result,
        Outcome::Error { code, message, .. } => return Err(format!("error {code}: {message}")),
        Outcome::GivenUp(reason) => return Err(format!("no answer: {}", reason.as_str())),
        Outcome::Lost(why) | Outcome::Invalid(why) => return Err(why.clone()),
        Outcome::Refused { .. } => return Err("no MCP answer".to_owned()),
        Outcome::InputRequired(_) | Outcome::Task(_) | Outcome::TaskCancelled => {
            return Err("no result of initialize".to_owned());
        }
    };
    let version = text(result, &["protocolVersion"]).ok_or("the result names no revision")?;
    let era = revisions.iter().copied().find(|era| era.as_str() == version);
    let era = era.ok_or_else(|| format!("the revision {version:?} is not among those accepted"))?;
    if !jsonrpc::at(result, &["capabilities"]).is_some_and(|raw| raw.get().starts_with('{')) {
        return Err("capabilities is no object".to_owned());
    }
    for member in ["name", "version"] {
        if text(result, &["serverInfo", member]).is_none_or(|text| text.is_empty()) {
            return Err(format!("serverInfo has no {member}"));
        }
    }
    Ok(era)
}

fn text(result: &RawValue, path: &[&str]) -> Option<String> {
    jsonrpc::at(result, path).and_then(jsonrpc::string).map(std::borrow::Cow::into_owned)
}
