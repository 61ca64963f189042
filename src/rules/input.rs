//! What a server asks of a person or a model (ELI-01..08, SAM-01..05, ROO-01): as requests of its
//! own in the legacy eras, inside requests for input in the modern one. One test for both shapes.

mod elicitation;
mod form;
mod roots;
mod sampling;

use crate::event::Dir;
use crate::model::{Round, Sight};
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::rules::rounds;
use crate::wire::json::Value;
use crate::wire::jsonrpc::Kind;

pub(super) fn rules(book: &mut Book) {
    elicitation::rules(book);
    sampling::rules(book);
    roots::rules(book);
}

/// When something is asked for by a method: a server's request, a request for input, a task that
/// needs some.
const fn asked(method: &'static str) -> [On; 3] {
    [On::RequestOf(method), On::Sight(SightKind::InputRequired), On::ResultOf("tasks/get")]
}

/// When what was asked for by a method is answered: by the client's result, or with the next round.
const fn answered(method: &'static str) -> [On; 2] {
    [On::ResultOf(method), On::Sight(SightKind::InputGiven)]
}

/// One thing asked for.
struct Ask<'a> {
    /// Its key among several.
    key: String,
    params: Option<Value<'a>>,
}

/// Something that was asked for, and its answer.
struct Answer<'a> {
    key: String,
    /// What was asked: its params.
    asked: Option<Value<'a>>,
    value: Value<'a>,
}

/// Everything that the case asks for by this method.
fn asks<'a>(case: &Case<'a>, method: &str) -> Vec<Ask<'a>> {
    if case.row().is_some_and(|row| row.dir != Dir::S2c) {
        return Vec::new();
    }
    if case.message().is_some_and(|message| message.kind == Kind::Request) {
        return vec![Ask { key: String::new(), params: case.params() }];
    }
    let requests = case.result().and_then(|result| result.get("inputRequests"));
    let mine = requests.into_iter().flat_map(Value::members);
    mine.filter(|(_, request)| request.get("method").is_some_and(|name| name.is_text(method)))
        .map(|(key, request)| Ask { key: key.into_owned(), params: request.get("params") })
        .collect()
}

/// Everything that the case answers of what was asked by this method.
fn answers<'a>(case: &Case<'a>, method: &str) -> Vec<Answer<'a>> {
    if !matches!(case.what(), Sight::InputGiven) {
        let is_mine = case.call().is_some_and(|call| call.sender == Dir::S2c);
        let answer = case.result().filter(|_| is_mine);
        let asked = case.request_params();
        return answer
            .map(|answer| Answer { key: String::new(), asked, value: answer })
            .into_iter()
            .collect();
    }
    let responses = case.params().and_then(|params| params.get("inputResponses"));
    let (Some(responses), Some(asked)) = (responses, rounds::answered(case).and_then(Round::asked)) else {
        return Vec::new();
    };
    let of_key = |key: &str| {
        asked.get(key).filter(|asked| asked.get("method").is_some_and(|name| name.is_text(method)))
    };
    let mine = responses.members().filter_map(|(key, value)| {
        let asked = of_key(&key)?.get("params");
        Some(Answer { key: key.into_owned(), asked, value })
    });
    mine.collect()
}

/// Something asked for, in words: its key among several, or the request.
fn words(case: &Case<'_>, key: &str) -> String {
    if key.is_empty() { case.subject() } else { format!("input {:?} for {}", short(key), case.subject()) }
}

/// Says one finding for each thing asked; a task repeats what it asks in every poll.
fn say(case: &Case<'_>, out: &mut Out<'_>, key: &str, sentence: &str) {
    let target = case.call().and_then(|call| call.target);
    let is_poll = case.method() == "tasks/get";
    let call = case.seen.call.filter(|_| !is_poll);
    out.gather(case, (case.seen.scope, call, target.filter(|_| is_poll), key), |_| sentence.to_owned());
}
