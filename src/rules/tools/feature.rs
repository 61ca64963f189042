//! Features: used as defined, and declared when served (TOOL-17..19).

use crate::event::Transport;
use crate::rules::Severity;
use crate::rules::book::{Book, On};
use crate::rules::case::Case;
use crate::rules::findings::Out;
use crate::rules::schema::{Kept, Schema};
use crate::spec::codes::METHOD_NOT_FOUND;
use crate::spec::era::Era;
use crate::spec::lists::ListKind;

const SERVED: &[On] = &[
    On::ResultOf("tools/list"),
    On::ResultOf("tools/call"),
    On::ResultOf("resources/list"),
    On::ResultOf("resources/templates/list"),
    On::ResultOf("resources/read"),
    On::ResultOf("prompts/list"),
    On::ResultOf("prompts/get"),
    On::ResultOf("completion/complete"),
];

pub(super) fn rules(book: &mut Book) {
    let mut kept = Kept::default();
    let fits = move |case: &Case<'_>, out: &mut Out<'_>| arguments(&mut kept, case, out);
    book.rule("TOOL-17", &[On::RequestOf("tools/call")], fits);
    book.rule("TOOL-18", SERVED, declared);
    let lists = [On::ErrorOf("tools/list"), On::ErrorOf("resources/list"), On::ErrorOf("prompts/list")];
    book.rule("TOOL-19", &lists, served);
}

fn arguments(kept: &mut Kept<Option<Schema>>, case: &Case<'_>, out: &mut Out<'_>) {
    let Some(known) = case.seen.call.and_then(|call| case.model.definition(call)) else { return };
    let Some(schema) = known.value.get("inputSchema").filter(|schema| schema.is_object()) else { return };
    if !known.is_current {
        return;
    }
    let given = case.params().and_then(|params| params.get("arguments"));
    let (text, era) = (schema.raw(), case.era());
    let ready = kept.get(text, era, || Schema::compile(text, era));
    let given = given.map_or("{}", |given| given.raw());
    let Some(error) = ready.as_ref().and_then(|schema| schema.first_error(given)) else { return };
    let row = case.model.row(known.row).map(|row| row.n);
    let subject = case.subject();
    let draft = out.draft(case);
    let draft = match row {
        Some(n) => draft.and_event(n),
        None => draft,
    };
    draft.say(out, format!("the arguments of {subject} do not fit the tool's inputSchema: {error}"));
}

/// The capability that a method stands behind.
fn capability(method: &str) -> Option<&'static str> {
    let group = method.split('/').next()?;
    ["tools", "resources", "prompts"]
        .into_iter()
        .find(|known| *known == group)
        .or((group == "completion").then_some("completions"))
}

fn declared(case: &Case<'_>, out: &mut Out<'_>) {
    let method = case.method();
    let Some(name) = capability(method) else { return };
    // Completions are a capability of their own since 2025-03-26.
    if name == "completions" && case.era() == Some(Era::V2024_11_05) {
        return;
    }
    let Some(said) = case.server_capabilities().filter(|said| said.is_object()) else { return };
    if said.get(name).is_some() {
        return;
    }
    let level = if may_depend(case) { Severity::Hint } else { Severity::Warning };
    let subject = case.subject();
    out.draft(case).at_most(level).gather(out, (case.seen.scope, name), |times| {
        let often = if times == 1 { String::new() } else { format!(", and so were {} more", times - 1) };
        format!("{subject} was answered with a result, and the server does not declare {name}{often}")
    });
}

fn served(case: &Case<'_>, out: &mut Out<'_>) {
    let is_unknown = case.call().is_some_and(|call| call.error_code == Some(METHOD_NOT_FOUND));
    let Some(kind) = ListKind::of_method(case.method()).filter(|_| is_unknown) else { return };
    let name = kind.member();
    if case.server_capabilities().and_then(|said| said.get(name)).is_none() {
        return;
    }
    let level = if may_depend(case) { Severity::Warning } else { Severity::Error };
    let subject = case.subject();
    out.draft(case).at_most(level).gather(out, (case.seen.scope, name), |times| {
        let often = if times == 1 { String::new() } else { format!(", {times} times by now") };
        format!("the server declares {name}, and answers {subject} with {METHOD_NOT_FOUND}{often}")
    });
}

/// What the server said it can do may have been said to somebody else: outside a session, to another
/// authorisation.
fn may_depend(case: &Case<'_>) -> bool {
    let has_authorization =
        case.exchange().is_some_and(|exchange| exchange.headers().get("authorization").is_some());
    case.transport() == Transport::Http && case.is_modern() && has_authorization
}
