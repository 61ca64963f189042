//! Progress: the right token, of the right type, on its own stream, and never after the answer
//! (PRG-01, PRG-02, PRG-04, PRG-06..10, PRG-12); what its values say is in `values`.

mod values;

use std::collections::HashMap;

use crate::event::{Dir, Transport};
use crate::model::{Call, CallIdx, ScopeIdx, Sight};
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::rules::rpc::is_rounded_token;
use crate::spec::era::Era;
use crate::spec::meta::PROGRESS_TOKEN;
use crate::spec::methods::PROGRESS;
use crate::wire::json::Kind;

pub(super) fn rules(book: &mut Book) {
    let progress = On::NotificationOf(PROGRESS);
    let unknown = On::Sight(SightKind::ProgressUnknown);
    book.rule("PRG-01", &[unknown], unknown_token);
    book.rule("PRG-02", &[On::Sight(SightKind::ProgressAfterAnswer)], AfterAnswer::default());
    book.rule("PRG-04", &[On::Sight(SightKind::ProgressElsewhere)], elsewhere);
    book.rule("PRG-06", &[On::Sight(SightKind::TokenInFlight)], shared_on_pipe);
    book.rule("PRG-07", &[On::Sight(SightKind::TokenInFlight)], shared_over_http);
    book.rule("PRG-08", &[On::Request, unknown], token_type);
    book.rule("PRG-09", &[progress], malformed);
    book.rule("PRG-10", &[On::Sight(SightKind::ProgressOtherType)], other_type);
    book.rule("PRG-12", &[progress], from_client);
    values::rules(book);
}

fn sender(case: &Case<'_>) -> Option<Dir> {
    case.row().map(|row| row.dir)
}

fn unknown_token(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::ProgressUnknown { token: Some(token) } = case.what() else { return };
    let asker = if sender(case) == Some(Dir::C2s) { Dir::S2c } else { Dir::C2s };
    // PRG-12 and RPC-29 say more.
    if (case.is_modern() && asker == Dir::S2c) || is_rounded_token(case, token, asker) {
        return;
    }
    let (model, scope) = (case.model, case.seen.scope);
    let of_id = model.find_call(scope, asker, token);
    let on_stream = || case.exchange().and_then(|exchange| exchange.calls().first().copied());
    let likely = of_id.or_else(on_stream).or_else(|| model.lone_call(scope, asker));
    let about = match likely {
        Some(idx) if of_id.is_some() => format!("; it is the id of {}", case.name(idx)),
        Some(idx) => format!(", while {} was open", case.name(idx)),
        None => String::new(),
    };
    let name = short(&token.to_string());
    let mut draft = out.draft(case).at_most(if case.is_full() { Severity::Error } else { Severity::Hint });
    if let Some(idx) = likely {
        draft = draft.and_call(model, idx);
    }
    draft.gather(out, (scope, token), |times| {
        format!("{times} progress under the token {name}, which no request offered{about}")
    });
}

/// Progress after the answer. A task of the 2025-11-25 core goes on after its handle, until its end was
/// told.
#[derive(Debug, Default)]
struct AfterAnswer {
    /// Position of the task that a call has made.
    tasks: HashMap<CallIdx, Option<usize>>,
}

impl Look for AfterAnswer {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(idx) = case.seen.call else { return };
        let is_task = case.call().is_some_and(|call| call.is_task);
        if is_task && case.era() == Some(Era::V2025_11_25) && !self.has_ended(case, idx) {
            return;
        }
        let subject = case.subject();
        let end = if is_task { "the end of its task, or its answer," } else { "its answer" };
        out.gather(case, idx, |times| format!("{times} progress for {subject} after {end} had been sent"));
    }
}

impl AfterAnswer {
    /// The end of a task was told on the same pipe; streams have no common order.
    fn has_ended(&mut self, case: &Case<'_>, idx: CallIdx) -> bool {
        let tasks = case.model.tasks();
        let find = || tasks.iter().position(|task| task.made_by == Some(idx));
        let at = *self.tasks.entry(idx).or_insert_with(find);
        let has_ended = at.and_then(|at| tasks.get(at)).is_some_and(|task| task.ended().is_some());
        has_ended && case.transport() == Transport::Stdio
    }
}

