//! A subscription, kept up: what has changed is read again, and after a loss the plan of
//! [`crate::machine::reconnect`] is gone through.
//!
//! Change notifications are cues and no data. Nothing is replayed, so after every loss, graceful or
//! not, all that the subscription is about is read afresh once the new one is acknowledged.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::peer::Peer;
use super::{CallOptions, Client, Heard, Notice, Outcome, Params, PeerError, Reason, raw};
use crate::machine::reconnect::{Filter, Loss, Read, Step, plan};
use crate::spec::lists::ListKind;
use crate::spec::methods;
use crate::time::{Ms, TimerClock};
use crate::wire::jsonrpc::{self, Id};

/// A subscription has no idle limit: silence is what it is for. A day, ms.
const FOREVER: Ms = Ms(86_400_000);
/// A subscription that has lasted this long is no failed attempt any more: waits begin anew. ours.
const STEADY: Ms = Ms(10_000);

/// How long a subscription is kept up.
#[derive(Debug, Clone)]
pub struct ListenOptions {
    /// What is wanted.
    pub wanted: Filter,
    /// The end, after so long.
    pub limit: Option<Ms>,
    /// The end, after so many changes.
    pub changes: Option<u64>,
    /// Times that it is opened again.
    pub reconnects: u32,
}

/// What happens to a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listened {
    /// The server has acknowledged it.
    Granted {
        /// What it grants.
        granted: Filter,
        /// What is wanted and not granted.
        missing: Filter,
    },
    /// A cue that something has changed.
    Changed(Read),
    /// Something was read afresh.
    Fetched {
        /// What.
        what: Read,
        /// In words: items and what is new and gone, or why it could not be read.
        came: String,
    },
    /// Against the rules of a subscription; in words.
    Fault(String),
    /// It has ended; the server said so, or not.
    Ended {
        /// In words.
        why: String,
        /// The server ended it in order.
        is_graceful: bool,
    },
    /// A step of the plan that follows a loss.
    Step(String),
}

/// What was read again: names of items, or why not, in words.
type Fetched = (Read, Result<Vec<String>, String>);

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListenEnd {
    /// Changes that were told.
    pub changes: u64,
    /// Times that it was opened.
    pub opened: u32,
    /// It ended because the client wanted it to.
    pub was_wanted: bool,
}

/// What a filter is about, sorted, each once.
#[must_use]
pub fn affected(filter: &Filter) -> Vec<Read> {
    let lists =
        [(filter.tools, Read::Tools), (filter.prompts, Read::Prompts), (filter.resources, Read::Resources)];
    let lists = lists.into_iter().filter_map(|(is_wanted, read)| is_wanted.then_some(read));
    let uris = filter.uris.iter().cloned().map(Read::Resource);
    let all: BTreeSet<Read> = lists.chain(uris).chain(filter.tasks.iter().cloned().map(Read::Task)).collect();
    all.into_iter().collect()
}

