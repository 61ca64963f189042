//! Calls whose server asks back: the call again, under a new id, with the answers and the state of
//! the result that asked (spec 2026-07-28 basic/patterns/mrtr).

use serde_json::value::RawValue;

use super::answers::Answers;
use super::{CallOptions, Client, Heard, Outcome, Params, PeerError, Report, raw};
use crate::machine::backoff;
use crate::wire::jsonrpc;

/// How often one call may come back. ours: the same number from which on it is worth a finding
/// (MRT-15).
pub const ROUND_LIMIT: usize = 8;

impl Client {
    /// Sends a request and answers what its results ask, as far as there are answers. Gives how each
    /// round went; the last one is the end.
    ///
    /// # Errors
    /// When a request cannot be sent.
    pub async fn ask(
        &self,
        method: &str,
        params: &Params,
        options: &CallOptions,
        answers: &Answers,
        mut on_heard: impl FnMut(Heard<'_>) + Send,
    ) -> Result<Vec<Report>, PeerError> {
        let mut reports: Vec<Report> = Vec::new();
        let mut coming = params.clone();
        loop {
            let report = self.converse(method, coming, options, &mut on_heard).await?;
            let next = match &report.outcome {
                Outcome::InputRequired(result) if reports.len() < ROUND_LIMIT => {
                    again(params, result, answers)
                }
                _ => None,
            };
            let is_state_only = next.as_ref().is_some_and(|next| !next.contains_key("inputResponses"));
            reports.push(report);
            match next {
                None => return Ok(reports),
                Some(next) => coming = next,
            }
            if is_state_only {
                // The server only wants to be asked later.
                let attempt = u32::try_from(reports.len()).unwrap_or(u32::MAX).saturating_sub(1);
                tokio::time::sleep(backoff::delay("rounds", attempt).into()).await;
            }
        }
    }
}

/// The parameters of the next round; `None`: something is asked that there is no answer for. State
/// and answers serve this round alone.
fn again(params: &Params, result: &RawValue, answers: &Answers) -> Option<Params> {
    let state = jsonrpc::at(result, &["requestState"]).filter(|state| state.get() != "null");
    let asked = jsonrpc::at(result, &["inputRequests"]).map(|asked| respond(asked, answers));
    let mut next = params.clone();
    match (asked, state) {
        (None, None) | (Some(None), _) => return None,
        (Some(Some(responses)), _) if responses.is_empty() && state.is_none() => return None,
        (Some(Some(responses)), _) if !responses.is_empty() => {
            next.insert("inputResponses".to_owned(), raw(&responses));
        }
        _ => {}
    }
    if let Some(state) = state {
        next.insert("requestState".to_owned(), state.to_owned());
    }
    Some(next)
}

/// The answers to an object of questions; `None`: one of them has none.
pub(super) fn respond(asked: &RawValue, answers: &Answers) -> Option<Params> {
    let respond = |(key, question): (std::borrow::Cow<'_, str>, &RawValue)| {
        let method = jsonrpc::at(question, &["method"]).and_then(jsonrpc::string)?;
        let found = answers.find(Some(&key), &method, jsonrpc::at(question, &["params"]))?;
        Some((key.into_owned(), found))
    };
    jsonrpc::members(asked)?.into_iter().map(respond).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::peer::client::scripted;

    /// Asks `who`, then only to be asked later, then is content.
    fn asking(_: &str, body: &Value) -> scripted::Answer {
        let params = &body["params"];
        let question = json!({ "method": "elicitation/create", "params": { "message": "?" } });
        let result = if params["requestState"] == "second" {
            json!({ "resultType": "complete", "content": [params["inputResponses"]] })
        } else if params["requestState"] == "first" {
            assert_eq!(params["inputResponses"]["who"]["content"]["team"], "blue");
            json!({ "resultType": "input_required", "requestState": "second" })
        } else {
            json!({ "resultType": "input_required", "requestState": "first", "inputRequests": { "who": question } })
        };
        scripted::json("200 OK", &json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }))
    }

    #[tokio::test]
    async fn a_question_is_answered_by_the_same_call_under_a_new_id() {
        let (url, mut requests) = scripted::serve(asking).await;
        let client = Client::http(&url).unwrap();
        let answer = json!({ "action": "accept", "content": { "team": "blue" } });
        let by_name = [("who".to_owned(), raw(&answer))].into();
        let answers = Answers { by_name, fills_forms: false };
        let params =
            Params::from([("name".to_owned(), raw("book")), ("arguments".to_owned(), raw(&json!({})))]);
        let options = CallOptions::default();
        let reports = client.ask("tools/call", &params, &options, &answers, |_| {}).await.unwrap();
        assert_eq!(reports.len(), 3);
        let Outcome::Complete(result) = &reports[2].outcome else { panic!("{reports:?}") };
        assert!(result.get().contains("[null]"), "an answer serves one round: {result}");
        for id in 1..=3 {
            let (_, body) = requests.recv().await.unwrap();
            assert_eq!((&body["id"], &body["params"]["name"]), (&json!(id), &json!("book")));
        }
        let none = Answers::default();
        let reports = client.ask("tools/call", &params, &options, &none, |_| {}).await.unwrap();
        assert!(matches!(reports.as_slice(), [Report { outcome: Outcome::InputRequired(_), .. }]));
    }

    #[test]
    fn the_next_round_repeats_the_call_and_what_the_result_says() {
        let params = Params::from([("name".to_owned(), raw("t"))]);
        let answers = Answers { by_name: [("k".to_owned(), raw(&json!(1)))].into(), fills_forms: false };
        let question = json!({ "method": "roots/list" });
        let cases = [
            (json!({}), None),
            (json!({ "inputRequests": {} }), None),
            (json!({ "inputRequests": { "other": question } }), None),
            (json!({ "inputRequests": { "k": {} } }), None),
            (json!({ "requestState": "s" }), Some(json!({ "name": "t", "requestState": "s" }))),
            (
                json!({ "inputRequests": { "k": question } }),
                Some(json!({ "name": "t", "inputResponses": { "k": 1 } })),
            ),
            (
                json!({ "inputRequests": { "k": question }, "requestState": "s" }),
                Some(json!({ "name": "t", "inputResponses": { "k": 1 }, "requestState": "s" })),
            ),
        ];
        for (result, expected) in cases {
            let next = again(&params, &raw(&result), &answers);
            let next: Option<Value> = next.map(|next| serde_json::from_str(raw(&next).get()).unwrap());
            assert_eq!(next, expected, "{result}");
        }
    }
}
