//! Requests that come back with answers or a state (MRT-05..11).

use std::borrow::Cow;

use crate::event::Transport;
use crate::model::Round;
use crate::rules::Severity;
use crate::rules::book::{Book, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::wire::json::Value;

/// Questions and answers of one round that are looked through; of more, none are judged. ours.
const KEYS_LIMIT: usize = 64;

/// Rounds of one chain that are looked at. ours.
const CHAIN_LIMIT: usize = 32;

pub(super) fn rules(book: &mut Book) {
    let given = [On::Sight(SightKind::InputGiven)];
    book.rule("MRT-05", &given, same_id);
    book.rule("MRT-06", &given, other_state);
    book.rule("MRT-07", &given, unknown_state);
    book.rule("MRT-08", &given, state_of_another);
    book.rule("MRT-09", &given, unanswered);
    book.rule("MRT-10", &given, not_asked);
    book.rule("MRT-11", &given, odd_answer);
}

/// What the request brings. Tasks take answers too, by rules of their own.
fn given<'a>(case: &Case<'a>) -> Option<(Option<Value<'a>>, Option<Value<'a>>)> {
    let params = case.params().filter(|_| !case.method().starts_with("tasks/"))?;
    let state = params.get("requestState");
    Some((state, params.get("inputResponses").filter(can_be_looked_through)))
}

/// What a round asked for.
fn asked(round: &Round) -> Option<Value<'_>> {
    round.asked().filter(can_be_looked_through)
}

fn can_be_looked_through(object: &Value<'_>) -> bool {
    object.is_object() && object.len() <= KEYS_LIMIT
}

fn keys(value: Option<Value<'_>>) -> impl Iterator<Item = Cow<'_, str>> {
    value.into_iter().flat_map(Value::members).map(|(key, _)| key)
}

fn is_like(case: &Case<'_>, round: &Round) -> bool {
    let of = |call: &crate::model::Call| (call.scope, call.method, call.target);
    let before = case.model.call(round.call);
    before.map(of) == case.call().map(of)
}

/// Earlier rounds of the same target that asked for everything that is answered.
fn matching<'a>(case: &Case<'a>, responses: Option<Value<'_>>) -> Vec<&'a Round> {
    let Some(call) = case.call().filter(|_| responses.is_some_and(|responses| !responses.is_empty())) else {
        return Vec::new();
    };
    let has_asked = |round: &&Round| {
        let asked = asked(round);
        keys(responses).all(|key| asked.is_some_and(|asked| asked.get(&key).is_some()))
    };
    case.model.rounds_like(call).filter(has_asked).collect()
}

/// The round that the request answers, as far as can be told.
pub(in crate::rules) fn answered<'a>(case: &Case<'a>) -> Option<&'a Round> {
    if let Some(before) = case.call()?.round_of {
        return case.model.round(before);
    }
    let (state, responses) = given(case)?;
    match state {
        Some(state) => case.model.rounds_of_state(state).find(|round| is_like(case, round)),
        None => matching(case, responses).first().copied(),
    }
}

fn same_id(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some((state, responses)), Some(call)) = (given(case), case.call()) else { return };
    let rounds: Vec<&Round> = match state {
        Some(state) => case.model.rounds_of_state(state).filter(|round| is_like(case, round)).collect(),
        None => matching(case, responses),
    };
    let has_my_id = |round: &&Round| case.model.call(round.call).is_some_and(|before| before.id == call.id);
    if let Some(round) = rounds.first().filter(|_| rounds.iter().all(has_my_id)) {
        let sentence = format!("{} comes back under the id that has been answered", case.subject());
        out.draft(case).and_call(case.model, round.call).say(out, sentence);
    }
}

fn other_state(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((state, responses)) = given(case) else { return };
    let rounds = matching(case, responses);
    let Some(first) = rounds.first() else { return };
    let is_known = |state| case.model.rounds_of_state(state).any(|round| is_like(case, round));
    if rounds.iter().any(|round| case.model.is_state_of(round, state)) || state.is_some_and(is_known) {
        return;
    }
    let draft = out.draft(case).and_call(case.model, first.call);
    // Another client may hold a state of its own that was handed out elsewhere.
    let is_sure =
        case.transport() == Transport::Stdio || rounds.iter().any(|round| case.is_one_connection(round.call));
    let draft = match (case.is_full(), is_sure) {
        (false, _) => draft.at_most(Severity::Hint),
        (true, false) => draft.at_most(Severity::Warning),
        (true, true) => draft,
    };
    let what = match state {
        Some(_) => "with another state than it was given",
        None => "without the state that it was given",
    };
    draft.say(out, format!("{} comes back {what}", case.subject()));
}

