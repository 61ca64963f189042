//! Asking the client in the middle of a request.
//!
//! Modern: the request is answered with what is missing, and sealed state; the client sends it
//! again with its answers, and the handler starts anew and finds them. Several rounds work alike:
//! what was answered before travels in the state. Legacy: the questions go out as requests of the
//! server, and the handler waits.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Context, Ended};
use crate::machine::fingerprint;
use crate::peer::server::caller::{Caller, missing_capabilities};
use crate::peer::server::message::{self, Refusal, Request};
use crate::spec::methods;
use crate::time::Ms;

/// A question: the key under which it is answered, the method, the parameters.
pub(in crate::peer::server) type Question<'a> = (&'a str, &'a str, Value);

/// Members of a retry that the first request did not have (MRT-05 to MRT-07).
const RETRY_MEMBERS: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// How long a client may take to come back. ours: one hour.
const STATE_LIFE: Ms = Ms(3_600_000);

/// Digits that [`fingerprint::compact`] writes for parameters which it cannot read.
const UNREADABLE: &str = "unreadable";

impl Context {
    /// Asks the client, and gives its answers by key: what a client answers to an elicitation, a
    /// sampling or a roots request. Only kinds that this very request declares can be asked for
    /// (MRT-04).
    pub(in crate::peer::server) async fn ask(
        &mut self,
        questions: &[Question<'_>],
    ) -> Result<Map<String, Value>, Ended> {
        let era = self.caller.era;
        if !era.is_modern()
            && let Some((_, method, _)) =
                questions.iter().find(|(_, method, _)| methods::Method::find(method, era).is_none())
        {
            return Err(Ended::Failed(format!("revision {} has no {method}", era.as_str())));
        }
        let missing: Vec<Vec<&str>> = questions
            .iter()
            .filter_map(|(_, method, params)| missing_for(&self.caller, method, params))
            .collect();
        if !missing.is_empty() {
            return Err(Ended::Refused(missing_capabilities(&self.request.id, &missing)));
        }
        if self.caller.questions.is_some() {
            self.ask_now(questions).await
        } else {
            self.ask_by_answer(questions)
        }
    }

    /// What this request has been answered so far, in its earlier rounds and in this one.
    pub(in crate::peer::server) fn answers(&self) -> Result<Map<String, Value>, Ended> {
        let refuse = |text: &str| Ended::Refused(Refusal::params(&self.request.id, text));
        let came = match self.request.at(&["inputResponses"]) {
            None => Map::new(),
            Some(_) => self
                .request
                .object_at(&["inputResponses"])
                .ok_or_else(|| refuse("inputResponses is an object of answers by key"))?,
        };
        if self.request.at(&["requestState"]).is_none() {
            let is_first = came.is_empty();
            return if is_first { Ok(came) } else { Err(refuse("inputResponses without the requestState")) };
        }
        let state = self.request.string_at(&["requestState"]);
        let state = state.and_then(|text| self.core.seal.open(&text));
        let state = state.filter(|state| self.is_of_this(state));
        let state =
            state.ok_or_else(|| refuse("requestState is not one that was given out for this request"))?;
        let mut answers = state["answers"].as_object().cloned().unwrap_or_default();
        // MRT-10: what was not asked is not looked at.
        answers.extend(came.into_iter().filter(|(key, _)| {
            state["asked"].as_array().is_some_and(|asked| asked.iter().any(|one| one == key))
        }));
        Ok(answers)
    }

    /// The state belongs to this request: same method, same parameters, same principal, in time.
    fn is_of_this(&self, state: &Value) -> bool {
        state["of"] == json!(self.intent())
            && state["until"].as_u64().is_some_and(|until| self.core.clock.now().0 < until)
    }

    /// What makes a retry the same request as the first: SHA-256 in hex.
    fn intent(&self) -> String {
        let Request { method, .. } = &*self.request;
        let principal = self.caller.principal.as_deref();
        let kept: Map<String, Value> = self
            .request
            .object_at(&[])
            .unwrap_or_default()
            .into_iter()
            .filter(|(name, _)| !RETRY_MEMBERS.contains(&name.as_str()))
            .collect();
        let params = fingerprint::compact(&Value::Object(kept).to_string(), None);
        let params = params.unwrap_or_else(|_| UNREADABLE.to_owned());
        let digest = Sha256::digest(json!([method, principal, params]).to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn ask_by_answer(&self, questions: &[Question<'_>]) -> Result<Map<String, Value>, Ended> {
        let answers = self.answers()?;
        let open: Vec<&Question<'_>> =
            questions.iter().filter(|(key, ..)| !answers.contains_key(*key)).collect();
        if open.is_empty() {
            return Ok(answers);
        }
        let asked: Vec<&str> = open.iter().map(|(key, ..)| *key).collect();
        let state = json!({
            "of": self.intent(),
            "asked": asked,
            "answers": answers,
            "until": self.core.clock.now().0 + STATE_LIFE.0,
        });
        let requests: Map<String, Value> = open
            .iter()
            .map(|(key, method, params)| ((*key).to_owned(), json!({ "method": method, "params": params })))
            .collect();
        Err(Ended::NeedsInput(super::object(json!({
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": self.core.seal.close(&state),
        }))))
    }

    /// Asks one after the other, on the stream of this request.
    async fn ask_now(&mut self, questions: &[Question<'_>]) -> Result<Map<String, Value>, Ended> {
        let Some(asker) = self.caller.questions.clone() else { return Err(Ended::Cancelled) };
        let mut answers = Map::new();
        for (key, method, params) in questions {
            let (id, told) = asker.open();
            self.send(message::request(&id, method, params), None).await?;
            let said = tokio::select! {
                biased;
                () = self.live.cancel.cancelled() => {
                    asker.give_up(&id);
                    return Err(Ended::Cancelled);
                }
                said = told => said,
            };
            match said {
                Ok(Ok(answer)) => answers.insert((*key).to_owned(), answer),
                Ok(Err(text)) => return Err(Ended::Failed(format!("the client refuses {method}: {text}"))),
                Err(_) => return Err(Ended::Cancelled),
            };
        }
        Ok(answers)
    }
}

/// The capability that this question needs and the client does not declare.
fn missing_for(caller: &Caller, method: &str, params: &Value) -> Option<Vec<&'static str>> {
    let (has, path): (bool, &[&str]) = match method {
        "elicitation/create" if params["mode"] == "url" => {
            (caller.can(&["elicitation", "url"]), &["elicitation", "url"])
        }
        "elicitation/create" if caller.can(&["elicitation"]) => {
            (caller.can_fill_forms(), &["elicitation", "form"])
        }
        "elicitation/create" => (false, &["elicitation"]),
        "sampling/createMessage" if params.get("tools").is_some() => {
            (caller.can(&["sampling", "tools"]), &["sampling", "tools"])
        }
        "sampling/createMessage" => (caller.can(&["sampling"]), &["sampling"]),
        _ => (caller.can(&["roots"]), &["roots"]),
    };
    (!has).then(|| path.to_vec())
}
