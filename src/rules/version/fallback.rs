//! Between the eras: falling back, probing, methods that are gone (VER-05, VER-10..13).

use std::collections::{HashMap, HashSet};

use super::refusal::{is_refusal, supported};
use super::{CHANNELS, Channel, strings};
use crate::model::{CallIdx, Model, ScopeIdx};
use crate::rules::Severity;
use crate::rules::book::{Book, Look, On};
use crate::rules::case::{Case, count, short};
use crate::rules::findings::Out;
use crate::spec::codes;
use crate::spec::era::Era;
use crate::spec::meta;
use crate::spec::methods::{DISCOVER, INITIALIZE, INITIALIZED};
use crate::time::Mono;
use crate::wire::json::Value;

/// A client that waits shorter than this for an answer to its probe is not known. ours: an answer
/// that came sooner did not cross the end of its patience.
const QUICK_NS: u64 = 500_000_000;

/// Calls between two others that are looked at. ours.
const NEAR_CALLS: usize = 64;

/// Probes in a row, with no more than one call in between, from which on it is a habit. ours.
const PROBES: u32 = 3;

/// Methods that only legacy clients may use.
const REMOVED: [&str; 6] = [
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "tasks/list",
    "tasks/result",
];

pub(super) fn rules(book: &mut Book) {
    let begin = On::RequestOf(INITIALIZE);
    book.rule_of_any_era("VER-05", &[begin, On::ResultOf(DISCOVER), On::Error], Downgrade::default());
    book.rule_of_any_era("VER-10", &[On::ErrorOf(INITIALIZE)], nameless_refusal);
    book.rule_of_any_era("VER-11", &[begin], Unprobed::default());
    let mut gone: Vec<On> = REMOVED.iter().map(|method| On::RequestOf(method)).collect();
    gone.push(On::NotificationOf(INITIALIZED));
    gone.push(On::NotificationOf("notifications/roots/list_changed"));
    book.rule("VER-12", &gone, removed);
    book.rule_of_any_era("VER-13", &[begin, On::RequestOf(DISCOVER)], Wavering::default());
}

/// An answer that only a modern server gives.
struct Modern {
    call: CallIdx,
    at: Mono,
    /// It came so late that the client may have given up before.
    is_slow: bool,
    /// It is one that some clients take for a legacy one.
    is_doubtful: bool,
    client: Option<String>,
}

/// Clients that begin a legacy session with a server that has shown to be modern.
#[derive(Default)]
struct Downgrade {
    shown: HashMap<Channel, Modern>,
}

/// The name in a `clientInfo`.
fn client_name(info: Option<Value<'_>>) -> Option<String> {
    Some(info?.get("name")?.text()?.into_owned())
}

impl Downgrade {
    fn note(&mut self, case: &Case<'_>, channel: Channel) {
        let (Some(idx), Some(call), true) = (case.seen.call, case.call(), case.is_from_server()) else {
            return;
        };
        let discovered = || case.result()?.get("supportedVersions").and_then(strings);
        let offered = if is_refusal(case) { supported(case) } else { discovered() };
        let is_doubtful =
            matches!(case.code(), Some(codes::HEADER_MISMATCH | codes::MISSING_REQUIRED_CLIENT_CAPABILITY));
        let is_modern = |version: &String| Era::from_name(version).is_some_and(Era::is_modern);
        // With a legacy version on offer `initialize` is a way to take it.
        let is_final = is_doubtful || offered.is_some_and(|list| list.iter().all(is_modern));
        if !is_final || !call.era.is_some_and(Era::is_modern) {
            return;
        }
        if self.shown.len() >= CHANNELS {
            self.shown.clear();
        }
        let at = case.row().and_then(|row| row.out).unwrap_or(case.seen.at);
        let is_slow = case.seen.at.ns_since(call.started) >= QUICK_NS;
        let client = client_name(
            case.request().and_then(|request| request.at(&["params", "_meta", meta::CLIENT_INFO])),
        );
        self.shown.insert(channel, Modern { call: idx, at, is_slow, is_doubtful, client });
    }
}

impl Look for Downgrade {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let Some(channel) = Channel::of(case) else { return };
        if !case.is_from_client() {
            self.note(case, channel);
            return;
        }
        let Some(shown) = self.shown.remove(&channel) else { return };
        let client = client_name(case.params().and_then(|params| params.get("clientInfo")));
        let is_other = client.is_some() && shown.client.is_some() && client != shown.client;
        let may_have_crossed = shown.is_slow && case.seen.at.ns_since(shown.at) <= case.window_ns();
        if is_other || may_have_crossed {
            return;
        }
        let severity = if shown.is_doubtful { Severity::Hint } else { Severity::Error };
        let sentence = format!(
            "{} begins a legacy session although {} had got a modern answer",
            case.subject(),
            case.name(shown.call)
        );
        let draft = out.draft(case).at_most(severity).under(Era::V2026_07_28);
        draft.and_call(case.model, shown.call).say(out, sentence);
    }
}

