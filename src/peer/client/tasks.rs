//! A task that a call was answered with, followed to its end.
//!
//! The acknowledgement of `tasks/cancel` is no end: the work may still end in any way, so it is
//! watched on. A broken connection means nothing to a task either.

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::answers::Answers;
use super::{CallOptions, Client, Outcome, Params, PeerError, Reason, raw, rounds};
use crate::machine::backoff;
use crate::machine::task::TaskState;
use crate::peer::faults::Fault;
use crate::time::{Ms, TimerClock};
use crate::wire::jsonrpc;

/// How often is asked where the server says nothing about it.
const POLL: Ms = Ms(1000);
/// The shortest and the longest pause between two questions, whatever the server says. ours.
const POLL_BOUNDS: (Ms, Ms) = (Ms(20), Ms(60_000));
/// Questions in a row that may be lost before the watch ends.
const LOST_LIMIT: u32 = 5;

/// What was seen of a task.
#[derive(Debug, Clone)]
pub struct Watched {
    /// Its id.
    pub id: String,
    /// Where it stood last.
    pub state: TaskState,
    /// How that ends the call: the result or the error of the task. A task that was still running
    /// when its watch ended is given up, one that ended cancelled is [`Outcome::TaskCancelled`].
    pub outcome: Outcome,
    /// Times it was asked after.
    pub polls: u64,
    /// `tasks/cancel` was sent.
    pub was_cancel_sent: bool,
}

/// One answer about a task.
#[derive(Debug)]
struct Snapshot {
    id: String,
    state: TaskState,
    poll: Ms,
    raw: Box<RawValue>,
}

impl Snapshot {
    fn read(raw: &RawValue) -> Result<Snapshot, Outcome> {
        let text = |name: &str| jsonrpc::at(raw, &[name]).and_then(jsonrpc::string);
        let invalid = |why: &str| Outcome::Invalid(why.to_owned());
        let id = text("taskId").ok_or_else(|| invalid("the task has no taskId"))?.into_owned();
        let status = text("status").ok_or_else(|| invalid("the task has no status"))?;
        let all = [
            TaskState::Working,
            TaskState::InputRequired,
            TaskState::Completed,
            TaskState::Failed,
            TaskState::Cancelled,
        ];
        let state = all.into_iter().find(|state| state.as_str() == status);
        let state = state.ok_or_else(|| invalid("the status of the task is none"))?;
        let poll = jsonrpc::at(raw, &["pollIntervalMs"]).and_then(|raw| raw.get().parse().ok());
        let poll = poll.map_or(POLL, Ms).clamp(POLL_BOUNDS.0, POLL_BOUNDS.1);
        Ok(Snapshot { id, state, poll, raw: raw.to_owned() })
    }

    fn outcome(&self) -> Outcome {
        let member = |name: &str| jsonrpc::at(&self.raw, &[name]);
        match self.state {
            TaskState::Completed => member("result").map_or_else(
                || Outcome::Invalid("the completed task has no result".to_owned()),
                |result| Outcome::Complete(result.to_owned()),
            ),
            TaskState::Failed => {
                let error = member("error");
                let part = |name: &str| error.and_then(|error| jsonrpc::at(error, &[name]));
                let code = part("code").and_then(|code| code.get().parse().ok());
                let message = part("message").and_then(jsonrpc::string);
                match (code, message) {
                    (Some(code), Some(message)) => Outcome::Error {
                        code,
                        message: message.into_owned(),
                        data: part("data").map(ToOwned::to_owned),
                    },
                    _ => Outcome::Invalid("the failed task has no error".to_owned()),
                }
            }
            TaskState::Cancelled => Outcome::TaskCancelled,
            TaskState::Working | TaskState::InputRequired => Outcome::InputRequired(self.raw.clone()),
        }
    }
}

