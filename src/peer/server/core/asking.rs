//! Asking the client in the middle of a request.
//!
//! Modern: the request is answered with what is missing, and sealed state; the client sends it
//! again with its answers, and the handler starts anew and finds them. Several rounds work alike:
//! what was answered before travels in the state. Legacy: the questions go out as requests of the
//! server, and the handler waits.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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

/// How long the client may take to answer a request of the server: people are asked. ours: five
/// minutes.
const ASK_LIMIT: Ms = Ms(300_000);

/// Digits that [`fingerprint::compact`] writes for parameters which it cannot read.
const UNREADABLE: &str = "unreadable";

impl Context {
    /// Asks the client, and gives its answers by key: what a client answers to an elicitation, a
    /// sampling or a roots request. Only kinds that this very request declares can be asked for
    /// (MRT-04). An answer that has not the shape of its kind is asked for again.
    pub(in crate::peer::server) async fn ask(
        &mut self,
        questions: &[Question<'_>],
    ) -> Result<Map<String, Value>, Ended> {
        self.check_declared(questions)?;
        if self.caller.questions.is_some() {
            return self.ask_now(questions).await;
        }
        let state = self.state()?;
        let came = if state.is_some() { self.came()? } else { Map::new() };
        if state.is_none() && self.request.at(&["inputResponses"]).is_some() {
            return Err(self.refuse("inputResponses without the requestState that was given out"));
        }
        let state = state.unwrap_or_default();
        let mut answers = state["answers"].as_object().cloned().unwrap_or_default();
        // MRT-10: what was not asked is not looked at.
        let is_asked =
            |key: &str| state["asked"].as_array().is_some_and(|asked| asked.iter().any(|one| one == key));
        answers.extend(came.into_iter().filter(|(key, _)| is_asked(key)));
        let open = open(questions, &answers);
        if open.is_empty() {
            return Ok(answers);
        }
        answers.retain(|key, _| open.iter().all(|(open, ..)| open != key));
        let asked: Vec<&str> = open.iter().map(|(key, ..)| *key).collect();
        let until = self.core.wall_ms() + STATE_LIFE.0;
        let state = json!({ "of": self.intent(), "asked": asked, "answers": answers, "until": until });
        let state = self.core.seal.close(&state);
        Err(needs_input(&open, Some(&state)))
    }

    /// Asks in a single round that carries no state: whatever answers come are taken.
    pub(in crate::peer::server) async fn ask_lightly(
        &mut self,
        questions: &[Question<'_>],
    ) -> Result<Map<String, Value>, Ended> {
        self.check_declared(questions)?;
        if self.caller.questions.is_some() {
            return self.ask_now(questions).await;
        }
        let answers = self.came()?;
        let open = open(questions, &answers);
        if open.is_empty() { Ok(answers) } else { Err(needs_input(&open, None)) }
    }

    /// Refuses to ask what there is not in this client's era, or what it does not declare.
    fn check_declared(&self, questions: &[Question<'_>]) -> Result<(), Ended> {
        let era = self.caller.era;
        // The modern era has them inside of answers, but for the ping, which it has not at all.
        let is_unknown = |(_, method, _): &&Question<'_>| {
            let is_modern = era.is_modern() && *method != methods::PING;
            !is_modern && methods::Method::find(method, era).is_none()
        };
        if let Some((_, method, _)) = questions.iter().find(is_unknown) {
            return Err(Ended::Failed(format!("revision {} has no {method}", era.as_str())));
        }
        let missing =
            questions.iter().filter_map(|(_, method, params)| missing_for(&self.caller, method, params));
        let missing: Vec<Vec<&str>> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(Ended::Refused(missing_capabilities(&self.request.id, &missing)))
    }

    fn refuse(&self, text: &str) -> Ended {
        Ended::Refused(Refusal::params(&self.request.id, text))
    }

    /// The answers that came with this request.
    fn came(&self) -> Result<Map<String, Value>, Ended> {
        if self.request.at(&["inputResponses"]).is_none() {
            return Ok(Map::new());
        }
        let came = self.request.object_at(&["inputResponses"]);
        came.ok_or_else(|| self.refuse("inputResponses is an object of answers by key"))
    }

    /// The state that this server gave out for this request in the round before; `None`: there was
    /// no round before.
    fn state(&self) -> Result<Option<Value>, Ended> {
        if self.request.at(&["requestState"]).is_none() {
            return Ok(None);
        }
        let text = self.request.string_at(&["requestState"]);
        let state = text.and_then(|text| self.core.seal.open(&text)).filter(|state| self.is_of_this(state));
        let refuse = || self.refuse("requestState is not one that was given out for this request");
        state.map(Some).ok_or_else(refuse)
    }

    /// The state belongs to this request: same method, same parameters, same principal, in time.
    fn is_of_this(&self, state: &Value) -> bool {
        state["of"] == json!(self.intent())
            && state["until"].as_u64().is_some_and(|until| self.core.wall_ms() < until)
    }

    /// What makes a retry the same request as the first: SHA-256 in Base64.
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
        URL_SAFE_NO_PAD.encode(Sha256::digest(json!([method, principal, params]).to_string()))
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
                said = tokio::time::timeout(ASK_LIMIT.into(), told) => said,
            };
            let Ok(said) = said else {
                asker.give_up(&id);
                self.send(message::cancelled(&id), None).await?;
                return Err(Ended::Failed(format!("the client did not answer {method} in time")));
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

/// The questions that have no answer of their shape.
fn open<'a, 'q>(questions: &'a [Question<'q>], answers: &Map<String, Value>) -> Vec<&'a Question<'q>> {
    let is_open =
        |(key, method, _): &&Question<'_>| !answers.get(*key).is_some_and(|answer| is_answer(method, answer));
    questions.iter().filter(is_open).collect()
}

/// MRT-11: the answer has the shape of its kind.
fn is_answer(method: &str, answer: &Value) -> bool {
    match method {
        "elicitation/create" => {
            let action = answer["action"].as_str();
            let has_content = answer.get("content").is_none_or(Value::is_object);
            has_content && action.is_some_and(|action| ["accept", "decline", "cancel"].contains(&action))
        }
        "sampling/createMessage" => answer["role"].is_string() && answer.get("content").is_some(),
        _ => answer["roots"].is_array(),
    }
}

/// The result that asks (MRT-02, MRT-12).
fn needs_input(open: &[&Question<'_>], state: Option<&str>) -> Ended {
    let request = |(key, method, params): &&Question<'_>| {
        ((*key).to_owned(), json!({ "method": method, "params": params }))
    };
    let requests: Map<String, Value> = open.iter().map(request).collect();
    let mut result = super::object(json!({ "resultType": "input_required", "inputRequests": requests }));
    if let Some(state) = state {
        result.insert("requestState".to_owned(), json!(state));
    }
    Ended::NeedsInput(result)
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
        // Everybody answers it.
        methods::PING => (true, &[]),
        _ => (caller.can(&["roots"]), &["roots"]),
    };
    (!has).then(|| path.to_vec())
}

#[cfg(test)]
mod tests;
