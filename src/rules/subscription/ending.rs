//! How subscriptions end, and what the client does then (SUB-13..15, SUB-19).

use super::words;
use crate::model::{CallIdx, Name, Sight};
use crate::rules::Blame;
use crate::rules::book::{Book, Look, On, SightKind};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::meta::SUBSCRIPTION_ID;
use crate::spec::methods::LISTEN;
use crate::time::Mono;

/// How long a client may take to come back after a loss (SUB-19). In nanoseconds.
const RETURN_NS: u64 = 30_000_000_000;

/// Losses that are watched at once. ours.
const LOST_LIMIT: usize = 64;

pub(super) fn rules(book: &mut Book) {
    book.rule("SUB-13", &[On::ResultOf(LISTEN)], odd_result);
    book.rule("SUB-14", &[On::Sight(SightKind::StreamEnded)], stream_ended);
    book.rule("SUB-15", &[On::Sight(SightKind::ProcessEnded)], process_ended);
    let when = [On::Sight(SightKind::StreamEnded), On::Sight(SightKind::ProcessEnded), On::Request];
    book.rule("SUB-19", &when, Lost::default());
}

fn odd_result(case: &Case<'_>, out: &mut Out<'_>) {
    let (Some(result), Some(call)) = (case.result(), case.call()) else { return };
    let tag = result.at(&["_meta", SUBSCRIPTION_ID]);
    let has_type = result.get("resultType").is_some_and(|kind| kind.is_text("complete"));
    let lack = match (has_type, tag) {
        (false, _) => "does not say that it is complete".to_owned(),
        (true, None) => "lacks the id of its subscription".to_owned(),
        (true, Some(tag)) if tag.id().as_ref() != Some(&call.id) => {
            format!("is tagged {}", short(tag.raw()))
        }
        _ => return,
    };
    out.say(case, format!("the closing result of {} {lack}", case.subject()));
}

fn is_listen(case: &Case<'_>, idx: CallIdx) -> bool {
    case.model.call(idx).is_some_and(|call| call.method == Name::LISTEN)
}

/// A network that drops the stream looks the same, so nobody is blamed.
fn stream_ended(case: &Case<'_>, out: &mut Out<'_>) {
    if case.seen.call.is_some_and(|idx| is_listen(case, idx)) {
        let sentence = format!("the stream of {} ended without a closing result", case.subject());
        out.draft(case).blame(Blame::Unknown).say(out, sentence);
    }
}

/// Either goodbye ends the call, so what is open here has had none.
fn process_ended(case: &Case<'_>, out: &mut Out<'_>) {
    let (Sight::ProcessEnded { calls }, Some(scope)) = (case.what(), case.scope()) else { return };
    if scope.process.stdin_closed.is_some() || scope.process.signalled.is_some() {
        return;
    }
    let listens: Vec<CallIdx> = calls.iter().copied().filter(|idx| is_listen(case, *idx)).collect();
    let Some(first) = listens.first() else { return };
    let many = u32::try_from(listens.len()).unwrap_or(u32::MAX);
    let sentence = format!(
        "the server ended with {} open and said nothing about it; the first is {}",
        count(many, "subscription"),
        case.name(*first)
    );
    let draft = listens.iter().fold(out.draft(case), |draft, idx| draft.and_call(case.model, *idx));
    draft.blame(Blame::Server).say(out, sentence);
}

/// Subscriptions that were lost, whose clients may still come back.
#[derive(Debug, Default)]
struct Lost {
    waiting: Vec<(Mono, CallIdx)>,
}

impl Look for Lost {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        match case.what() {
            Sight::StreamEnded => self.add(case, case.seen.call.as_slice()),
            Sight::ProcessEnded { calls } => self.add(case, calls),
            _ if self.waiting.is_empty() => {}
            _ => self.waiting.retain(|(lost, idx)| is_open(case, out, *lost, *idx)),
        }
    }
}

impl Lost {
    fn add(&mut self, case: &Case<'_>, calls: &[CallIdx]) {
        for idx in calls.iter().copied().filter(|idx| is_listen(case, *idx)) {
            if self.waiting.len() < LOST_LIMIT {
                self.waiting.push((case.seen.at, idx));
            }
        }
    }
}

/// Whether a lost subscription has still to be watched. It is judged when its client is heard again
/// after the time to come back, or to read anew once it listens again, has passed.
fn is_open(case: &Case<'_>, out: &mut Out<'_>, lost: Mono, idx: CallIdx) -> bool {
    let Some(found) = case.model.subscription(idx) else { return false };
    let again = found.next.and_then(|next| case.model.call(next));
    let since = again.map_or(lost, |again| again.started);
    let Some(heard) = found.heard.filter(|heard| heard.ns_since(since) > RETURN_NS) else {
        return again.is_none() || !found.unread().is_none();
    };
    let sentence = match again {
        None => format!(
            "{} was lost, and {} later its client works on without a new one",
            case.name(idx),
            Case::ms(heard.ns_since(lost))
        ),
        Some(_) if found.unread().is_none() => return false,
        Some(_) => format!(
            "{} was lost and opened again, but not all was read anew: {}",
            case.name(idx),
            words(found.unread())
        ),
    };
    let draft = found
        .next
        .into_iter()
        .fold(out.about(case.model, idx), |draft, next| draft.and_call(case.model, next));
    draft.blame(Blame::Client).say(out, sentence);
    false
}
