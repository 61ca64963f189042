//! Answers that ask for input (MRT-01..04, MRT-12..16).

use std::collections::VecDeque;

use crate::model::CallIdx;
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, short};
use crate::rules::findings::Out;
use crate::time::Mono;
use crate::wire::json::Value;

/// Methods that may be answered by asking for input.
const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// What can be asked for.
const KINDS: [&str; 3] = [ELICITATION, SAMPLING, ROOTS];
const ELICITATION: &str = "elicitation/create";
const SAMPLING: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

/// How long a client may think before it comes back (MRT-16). In nanoseconds.
const COME_BACK_NS: u64 = 600_000_000_000;

/// Rounds whose continuation is awaited at once. ours.
const WAITING_LIMIT: usize = 1024;

pub(super) fn rules(book: &mut Book) {
    let asked = [On::Sight(SightKind::InputRequired)];
    book.rule("MRT-01", &asked, of_other_method);
    book.rule("MRT-02", &asked, asks_nothing);
    book.rule("MRT-03", &asked, odd_requests);
    book.rule("MRT-04", &asked, undeclared_kind);
    book.rule("MRT-12", &asked, framed_requests);
    book.rule("MRT-13", &asked, odd_state);
    book.rule("MRT-14", &asked, cached);
    book.rule("MRT-15", &asked, many_rounds);
    book.rule("MRT-16", &[On::Sight(SightKind::InputRequired), On::Clock], Dropped::default());
}

/// A member of the result that is there and not null.
fn member<'a>(case: &Case<'a>, name: &str) -> Option<Value<'a>> {
    case.result()?.get(name).filter(|value| !value.is_null())
}

fn of_other_method(case: &Case<'_>, out: &mut Out<'_>) {
    if !MAY_ASK.contains(&case.method()) {
        out.say(case, format!("{} was answered with a request for input", case.subject()));
    }
}

fn asks_nothing(case: &Case<'_>, out: &mut Out<'_>) {
    if case.result().is_some()
        && member(case, "inputRequests").is_none()
        && member(case, "requestState").is_none()
    {
        out.say(case, format!("{} needs input, and does not say which", case.subject()));
    }
}

fn odd_requests(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(requests) = member(case, "inputRequests") else { return };
    if !requests.is_object() {
        out.say(case, format!("inputRequests for {} is no object", case.subject()));
        return;
    }
    for (key, request) in requests.members() {
        let method = request.get("method").and_then(Value::text).unwrap_or_default();
        if !KINDS.contains(&&*method) {
            let (key, method) = (short(&key), short(&method));
            out.say(case, format!("input {key:?} for {} asks for {method:?}", case.subject()));
            return;
        }
    }
}

fn undeclared_kind(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(requests), Some(declared)) = (member(case, "inputRequests"), case.client_capabilities()) else {
        return;
    };
    let lacking = requests.members().find_map(|(key, request)| Some((key, undeclared(declared, request)?)));
    if let Some((key, capability)) = lacking {
        let key = short(&key);
        out.say(
            case,
            format!("input {key:?} for {} needs {capability}, which it did not declare", case.subject()),
        );
    }
}

/// The capability that a request for input needs and the client has not declared.
fn undeclared(declared: Value<'_>, request: Value<'_>) -> Option<&'static str> {
    let method = request.get("method")?.text()?;
    let param = |name: &str| request.at(&["params", name]).filter(|value| !value.is_null());
    match &*method {
        ELICITATION => {
            let Some(modes) = declared.get("elicitation") else { return Some("elicitation") };
            let (form, url) = (modes.get("form").is_some(), modes.get("url").is_some());
            let is_url = param("mode").is_some_and(|mode| mode.is_text("url"));
            // An empty object means forms only.
            let is_offered = if is_url { url } else { form || !url };
            let mode = if is_url { "elicitation.url" } else { "elicitation.form" };
            (!is_offered).then_some(mode)
        }
        SAMPLING => {
            let Some(sampling) = declared.get("sampling") else { return Some("sampling") };
            let has_tools = param("tools").is_some() || param("toolChoice").is_some();
            (has_tools && sampling.get("tools").is_none()).then_some("sampling.tools")
        }
        ROOTS => declared.get("roots").is_none().then_some("roots"),
        _ => None,
    }
}

fn framed_requests(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(requests) = member(case, "inputRequests") else { return };
    let is_framed = |request: &Value<'_>| request.get("jsonrpc").is_some() || request.get("id").is_some();
    if let Some((key, _)) = requests.members().find(|(_, request)| is_framed(request)) {
        let key = short(&key);
        out.say(case, format!("input {key:?} for {} is framed as a message", case.subject()));
    }
}

fn odd_state(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(state) = case.result().and_then(|result| result.get("requestState")) else { return };
    if state.text().is_none() {
        let state = short(state.raw());
        out.say(case, format!("the state given with {} is no string: {state}", case.subject()));
    }
}

fn cached(case: &Case<'_>, out: &mut Out<'_>) {
    let hint = ["ttlMs", "cacheScope"].into_iter().find(|name| member(case, name).is_some());
    if let Some(name) = hint {
        out.say(case, format!("{} needs input, and its answer carries {name}", case.subject()));
    }
}

/// Told once for each chain.
fn many_rounds(case: &Case<'_>, out: &mut Out<'_>) {
    let limit = case.policy.limits.input_rounds;
    let nth = case.seen.call.and_then(|idx| case.model.round(idx)).map_or(0, |round| round.nth);
    if nth == limit.saturating_add(1) {
        out.say(case, format!("{} asks for input for the {nth}th time in a row", case.subject()));
    }
}

/// Rounds that nobody has gone on with, oldest first.
#[derive(Debug, Default)]
struct Dropped {
    waiting: VecDeque<(Mono, CallIdx)>,
}

impl Look for Dropped {
    fn look(&mut self, case: &Case<'_>, _out: &mut Out<'_>) {
        if let Some(idx) = case.seen.call.filter(|_| self.waiting.len() < WAITING_LIMIT) {
            self.waiting.push_back((case.seen.at, idx));
        }
    }

    fn wait(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let is_due = |(asked, _): &(Mono, CallIdx)| case.seen.at.ns_since(*asked) > COME_BACK_NS;
        while let Some((asked, idx)) = self.waiting.front().copied().filter(is_due) {
            self.waiting.pop_front();
            if case.model.round(idx).is_some_and(|round| round.next.is_none()) {
                let since = Case::ms(case.seen.at.ns_since(asked));
                let sentence =
                    format!("{} was asked for input {since} ago and has not come back", case.name(idx));
                out.about(case.model, idx).blame(Blame::Client).say(out, sentence);
            }
        }
    }
}
