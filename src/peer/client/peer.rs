//! One server as a client keeps it: how it is reached, its era, what was read of it, and what is done
//! when a call is lost. It is bookkeeping of the client and no session.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::answers::Answers;
use super::cache::{Cache, Key};
use super::era::{EraPolicy, EraReport, EraRule};
use super::lists::List;
use super::spread::Spread;
use super::tasks::{self, Watched};
use super::{CallOptions, Client, Heard, Outcome, Params, PeerError, Reason, Report, mirror};
use crate::machine::policy::contract::Contract;
use crate::machine::retry::{Class, Why, classify};
use crate::machine::task::TaskState;
use crate::spec::lists::ListKind;
use crate::spec::transport::Transport;
use crate::spec::{codes, methods};
use crate::time::TimerClock;
use crate::wire::jsonrpc;

/// Makes a new connection to the server, and starts its process where it is one.
pub type Dial = Arc<dyn Fn() -> Result<Client, PeerError> + Send + Sync>;

/// How a client deals with one server.
#[derive(Debug, Clone)]
pub struct Setup {
    /// How the era is found out.
    pub era: EraPolicy,
    /// What is said when the server asks.
    pub answers: Answers,
    /// Contracts of its tools; the first that names a tool counts.
    pub contracts: Vec<Contract>,
    /// How often a lost call is made again, where its class allows it.
    pub retries: u32,
    /// What keeps it from coming back together with others.
    pub spread: Spread,
    /// Under which authorisation it calls: what is private is kept for it alone.
    pub authorisation: String,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            era: EraPolicy::default(),
            answers: Answers::default(),
            contracts: Vec::new(),
            retries: 0,
            spread: Spread::Named("midwire".to_owned()),
            authorisation: String::new(),
        }
    }
}

/// One server.
pub struct Peer {
    name: String,
    dial: Dial,
    setup: Setup,
    client: Client,
    era: EraReport,
    cache: Arc<Mutex<Cache>>,
    clock: TimerClock,
}