fn unknown_state(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((Some(state), responses)) = given(case) else { return };
    // A state that should have been another one is MRT-06.
    if case.model.rounds_of_state(state).next().is_none() && matching(case, responses).is_empty() {
        let draft = out.draft(case);
        let draft = if case.is_full() { draft } else { draft.at_most(Severity::Hint) };
        draft.say(out, format!("{} brings a state that no server gave", case.subject()));
    }
}

fn state_of_another(case: &Case<'_>, out: &mut Out<'_>) {
    let Some((Some(state), _)) = given(case) else { return };
    let Some(first) = case.model.rounds_of_state(state).next() else { return };
    if !case.model.rounds_of_state(state).any(|round| is_like(case, round)) {
        let sentence = format!("{} brings the state of {}", case.subject(), case.name(first.call));
        out.draft(case).and_call(case.model, first.call).say(out, sentence);
    }
}

fn unanswered(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some((_, responses)), Some(round)) = (given(case), answered(case)) else { return };
    let is_answered = |key: &str| responses.is_some_and(|responses| responses.get(key).is_some());
    if let Some(key) = keys(asked(round)).find(|key| !is_answered(key)) {
        let key = short(&key);
        let sentence = format!("{} comes back without an answer to {key:?}", case.subject());
        out.draft(case).and_call(case.model, round.call).say(out, sentence);
    }
}

/// Whether the round, or one before it, asked for it; a round whose questions are no longer kept may
/// have.
fn was_asked(case: &Case<'_>, round: &Round, key: &str) -> bool {
    let before = |round: &&Round| case.model.round(case.model.call(round.call)?.round_of?);
    let mut chain = std::iter::successors(Some(round), before).take(CHAIN_LIMIT);
    chain.any(|round| asked(round).is_none_or(|asked| asked.get(key).is_some()))
}

fn not_asked(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some((_, responses)), Some(call)) = (given(case), case.call()) else { return };
    // Without a state, or with an unknown one, the latest round of the target is meant.
    let Some(round) = answered(case).or_else(|| case.model.rounds_like(call).next()) else {
        if case.is_full() && keys(responses).next().is_some() {
            out.say(case, format!("{} answers what nobody has asked", case.subject()));
        }
        return;
    };
    if let Some(key) = keys(responses).find(|key| !was_asked(case, round, key)) {
        let key = short(&key);
        let sentence = format!("{} answers {key:?}, which was not asked", case.subject());
        out.draft(case).and_call(case.model, round.call).say(out, sentence);
    }
}

fn odd_answer(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some((_, Some(responses))), Some(round)) = (given(case), answered(case)) else { return };
    let Some(asked) = asked(round) else { return };
    for (key, answer) in responses.members() {
        let method = asked.get(&key).and_then(|request| request.get("method")?.text());
        if let Some(lack) = method.and_then(|method| misshapen(&method, answer)) {
            let key = short(&key);
            let sentence = format!("the answer to {key:?} of {} {lack}", case.subject());
            out.draft(case).and_call(case.model, round.call).say(out, sentence);
            return;
        }
    }
}

/// What an answer lacks of the shape of its kind.
fn misshapen(method: &str, answer: Value<'_>) -> Option<&'static str> {
    let is_text = |name: &str| answer.get(name).is_some_and(|value| value.text().is_some());
    match method {
        "elicitation/create" => {
            let is_known =
                |action: Value<'_>| ["accept", "decline", "cancel"].iter().any(|known| action.is_text(known));
            (!answer.get("action").is_some_and(is_known))
                .then_some("has no action of accept, decline, cancel")
        }
        "sampling/createMessage" => {
            let has_content =
                answer.get("content").is_some_and(|value| value.is_object() || value.is_array());
            (!(is_text("role") && is_text("model") && has_content)).then_some("lacks role, content or model")
        }
        "roots/list" => {
            let has_uri = |root: Value<'_>| root.get("uri").is_some_and(|uri| uri.text().is_some());
            let is_list = |roots: Value<'_>| roots.is_array() && roots.items().all(has_uri);
            (!answer.get("roots").is_some_and(is_list)).then_some("has no list of roots with URIs")
        }
        _ => None,
    }
}