/// Follows a task from its handle to its end. When `cancel` fires, `tasks/cancel` is sent once, and the
/// task is watched on; after `watch` it is given up. `on_state` is told each change of its state.
///
/// # Errors
/// When nothing can be sent any more.
pub async fn follow(
    client: &Client,
    handle: &RawValue,
    options: &CallOptions,
    answers: &Answers,
    cancel: &CancellationToken,
    watch: Ms,
    on_state: impl FnMut(TaskState) + Send,
) -> Result<Watched, PeerError> {
    let snapshot = match Snapshot::read(handle) {
        Ok(snapshot) => snapshot,
        Err(outcome) => {
            let id = String::new();
            return Ok(Watched { id, state: TaskState::Working, outcome, polls: 0, was_cancel_sent: false });
        }
    };
    let watching = Watching {
        client,
        options: CallOptions {
            cancel: CancellationToken::new(),
            cancel_after: None,
            drop_after: None,
            mirrored: Vec::new(),
            wants_progress: false,
            ..options.clone()
        },
        answers,
        answered: BTreeSet::new(),
        polls: 0,
        was_cancel_sent: false,
        on_state,
    };
    watching.run(snapshot, cancel, watch).await
}

struct Watching<'a, F> {
    client: &'a Client,
    options: CallOptions,
    answers: &'a Answers,
    /// Keys are good for the whole life of the task, and come again until they are answered.
    answered: BTreeSet<String>,
    polls: u64,
    was_cancel_sent: bool,
    on_state: F,
}