/// Keeps a subscription up until one of its ends. `on` is told everything as it happens.
///
/// # Errors
/// When the server cannot be reached any more, or is unavailable.
pub async fn listen(
    peer: &mut Peer,
    listen: &ListenOptions,
    options: &CallOptions,
    mut on: impl FnMut(&Listened) + Send,
) -> Result<ListenEnd, PeerError> {
    let mut kept = Kept { known: BTreeMap::new(), end: ListenEnd::default(), listen, options };
    let clock = TimerClock::start();
    let until = listen.limit.map_or(FOREVER, |limit| limit.min(FOREVER));
    let (mut attempt, mut due) = (0, Vec::new());
    loop {
        let opened_at = clock.now();
        let left = Ms(until.0.saturating_sub(opened_at.0));
        let ended = kept.once(peer.client(), left, std::mem::take(&mut due), &mut on).await?;
        let Some((why, is_graceful)) = ended else {
            kept.end.was_wanted = true;
            return Ok(kept.end);
        };
        on(&Listened::Ended { why, is_graceful });
        if kept.end.opened > listen.reconnects || options.cancel.is_cancelled() {
            return Ok(kept.end);
        }
        if clock.now().0.saturating_sub(opened_at.0) >= STEADY.0 {
            attempt = 0;
        }
        let steps: Vec<Step<u64>> = plan(Loss {
            client: &peer.setup().spread.name(),
            attempt,
            is_process_gone: peer.client().is_closed(),
            wanted: listen.wanted.clone(),
            affected: affected(&listen.wanted),
            in_flight: Vec::new(),
        });
        attempt += 1;
        for step in steps {
            match step {
                Step::Wait(wait) => {
                    let wait = peer.client().wrongs().wait(wait);
                    on(&Listened::Step(format!("wait {} ms", wait.0)));
                    tokio::select! {
                        () = tokio::time::sleep(wait.into()) => {}
                        () = options.cancel.cancelled() => return Ok(kept.end),
                    }
                }
                Step::Restart => {
                    on(&Listened::Step("start the server again, and ask what it is".to_owned()));
                    peer.reconnect(options).await?;
                    if !peer.is_available() {
                        return Err(PeerError::Unavailable { name: peer.name().to_owned() });
                    }
                }
                Step::Relist => {
                    on(&Listened::Step("list the tools again".to_owned()));
                    if let Err(report) = peer.list(ListKind::Tools, options).await? {
                        on(&Listened::Fault(format!("the tools cannot be listed: {:?}", report.outcome)));
                    }
                }
                // Done by the opening itself, in this order: open, wait for the acknowledgement, read.
                Step::Listen(_) => on(&Listened::Step("listen anew, under a new id".to_owned())),
                Step::Refetch(reads) => due = peer.client().wrongs().due(reads),
                Step::Discover | Step::AwaitAcknowledgement(_) | Step::Merge | Step::Settle(..) => {}
            }
        }
    }
}

/// What is kept from one subscription to the next.
struct Kept<'a> {
    /// Names of items, by list: what is read again is compared by stable names.
    known: BTreeMap<Read, BTreeSet<String>>,
    end: ListenEnd,
    listen: &'a ListenOptions,
    options: &'a CallOptions,
}