/// A date as revisions are named stands in the text.
fn names_version(text: &str) -> bool {
    text.as_bytes().windows(10).any(|window| {
        window.iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    })
}

fn nameless_refusal(case: &Case<'_>, out: &mut Out<'_>) {
    let Some(error) = case.error().filter(|_| case.is_from_server()) else { return };
    // Every legacy server knows `initialize`.
    let is_modern_only = (case.speaks().modern && !case.speaks().legacy)
        || matches!(case.code(), Some(codes::METHOD_NOT_FOUND | codes::UNSUPPORTED_PROTOCOL_VERSION));
    if is_modern_only && !names_version(error.raw()) {
        let sentence = format!("{} was refused without a word of the versions spoken", case.subject());
        out.draft(case).under(Era::V2026_07_28).say(out, sentence);
    }
}

/// Processes whose first `initialize` was seen.
#[derive(Default)]
struct Unprobed {
    begun: HashSet<ScopeIdx>,
}

/// The calls of a process, in order. On stdio one follows another.
pub(super) fn calls_of(model: &Model, scope: ScopeIdx) -> impl Iterator<Item = CallIdx> + '_ {
    let first = model.calls().partition_point(|call| call.scope < scope);
    let mine = model.calls().iter().enumerate().skip(first).take_while(move |(_, call)| call.scope == scope);
    mine.filter_map(|(at, _)| u32::try_from(at).ok().map(CallIdx))
}

impl Look for Unprobed {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let is_first = self.begun.insert(case.seen.scope);
        if !is_first || !case.is_full() || !case.is_from_client() {
            return;
        }
        let Some(first) = calls_of(case.model, case.seen.scope).next() else { return };
        let Some(call) = case.model.call(first).filter(|_| Some(first) != case.seen.call) else { return };
        let is_modern = call.era.is_some_and(Era::is_modern);
        if is_modern && case.model.text(call.method) != DISCOVER {
            let sentence = format!(
                "the client knows both eras and began with {}, not with a discovery",
                case.name(first)
            );
            out.draft(case).under(Era::V2026_07_28).and_call(case.model, first).say(out, sentence);
        }
    }
}

fn removed(case: &Case<'_>, out: &mut Out<'_>) {
    if case.is_from_client() {
        let method = case.method();
        let name = case.message().and_then(|message| message.method);
        out.gather(case, (case.seen.scope, name), |times| {
            format!("{} {}, which this era has removed", count(times, "message"), short(method))
        });
    }
}

/// What is remembered of a client that may waver.
#[derive(Default)]
struct Steps {
    /// The latest `initialize`.
    begun: Option<CallIdx>,
    /// The latest probe, and how many came in a row.
    probe: Option<CallIdx>,
    probes: u32,
}

/// Clients that ask again and again which era a server is of, or change it.
#[derive(Default)]
struct Wavering {
    steps: HashMap<Channel, Steps>,
}

impl Look for Wavering {
    fn look(&mut self, case: &Case<'_>, out: &mut Out<'_>) {
        let (Some(channel), Some(idx), true) = (Channel::of(case), case.seen.call, case.is_from_client())
        else {
            return;
        };
        if self.steps.len() >= CHANNELS {
            self.steps.clear();
        }
        let steps = self.steps.entry(channel).or_default();
        let draft = out.draft(case).under(Era::V2026_07_28);
        if case.method() == INITIALIZE {
            let Some(before) = steps.begun.replace(idx) else { return };
            let conn = case.call().and_then(|call| call.conn);
            let between = case.model.calls().iter().take(idx.0 as usize).skip(before.0 as usize + 1);
            let came_back = between
                .rev()
                .take(NEAR_CALLS)
                .any(|call| call.conn == conn && call.era.is_some_and(Era::is_modern));
            if came_back {
                let sentence = format!(
                    "{} begins another legacy session, after modern requests since {}",
                    case.subject(),
                    case.name(before)
                );
                draft.and_call(case.model, before).say(out, sentence);
            }
            return;
        }
        let is_in_a_row = steps.probe.replace(idx).is_some_and(|before| idx.0 - before.0 <= 2);
        steps.probes = if is_in_a_row { steps.probes + 1 } else { 1 };
        if steps.probes >= PROBES {
            let probes = steps.probes;
            draft.gather(out, channel, |_| {
                format!("the client asked {probes} times in a row which versions the server speaks")
            });
        }
    }
}