impl<F: FnMut(TaskState) + Send> Watching<'_, F> {
    async fn run(
        mut self,
        mut now: Snapshot,
        cancel: &CancellationToken,
        watch: Ms,
    ) -> Result<Watched, PeerError> {
        let clock = TimerClock::start();
        (self.on_state)(now.state);
        let mut lost = 0;
        if self.client.wrongs().is_on(Fault::AbandonsTask) {
            let outcome = now.outcome();
            return Ok(self.ended(now, outcome));
        }
        loop {
            if now.state.is_terminal() {
                let outcome = now.outcome();
                return Ok(self.ended(now, outcome));
            }
            if now.state == TaskState::InputRequired && !self.give(&now).await? {
                let outcome = now.outcome();
                return Ok(self.ended(now, outcome));
            }
            if clock.now() >= watch {
                return Ok(self.ended(now, Outcome::GivenUp(Reason::Maximum)));
            }
            let pause = Ms(now.poll.0.min(watch.0.saturating_sub(clock.now().0)));
            tokio::select! {
                () = tokio::time::sleep(pause.into()) => {}
                () = cancel.cancelled(), if !self.was_cancel_sent => {
                    self.was_cancel_sent = true;
                    self.send("tasks/cancel", &now.id, None).await?;
                }
            }
            match self.send("tasks/get", &now.id, None).await? {
                Outcome::Complete(result) => {
                    self.polls += 1;
                    lost = 0;
                    let next = match Snapshot::read(&result) {
                        Ok(next) => next,
                        Err(outcome) => return Ok(self.ended(now, outcome)),
                    };
                    if next.state != now.state {
                        (self.on_state)(next.state);
                    }
                    now = next;
                }
                // The answer was lost, not the task.
                Outcome::Lost(_) | Outcome::GivenUp(_) if lost < LOST_LIMIT => {
                    tokio::time::sleep(backoff::delay(&now.id, lost).into()).await;
                    lost += 1;
                }
                outcome => return Ok(self.ended(now, outcome)),
            }
        }
    }

    /// Answers what is newly asked; false: something is asked that has no answer.
    async fn give(&mut self, now: &Snapshot) -> Result<bool, PeerError> {
        let Some(asked) = jsonrpc::at(&now.raw, &["inputRequests"]) else { return Ok(true) };
        let Some(mut responses) = rounds::respond(asked, self.answers) else { return Ok(false) };
        responses.retain(|key, _| self.answered.insert(key.clone()));
        if !responses.is_empty() {
            self.send("tasks/update", &now.id, Some(responses)).await?;
        }
        Ok(true)
    }

    async fn send(&self, method: &str, id: &str, responses: Option<Params>) -> Result<Outcome, PeerError> {
        let mut params = Params::from([("taskId".to_owned(), raw(id))]);
        params.extend(responses.map(|responses| ("inputResponses".to_owned(), raw(&responses))));
        Ok(self.client.request(method, params, &self.options, |_| {}).await?.outcome)
    }

    fn ended(self, last: Snapshot, outcome: Outcome) -> Watched {
        let Watching { polls, was_cancel_sent, .. } = self;
        Watched { id: last.id, state: last.state, outcome, polls, was_cancel_sent }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;
    use crate::peer::client::scripted;

    /// A task whose answers to `tasks/get` are these states in order; the last one stays.
    fn script(states: &'static [&'static str]) -> impl FnMut(&Value) -> Vec<Value> + Send + 'static {
        let mut polls = 0;
        move |body| {
            let mut task = json!({ "resultType": "complete" });
            if body["method"] == "tasks/get" {
                let state = states[polls.min(states.len() - 1)];
                polls += 1;
                task = handle(state);
            }
            vec![json!({ "jsonrpc": "2.0", "id": body["id"], "result": task })]
        }
    }

    fn handle(state: &str) -> Value {
        let question = json!({ "method": "elicitation/create", "params": { "message": "?" } });
        json!({
            "resultType": "complete", "taskId": "t-1", "status": state, "pollIntervalMs": 100,
            "inputRequests": { "who": question }, "result": { "content": [] },
            "error": { "code": -32603, "message": "broken" },
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_is_followed_to_its_end_whatever_a_cancel_is_answered_with() {
        const GET: &str = "tasks/get";
        // States that the server tells; whether the user cancels; the end, and what was sent.
        let cases: [(&'static [&'static str], bool, &str, &[&str]); 7] = [
            (&["working", "completed"], false, "Complete", &[GET, GET]),
            (&["failed"], false, "Error { code: -32603", &[GET]),
            (&["cancelled"], false, "TaskCancelled", &[GET]),
            (
                &["input_required", "input_required", "completed"],
                false,
                "Complete",
                &[GET, "tasks/update", GET, GET],
            ),
            (&["working", "cancelled"], true, "TaskCancelled", &["tasks/cancel", GET, GET]),
            (&["working", "completed"], true, "Complete", &["tasks/cancel", GET, GET]),
            (&["paused"], false, "Invalid", &[GET]),
        ];
        for (states, is_cancelled, end, sent) in cases {
            let (client, heard) = scripted::pipes(script(states));
            let by_name = [("who".to_owned(), raw(&json!({ "action": "decline" })))].into();
            let answers = Answers { by_name, fills_forms: false };
            let (options, cancel) = (CallOptions::default(), CancellationToken::new());
            if is_cancelled {
                cancel.cancel();
            }
            let told = Arc::new(Mutex::new(Vec::new()));
            let tell = told.clone();
            let watched = follow(
                &client,
                &raw(&handle("working")),
                &options,
                &answers,
                &cancel,
                Ms(10_000),
                move |state| tell.lock().unwrap().push(state),
            )
            .await
            .unwrap();
            assert!(format!("{:?}", watched.outcome).starts_with(end), "{states:?}: {watched:?}");
            assert_eq!(scripted::methods(&heard), sent, "{states:?}");
            assert_eq!((watched.was_cancel_sent, watched.id.as_str()), (is_cancelled, "t-1"));
            assert_eq!(told.lock().unwrap().first(), Some(&TaskState::Working));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_is_asked_after_no_faster_than_it_wants_and_not_for_ever() {
        let (client, heard) = scripted::pipes(script(&["working"]));
        let (options, cancel, none) = (CallOptions::default(), CancellationToken::new(), Answers::default());
        let clock = TimerClock::start();
        let start = raw(&handle("working"));
        let watched = follow(&client, &start, &options, &none, &cancel, Ms(1000), |_| {});
        let watched = watched.await.unwrap();
        assert!(matches!(watched.outcome, Outcome::GivenUp(Reason::Maximum)), "{watched:?}");
        assert_eq!((watched.polls, clock.now(), scripted::methods(&heard).len()), (10, Ms(1000), 10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_without_an_answer_ends_the_watch_and_leaves_the_task() {
        let (client, heard) = scripted::pipes(script(&["input_required"]));
        let (options, cancel, none) = (CallOptions::default(), CancellationToken::new(), Answers::default());
        let start = raw(&handle("working"));
        let watched = follow(&client, &start, &options, &none, &cancel, Ms(1000), |_| {});
        assert!(matches!(watched.await.unwrap().outcome, Outcome::InputRequired(_)));
        assert_eq!(scripted::methods(&heard), ["tasks/get"]);
    }
}