impl Kept<'_> {
    /// One subscription: why it ended and whether in order; `None`: the client has had enough.
    async fn once(
        &mut self,
        client: &Client,
        limit: Ms,
        due: Vec<Read>,
        on: &mut (impl FnMut(&Listened) + Send),
    ) -> Result<Option<(String, bool)>, PeerError> {
        if !client.speech().era.is_modern() {
            return Err(PeerError::NotOfThisEra { what: methods::LISTEN });
        }
        self.end.opened += 1;
        let cancel = self.options.cancel.child_token();
        let options = CallOptions {
            idle: FOREVER,
            max: FOREVER,
            wants_progress: false,
            cancel: cancel.clone(),
            ..self.options.clone()
        };
        let (sender, mut notices) = mpsc::unbounded_channel::<(Id, Notice)>();
        let mut own = Id::from(client.next_id());
        let hear = move |heard: Heard<'_>| match heard {
            Heard::Sent(id) => own = id.clone(),
            Heard::Notice(notice) => {
                // Nobody listens any more only when this is over.
                let _ = sender.send((own.clone(), notice.clone()));
            }
            Heard::Progress(_) => {}
        };
        let params = Params::from([("notifications".to_owned(), raw(&as_json(&self.listen.wanted)))]);
        let listening = client.converse(methods::LISTEN, params, &options, hear);
        let enough = tokio::time::sleep(limit.into());
        tokio::pin!(listening, enough);
        let mut waiting: BTreeSet<Read> = BTreeSet::new();
        let mut due = Some(due);
        let mut fetching: Option<BoxFuture<'_, Fetched>> = None;
        let mut is_enough = false;
        loop {
            if fetching.is_none() {
                fetching = waiting.pop_first().map(|what| fetch(client, what, self.options).boxed());
            }
            let idle = fetching.is_none();
            let fetched = async {
                match fetching.as_mut() {
                    Some(fetching) => fetching.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some((id, notice)) = notices.recv() => {
                    let told = judge(&notice, &id, due.is_none(), &self.listen.wanted);
                    match &told {
                        Listened::Granted { .. } => waiting.extend(due.take().unwrap_or_default()),
                        Listened::Changed(what) => {
                            self.end.changes += 1;
                            waiting.insert(what.clone());
                        }
                        // Let go of without a word: the server knows.
                        Listened::Ended { why, is_graceful } => {
                            return Ok(Some((why.clone(), *is_graceful)));
                        }
                        _ => {}
                    }
                    on(&told);
                }
                (what, came) = fetched => {
                    fetching = None;
                    on(&self.fetched(what, came));
                }
                ended = &mut listening => {
                    let report = ended?;
                    // What came in one breath with the end is told before it.
                    while let Ok((id, notice)) = notices.try_recv() {
                        let told = judge(&notice, &id, due.is_none(), &self.listen.wanted);
                        match &told {
                            Listened::Granted { .. } => due = None,
                            Listened::Changed(_) => self.end.changes += 1,
                            _ => {}
                        }
                        on(&told);
                    }
                    if is_enough {
                        return Ok(None);
                    }
                    return Ok(match report.outcome {
                        Outcome::Complete(result) => Some(closing(&result, &report.id)),
                        Outcome::GivenUp(Reason::Cancelled) => None,
                        other => Some((format!("{other:?}"), false)),
                    });
                }
                () = &mut enough, if !is_enough => {
                    is_enough = true;
                    cancel.cancel();
                }
                () = std::future::ready(()), if self.has_enough(idle && waiting.is_empty()) && !is_enough => {
                    is_enough = true;
                    cancel.cancel();
                }
            }
        }
    }

    /// As many changes as were wanted, and all of them read.
    fn has_enough(&self, is_idle: bool) -> bool {
        is_idle && self.listen.changes.is_some_and(|changes| self.end.changes >= changes)
    }

    fn fetched(&mut self, what: Read, came: Result<Vec<String>, String>) -> Listened {
        let came = match came {
            Err(why) => why,
            Ok(names) => {
                let names: BTreeSet<String> = names.into_iter().collect();
                let before = self.known.insert(what.clone(), names.clone());
                let mut words = format!("{} items", names.len());
                if let Some(before) = before {
                    for name in names.difference(&before) {
                        words.extend([", new ", name.as_str()]);
                    }
                    for name in before.difference(&names) {
                        words.extend([", gone ", name.as_str()]);
                    }
                }
                words
            }
        };
        Listened::Fetched { what, came }
    }
}

/// What a message of a subscription is.
fn judge(notice: &Notice, id: &Id, is_acknowledged: bool, wanted: &Filter) -> Listened {
    let fault = |why: &str| Listened::Fault(format!("{}: {why}", notice.method));
    if notice.about.as_ref() != Some(id) {
        return fault("it does not bear the id of the subscription");
    }
    let params = notice.params.as_deref();
    let text = |name: &str| params.and_then(|params| jsonrpc::at(params, &[name])).and_then(jsonrpc::string);
    let what = match notice.method.as_str() {
        methods::ACKNOWLEDGED if is_acknowledged => return fault("it was acknowledged before"),
        methods::ACKNOWLEDGED => {
            let granted = params.and_then(|params| jsonrpc::at(params, &["notifications"]));
            let granted = granted.map(from_json).unwrap_or_default();
            let missing = wanted.without(&granted);
            return Listened::Granted { granted, missing };
        }
        methods::CANCELLED => {
            let why = text("reason").map(|reason| format!(": {reason}")).unwrap_or_default();
            return Listened::Ended { why: format!("the server has cancelled it{why}"), is_graceful: true };
        }
        _ if !is_acknowledged => return fault("it came before the acknowledgement"),
        "notifications/tools/list_changed" => Some(Read::Tools),
        "notifications/prompts/list_changed" => Some(Read::Prompts),
        "notifications/resources/list_changed" => Some(Read::Resources),
        "notifications/resources/updated" => text("uri").map(|uri| Read::Resource(uri.into_owned())),
        "notifications/tasks" => text("taskId").map(|id| Read::Task(id.into_owned())),
        _ => None,
    };
    let Some(what) = what else { return fault("it belongs to no subscription") };
    let is_wanted = match &what {
        Read::Tools => wanted.tools,
        Read::Prompts | Read::Prompt(_) => wanted.prompts,
        Read::Resources => wanted.resources,
        // What is told may be a part of what was asked for.
        Read::Resource(uri) => wanted.uris.iter().any(|wanted| uri.starts_with(wanted.as_str())),
        Read::Task(id) => wanted.tasks.contains(id),
    };
    if is_wanted { Listened::Changed(what) } else { fault("it was not asked for") }
}