fn elsewhere(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::ProgressElsewhere { stream_of } = case.what() else { return };
    let mut draft = out.draft(case);
    let mut whose = "another stream".to_owned();
    if let Some(other) = *stream_of {
        draft = draft.and_call(case.model, other);
        whose = format!("the stream of {}", case.name(other));
    }
    let subject = case.subject();
    draft.gather(out, case.seen.call, |times| format!("{times} progress of {subject} came on {whose}"));
}

fn shared_on_pipe(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::TokenInFlight { other } = case.what() else { return };
    let Some(token) = case.call().and_then(|call| call.token.as_ref()) else { return };
    let sentence = format!(
        "{} asks for progress under {}, the token of {}, which is still open",
        case.subject(),
        short(&token.to_string()),
        case.name(*other)
    );
    out.draft(case).and_call(case.model, *other).say(out, sentence);
}

/// Other clients behind the same port may use the same tokens.
fn shared_over_http(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::TokenInFlight { other } = case.what() else { return };
    let (Some(mine), Some(theirs)) = (case.call(), case.model.call(*other)) else { return };
    let authorization = |call: &Call| case.model.authorization_of(call.stream?);
    let is_one_client = case.seen.scope != ScopeIdx(0)
        || (mine.conn == theirs.conn && authorization(mine) == authorization(theirs));
    if is_one_client {
        shared_on_pipe(case, out);
    }
}

fn token_type(case: &Case<'_>, out: &mut Out<'_>) {
    let token = match case.what() {
        Sight::ProgressUnknown { token: None } => case.params().and_then(|params| params.get(PROGRESS_TOKEN)),
        // Looked up only where no token was understood.
        Sight::Message if case.call().is_some_and(|call| call.token.is_none()) => case.meta(PROGRESS_TOKEN),
        _ => None,
    };
    let Some(token) = token.filter(|token| token.id().is_none()) else { return };
    let raw = short(token.raw());
    let subject = (case.seen.call, case.seen.scope, sender(case));
    out.gather(case, subject, |times| {
        format!("{} with the progress token {raw}, neither a string nor an integer", count(times, "message"))
    });
}

fn malformed(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(body) = case.body() else { return };
    let (mut token, mut progress, mut wrong) = (false, false, None);
    for (name, value) in body.get("params").into_iter().flat_map(crate::wire::json::Value::members) {
        let fits = match &*name {
            "progressToken" => {
                token = true;
                continue;
            }
            "progress" => {
                progress = true;
                value.kind() == Kind::Number
            }
            "total" => value.kind() == Kind::Number,
            // ours: the first revision does not know it, and says nothing of its type.
            "message" => value.kind() == Kind::String || case.era() == Some(Era::V2024_11_05),
            _ => continue,
        };
        if !fits {
            wrong = Some(format!("{name} {}", short(value.raw())));
        }
    }
    let what = match (wrong, token, progress) {
        (Some(wrong), ..) => format!("with the {wrong}"),
        (None, false, _) => "without a progressToken".to_owned(),
        (None, _, false) => "without progress".to_owned(),
        (None, true, true) => return,
    };
    out.gather(case, (case.seen.call, case.seen.scope), |times| {
        format!("{} {what}", count(times, "progress notification"))
    });
}

fn other_type(case: &Case<'_>, out: &mut Out<'_>) {
    let Sight::ProgressOtherType { token } = case.what() else { return };
    let Some(asked) = case.call().and_then(|call| call.token.as_ref()) else { return };
    let (subject, asked, token) = (case.subject(), short(&asked.to_string()), short(&token.to_string()));
    out.gather(case, case.seen.call, |times| {
        format!("{times} progress of {subject} under the token {token}; it asked for {asked}")
    });
}

/// A legacy session in the same process may send progress for the server's requests.
fn from_client(case: &Case<'_>, out: &mut Out<'_>) {
    if sender(case) == Some(Dir::C2s) && !case.is_dual() {
        out.gather(case, case.seen.scope, |times| {
            format!("{} sent by the client", count(times, "progress notification"))
        });
    }
}