/// What happens while a call is under way.
#[derive(Debug, Clone, Copy)]
pub enum During<'a> {
    /// It hears something.
    Heard(Heard<'a>),
    /// Its task has changed.
    Task(TaskState),
    /// The client does something about it; in words.
    Note(&'a str),
}

/// A call from its first request to its end.
#[derive(Debug)]
pub struct Conversation {
    /// Every request of it, in order.
    pub reports: Vec<Report>,
    /// How it ended.
    pub outcome: Outcome,
    /// The task that it became.
    pub task: Option<Watched>,
    /// Whether it may be made again, and why.
    pub class: (Class, Why),
    /// Times that it was made again because it was lost.
    pub retries: u32,
}

impl Peer {
    /// Connects and finds out the era. A server whose era is not known is there, and unavailable.
    ///
    /// # Errors
    /// When it cannot be reached or started.
    pub async fn connect(
        name: &str,
        dial: Dial,
        setup: Setup,
        cache: Arc<Mutex<Cache>>,
        options: &CallOptions,
    ) -> Result<Peer, PeerError> {
        let (client, era) = settle(&dial, &setup, 1, options).await?;
        Ok(Peer { name: name.to_owned(), dial, setup, client, era, cache, clock: TimerClock::start() })
    }

    /// What it is called here.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its era was found out.
    #[must_use]
    pub fn era(&self) -> &EraReport {
        &self.era
    }

    /// It may be called.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.era.settled.is_some()
    }

    /// Its connection.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How it is dealt with.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Connects anew: a new process is another server, whose era is found out again. Ids go on.
    ///
    /// # Errors
    /// When it cannot be reached or started.
    pub async fn reconnect(&mut self, options: &CallOptions) -> Result<(), PeerError> {
        let (client, era) = settle(&self.dial, &self.setup, self.client.next_id(), options).await?;
        let old = std::mem::replace(&mut self.client, client);
        self.era = era;
        // What it was is gone; how it ended changes nothing any more.
        let _ = old.close().await;
        for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources, ListKind::Templates] {
            self.forget(kind);
        }
        Ok(())
    }

    /// Ends the connection in order.
    ///
    /// # Errors
    /// As [`Client::close`].
    pub async fn close(self) -> Result<Option<super::ServerExit>, PeerError> {
        self.client.close().await
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, kind: ListKind) -> Key {
        Key { server: self.name.clone(), kind }
    }

    /// What was read of a list is stale.
    pub fn forget(&self, kind: ListKind) {
        self.cache().forget(&self.key(kind), &self.setup.authorisation);
    }

    /// A list, read now unless a fresh one is kept.
    ///
    /// # Errors
    /// When nothing can be sent; `Ok(Err)`: the request that failed.
    pub async fn list(
        &self,
        kind: ListKind,
        options: &CallOptions,
    ) -> Result<Result<List, Report>, PeerError> {
        let now = self.clock.now();
        if let Some(list) = self.cache().find(&self.key(kind), &self.setup.authorisation, now) {
            return Ok(Ok(list.clone()));
        }
        let mut walk = self.client.walk(kind, options).await?;
        match (walk.list, walk.reports.pop()) {
            (Some(list), _) => {
                let (key, now) = (self.key(kind), self.clock.now());
                self.cache().keep(key, &self.setup.authorisation, list.clone(), now);
                Ok(Ok(list))
            }
            (None, Some(report)) => Ok(Err(report)),
            (None, None) => Err(PeerError::Gone),
        }
    }

    /// Makes a call and follows it to its end: questions are answered, a task is watched, and what was
    /// lost is made again where its class allows it.
    ///
    /// # Errors
    /// When the server is unavailable, or nothing can be sent.
    pub async fn request(
        &mut self,
        method: &str,
        params: &Params,
        options: &CallOptions,
        on_event: impl FnMut(During<'_>) + Send,
    ) -> Result<Conversation, PeerError> {
        if !self.is_available() {
            return Err(PeerError::Unavailable { name: self.name.clone() });
        }
        let cancel = options.cancel.child_token();
        let fire = cancel.clone();
        let after = options.cancel_after;
        let timer = async move {
            if let Some(after) = after {
                tokio::time::sleep(after.into()).await;
                fire.cancel();
            }
            std::future::pending::<Infallible>().await
        };
        let options = CallOptions { cancel: cancel.clone(), cancel_after: None, ..options.clone() };
        tokio::select! {
            told = self.talk(method, params, options, &cancel, on_event) => told,
            never = timer => match never {},
        }
    }

    async fn talk(
        &mut self,
        method: &str,
        params: &Params,
        mut options: CallOptions,
        cancel: &CancellationToken,
        mut on_event: impl FnMut(During<'_>) + Send,
    ) -> Result<Conversation, PeerError> {
        let class = self.class(method, params);
        let outcome = Outcome::Lost("nothing was sent".to_owned());
        let mut talk = Conversation { reports: Vec::new(), outcome, task: None, class, retries: 0 };
        let mut is_relisted = false;
        let mut is_reopened = false;
        loop {
            match self.mirrored(method, params, &options).await? {
                Ok(mirrored) => options.mirrored = mirrored,
                Err(why) => {
                    talk.outcome = Outcome::Invalid(why);
                    return Ok(talk);
                }
            }
            let answers = self.setup.answers.clone();
            let hear = |heard: Heard<'_>| on_event(During::Heard(heard));
            match self.client.ask(method, params, &options, &answers, hear).await {
                Ok(reports) => {
                    if let Some(last) = reports.last() {
                        talk.outcome = last.outcome.clone();
                    }
                    talk.reports.extend(reports);
                }
                Err(error @ (PeerError::Connect { .. } | PeerError::Gone))
                    if talk.retries < self.setup.retries =>
                {
                    talk.outcome = Outcome::Lost(error.to_string());
                }
                Err(error) => return Err(error),
            }
            options.drop_after = None;
            let status = talk.reports.last().and_then(|report| report.status);
            if is_mirror_refusal(method, &talk.outcome) && !is_relisted {
                on_event(During::Note("the header fields were refused: the tools are listed again"));
                self.forget(ListKind::Tools);
                is_relisted = true;
                continue;
            }
            if status == Some(404) && !self.client.speech().era.is_modern() && !is_reopened {
                on_event(During::Note("the session is gone: a new one is opened"));
                self.reconnect(&options).await?;
                is_reopened = true;
                if self.is_available() {
                    continue;
                }
            }
            if let Outcome::Task(handle) = &talk.outcome {
                let state = |state: TaskState| on_event(During::Task(state));
                let watched =
                    tasks::follow(&self.client, handle, &options, &answers, cancel, options.max, state)
                        .await?;
                talk.outcome = watched.outcome.clone();
                talk.task = Some(watched);
                return Ok(talk);
            }
            if !is_unknown(&talk.outcome) || !self.again(&mut talk, &options, &mut on_event).await? {
                return Ok(talk);
            }
        }
    }

    /// After a loss: whether the call is made again, once the wait is over and the server is back.
    async fn again(
        &mut self,
        talk: &mut Conversation,
        options: &CallOptions,
        on_event: &mut (impl FnMut(During<'_>) + Send),
    ) -> Result<bool, PeerError> {
        let (class, why) = talk.class;
        if class == Class::Unsafe {
            let note = format!(
                "not made again: it is {}, for {}; find out first what became of it",
                class.as_str(),
                why.as_str()
            );
            on_event(During::Note(&note));
            return Ok(false);
        }
        if talk.retries >= self.setup.retries {
            return Ok(false);
        }
        let wait = self.setup.spread.wait(talk.retries);
        let note = format!(
            "made again in {} ms under a new id: it is {}, for {}",
            wait.0,
            class.as_str(),
            why.as_str()
        );
        on_event(During::Note(&note));
        talk.retries += 1;
        tokio::select! {
            () = tokio::time::sleep(wait.into()) => {}
            () = options.cancel.cancelled() => return Ok(false),
        }
        if self.client.transport() == Transport::Stdio && self.client.is_closed() {
            self.reconnect(options).await?;
        }
        Ok(self.is_available())
    }

    /// Whether a call may be made again. What only reads by the specification is safe; a tool is what its
    /// contract says; all else may change something.
    fn class(&self, method: &str, params: &Params) -> (Class, Why) {
        match method {
            methods::TOOLS_CALL => {
                let name = params.get("name").and_then(|name| jsonrpc::string(name));
                let arguments: Value = params
                    .get("arguments")
                    .and_then(|arguments| serde_json::from_str(arguments.get()).ok())
                    .unwrap_or_default();
                let names = |contract: &&Contract| {
                    name.as_ref()
                        .is_some_and(|name| contract.tools.iter().any(|pattern| pattern.matches(name)))
                };
                classify(self.setup.contracts.iter().find(names), &arguments)
            }
            "tools/list"
            | "prompts/list"
            | "prompts/get"
            | "resources/list"
            | "resources/read"
            | "resources/templates/list"
            | "completion/complete"
            | "server/discover"
            | "tasks/get"
            | "ping" => (Class::Safe, Why::NoEffect),
            _ => (Class::Unsafe, Why::NoContract),
        }
    }

    /// The header fields of a call over modern HTTP, which only the definition of its tool tells.
    async fn mirrored(
        &self,
        method: &str,
        params: &Params,
        options: &CallOptions,
    ) -> Result<Result<Vec<(String, String)>, String>, PeerError> {
        let is_http = self.client.transport() == Transport::Http;
        if method != methods::TOOLS_CALL || !is_http || !self.client.speech().era.is_modern() {
            return Ok(Ok(Vec::new()));
        }
        let Some(name) = params.get("name").and_then(|name| jsonrpc::string(name)) else {
            return Ok(Ok(Vec::new()));
        };
        let listing = CallOptions { wants_progress: false, drop_after: None, ..options.clone() };
        // Without a list the call goes as it is, and the server says what is missing.
        let Ok(list) = self.list(ListKind::Tools, &listing).await? else { return Ok(Ok(Vec::new())) };
        if let Some(fault) = list.dropped.get(&*name) {
            return Ok(Err(format!(
                "the tool is not called, for its definition is against the rules: {fault}"
            )));
        }
        let Some(tool) = list.items.get(&*name) else { return Ok(Ok(Vec::new())) };
        let arguments = params.get("arguments").map_or(RawValue::NULL, |arguments| &**arguments);
        Ok(mirror::fields(tool, arguments))
    }
}

/// A client whose era is settled, or is found not to be.
async fn settle(
    dial: &Dial,
    setup: &Setup,
    first_id: i64,
    options: &CallOptions,
) -> Result<(Client, EraReport), PeerError> {
    let open = |id: i64| Ok::<_, PeerError>(dial()?.with_ids_from(id).with_answers(setup.answers.clone()));
    let client = open(first_id)?;
    let mut report = client.settle(&setup.era, options).await?;
    let may_be_old = matches!(setup.era.rule, EraRule::Allowed | EraRule::Lenient);
    if !report.is_gone || !may_be_old || report.settled.is_some() {
        return Ok((client, report));
    }
    // It ended over a question that it did not know: a new process, and the older question first.
    let again = open(client.next_id())?;
    client.close().await?;
    let policy = EraPolicy { rule: EraRule::Legacy, ..setup.era.clone() };
    let second = again.settle(&policy, options).await?;
    report.steps.extend(second.steps.iter().cloned());
    Ok((again, EraReport { steps: report.steps, ..second }))
}

/// What the server did is not known.
fn is_unknown(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Lost(_) | Outcome::GivenUp(Reason::Idle | Reason::Maximum | Reason::Dropped))
}

fn is_mirror_refusal(method: &str, outcome: &Outcome) -> bool {
    method == methods::TOOLS_CALL && matches!(outcome, Outcome::Error { code: codes::HEADER_MISMATCH, .. })
}

#[cfg(test)]
mod tests;