/// The result that ends a subscription bears its id.
fn closing(result: &RawValue, id: &Id) -> (String, bool) {
    let named = jsonrpc::at(result, &["_meta", crate::spec::meta::SUBSCRIPTION_ID]);
    if named.is_some_and(|named| named.get() == id.to_string()) {
        ("the server has ended it".to_owned(), true)
    } else {
        ("a result without the id of the subscription".to_owned(), false)
    }
}

/// Reads what has changed: names of items, or `Err` in words.
async fn fetch(client: &Client, what: Read, options: &CallOptions) -> Fetched {
    let kind = match &what {
        Read::Tools => Some(ListKind::Tools),
        Read::Prompts => Some(ListKind::Prompts),
        Read::Resources => Some(ListKind::Resources),
        _ => None,
    };
    let options = CallOptions { wants_progress: false, ..options.clone() };
    if let Some(kind) = kind {
        let came = match client.walk(kind, &options).await {
            Ok(walk) => match (walk.list, walk.reports.last()) {
                (Some(list), _) => Ok(list.items.into_keys().collect()),
                (None, Some(report)) => Err(format!("{:?}", report.outcome)),
                (None, None) => Err("nothing came".to_owned()),
            },
            Err(error) => Err(error.to_string()),
        };
        return (what, came);
    }
    let (method, member, value) = match &what {
        Read::Task(id) => ("tasks/get", "taskId", id),
        Read::Prompt(name) => (methods::PROMPTS_GET, "name", name),
        Read::Resource(uri) => (methods::RESOURCES_READ, "uri", uri),
        Read::Tools | Read::Prompts | Read::Resources => return (what, Ok(Vec::new())),
    };
    let params = Params::from([(member.to_owned(), raw(value))]);
    let came = match client.request(method, params, &options, |_| {}).await {
        Ok(report) => match report.outcome {
            Outcome::Complete(result) => Ok(vec![result.get().to_owned()]),
            other => Err(format!("{other:?}")),
        },
        Err(error) => Err(error.to_string()),
    };
    (what, came)
}

/// A filter as it stands on the wire: what is not wanted is left out.
fn as_json(filter: &Filter) -> Value {
    let mut object = Map::new();
    let flags = [
        ("toolsListChanged", filter.tools),
        ("promptsListChanged", filter.prompts),
        ("resourcesListChanged", filter.resources),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_wanted)| *is_wanted) {
        object.insert(name.to_owned(), json!(true));
    }
    for (name, texts) in [("resourceSubscriptions", &filter.uris), ("taskIds", &filter.tasks)] {
        if !texts.is_empty() {
            object.insert(name.to_owned(), json!(texts));
        }
    }
    Value::Object(object)
}

fn from_json(granted: &RawValue) -> Filter {
    let is_on = |name: &str| jsonrpc::at(granted, &[name]).is_some_and(|raw| raw.get() == "true");
    let texts = |name: &str| -> BTreeSet<String> {
        jsonrpc::at(granted, &[name]).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    };
    Filter {
        tools: is_on("toolsListChanged"),
        prompts: is_on("promptsListChanged"),
        resources: is_on("resourcesListChanged"),
        uris: texts("resourceSubscriptions"),
        tasks: texts("taskIds"),
    }
}

#[cfg(test)]
mod tests;
