//! Finding out which era a server speaks, before anything else is asked of it.
//!
//! `server/discover` goes first: a clean line, where an ordinary request may be answered by a
//! server of any era. `verdict` says what its answer proves, `opening` when an older handshake may
//! be believed. What is neither proof is ambiguous, and the rule of the client decides: the strict
//! one fails closed, for a timeout looks the same whether a server is old, slow or dead.

mod opening;
mod verdict;

use serde_json::value::RawValue;

use self::verdict::{Verdict, judge};
use super::message::{Outgoing, Speech};
use super::{CallOptions, Client, Link, Outcome, Params, PeerError, Report};
use crate::peer::faults::Fault;
use crate::spec::era::Era;
use crate::spec::transport::Transport;
use crate::spec::{meta, methods};
use crate::time::Ms;
use crate::wire::jsonrpc;

/// What a client does where the era of a server is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraRule {
    /// Fails: an `initialize` goes to nobody.
    #[default]
    Strict,
    /// This very server may be old: one `initialize`, within its limit.
    Allowed,
    /// As the specification has it: whatever does not answer as a modern server is taken for an
    /// old one (spec 2026-07-28 basic/lifecycle), and so is one that offers old revisions only.
    Lenient,
    /// Not asked: modern.
    Modern,
    /// Not asked: old, so `initialize` is the first message.
    Legacy,
}

/// How a client finds out.
#[derive(Debug, Clone)]
pub struct EraPolicy {
    /// What to do where nothing is proven.
    pub rule: EraRule,
    /// Longest wait for the answer to `server/discover`.
    pub probe_limit: Ms,
    /// Longest wait for the answer to `initialize`.
    pub initialize_limit: Ms,
    /// Older revisions that are accepted; the newest is asked for.
    pub revisions: Vec<Era>,
}

impl Default for EraPolicy {
    fn default() -> EraPolicy {
        EraPolicy {
            rule: EraRule::default(),
            probe_limit: Ms(1000),
            initialize_limit: Ms(1000),
            revisions: Era::ALL.into_iter().filter(|era| !era.is_modern()).collect(),
        }
    }
}

/// One question that was asked to find out, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EraStep {
    /// What was sent.
    pub sent: String,
    /// What came back, in words.
    pub came: String,
    /// What that proves.
    pub conclusion: String,
}

/// What is known of a server whose era is settled.
#[derive(Debug, Clone)]
pub struct Settled {
    /// How requests are written from now on.
    pub speech: Speech,
    /// Its answer to `server/discover` or `initialize`, where there was a good one.
    pub introduction: Option<Box<RawValue>>,
}

impl Settled {
    /// The revisions that the server says it speaks.
    #[must_use]
    pub fn offered(&self) -> Option<Vec<String>> {
        let versions = jsonrpc::at(self.introduction.as_ref()?, &["supportedVersions"])?;
        serde_json::from_str(versions.get()).ok()
    }

    /// Name and version that the server gives itself.
    #[must_use]
    pub fn server_info(&self) -> Option<&RawValue> {
        let introduction = self.introduction.as_ref()?;
        let info = jsonrpc::at(introduction, &["_meta", meta::SERVER_INFO]);
        info.or_else(|| jsonrpc::at(introduction, &["serverInfo"]))
    }
}

/// How the era was found out.
#[derive(Debug, Clone)]
pub struct EraReport {
    /// Every question, in order; empty where none was asked.
    pub steps: Vec<EraStep>,
    /// The era; `None`: it is not known, and the server is not to be used.
    pub settled: Option<Settled>,
    /// The process of the server ended over the question: an old one may only be met by a new
    /// process and `initialize` as its first message.
    pub is_gone: bool,
    /// How the last question ended.
    pub last: Option<Outcome>,
    /// HTTP status of the last answer.
    pub status: Option<u16>,
}

impl Client {
    /// Finds out the era, once: as long as the connection stands, the answer is kept.
    ///
    /// # Errors
    /// When nothing can be sent.
    pub async fn settle(&self, policy: &EraPolicy, options: &CallOptions) -> Result<EraReport, PeerError> {
        let mut report = EraReport {
            steps: Vec::new(),
            settled: self.settled(),
            is_gone: false,
            last: None,
            status: None,
        };
        if report.settled.is_some() {
            return Ok(report);
        }
        let policy = &self.desk.wrongs.policy(policy);
        let mut asking = Asking { client: self, policy, options, report: &mut report };
        let settled = match policy.rule {
            EraRule::Modern => Some(Settled { speech: Speech::modern(), introduction: None }),
            EraRule::Legacy => asking.initialize().await?,
            EraRule::Strict | EraRule::Allowed | EraRule::Lenient => asking.discover().await?,
        };
        if let Some(settled) = &settled {
            self.desk.set_speech(settled.speech.clone());
        }
        self.keep_settled(settled.clone());
        report.settled = settled;
        Ok(report)
    }
}

struct Asking<'a> {
    client: &'a Client,
    policy: &'a EraPolicy,
    options: &'a CallOptions,
    report: &'a mut EraReport,
}

impl Asking<'_> {
    fn limited(&self, limit: Ms) -> CallOptions {
        CallOptions {
            idle: limit,
            max: limit,
            wants_progress: false,
            mirrored: Vec::new(),
            cancel_after: None,
            drop_after: None,
            ..self.options.clone()
        }
    }

    fn note(&mut self, sent: String, report: Report, conclusion: String) {
        let came = words(&report.outcome, report.status);
        self.report.steps.push(EraStep { sent, came, conclusion });
        self.report.last = Some(report.outcome);
        self.report.status = report.status;
    }

    async fn discover(&mut self) -> Result<Option<Settled>, PeerError> {
        let mut is_retry = false;
        loop {
            let options = self.limited(self.policy.probe_limit);
            let report = self.client.request(methods::DISCOVER, Params::new(), &options, |_| {}).await?;
            let sent = format!("{} {}", methods::DISCOVER, Speech::modern().version);
            let verdict = judge(&report, self.client.transport());
            self.report.is_gone =
                self.client.transport() == Transport::Stdio && matches!(report.outcome, Outcome::Lost(_));
            let (conclusion, next) = self.next(&verdict, is_retry);
            let downgrades = self.client.desk.wrongs.is_on(Fault::Downgrades);
            let next = if downgrades && next == Next::Modern { Next::Initialize } else { next };
            let result = match &report.outcome {
                Outcome::Complete(result) => Some(result.clone()),
                _ => None,
            };
            self.note(sent, report, conclusion);
            match next {
                Next::Modern => {
                    return Ok(Some(Settled { speech: Speech::modern(), introduction: result }));
                }
                Next::Again => is_retry = true,
                Next::Initialize if self.report.is_gone => return Ok(None),
                Next::Initialize => return self.initialize().await,
                Next::Fail => return Ok(None),
            }
        }
    }

    /// What follows from a verdict.
    fn next(&self, verdict: &Verdict, is_retry: bool) -> (String, Next) {
        let ours = Speech::modern().version;
        let offers_older = |supported: &[String]| {
            supported.iter().any(|name| self.policy.revisions.iter().any(|era| era.as_str() == name))
        };
        match verdict {
            Verdict::Modern { supported } if supported.contains(&ours) => {
                (format!("modern: it speaks {ours}"), Next::Modern)
            }
            Verdict::Modern { supported } | Verdict::Refused { supported }
                if !supported.contains(&ours)
                    && self.policy.rule == EraRule::Lenient
                    && offers_older(supported) =>
            {
                (format!("it offers only {}: an older handshake", supported.join(", ")), Next::Initialize)
            }
            Verdict::Refused { supported } if supported.contains(&ours) && !is_retry => {
                (format!("modern: it refuses and offers {ours}; asked once more"), Next::Again)
            }
            Verdict::Refused { supported } if supported.contains(&ours) => {
                (format!("modern, but it refuses {ours}, which it offers"), Next::Fail)
            }
            Verdict::Modern { supported } | Verdict::Refused { supported } => {
                let offers = if supported.is_empty() { "nothing".to_owned() } else { supported.join(", ") };
                (format!("modern, and no common revision: it offers {offers}; never initialize"), Next::Fail)
            }
            Verdict::ModernError(code) => {
                (format!("modern: only a modern server answers with {code}"), Next::Modern)
            }
            Verdict::Outage(why) => (format!("no evidence of an era: {why}"), Next::Fail),
            Verdict::Ambiguous(why) => match self.policy.rule {
                EraRule::Allowed => {
                    (format!("ambiguous: {why}; this server may be old, so one initialize"), Next::Initialize)
                }
                EraRule::Lenient => (format!("ambiguous: {why}; taken for an old server"), Next::Initialize),
                _ => (format!("ambiguous: {why}; fails closed, no initialize"), Next::Fail),
            },
        }
    }

    /// The older handshake; over HTTP, first as a POST and then as HTTP+SSE.
    async fn initialize(&mut self) -> Result<Option<Settled>, PeerError> {
        let newest = self.policy.revisions.iter().copied().max().unwrap_or(Era::V2025_11_25);
        if let Some(settled) = self.open(newest).await? {
            return Ok(Some(settled));
        }
        let is_refused = self.report.status.is_some_and(|status| matches!(status, 400 | 404 | 405));
        let (Link::Http(link), true) = (&self.client.link, is_refused) else { return Ok(None) };
        if !self.policy.revisions.contains(&Era::V2024_11_05) {
            return Ok(None);
        }
        self.client.desk.set_speech(Speech::opening(Era::V2024_11_05));
        let opened = link.open_event_stream(self.policy.initialize_limit).await;
        let (came, conclusion) = match &opened {
            Ok(()) => ("an endpoint event".to_owned(), "HTTP+SSE of 2024-11-05".to_owned()),
            Err(why) => (why.clone(), "no server of any known era; the era stays unknown".to_owned()),
        };
        self.report.steps.push(EraStep { sent: "GET for an endpoint event".to_owned(), came, conclusion });
        if opened.is_err() {
            self.client.desk.set_speech(Speech::modern());
            return Ok(None);
        }
        self.open(Era::V2024_11_05).await
    }

    /// One `initialize`, and `notifications/initialized` when its answer is to be believed.
    async fn open(&mut self, revision: Era) -> Result<Option<Settled>, PeerError> {
        let options = self.limited(self.policy.initialize_limit);
        self.client.desk.set_speech(Speech::opening(revision));
        let sent = format!("{} {}", methods::INITIALIZE, revision.as_str());
        let write = |id| Outgoing::initialize(id, revision, &options);
        let report = match self.client.send(write, &options, |_| {}).await {
            Ok(report) => report,
            Err(error) => {
                self.client.forget_era();
                return Err(error);
            }
        };
        let accepted = opening::accept(&report.outcome, &self.policy.revisions);
        let settled = match (&accepted, &report.outcome) {
            (Ok(era), Outcome::Complete(result)) => {
                Some(Settled { speech: Speech::of(*era), introduction: Some(result.clone()) })
            }
            _ => None,
        };
        let conclusion = match accepted {
            Ok(era) => format!("older: it has opened a session of {}", era.as_str()),
            Err(why) => format!("not accepted: {why}; the era stays unknown"),
        };
        self.note(sent, report, conclusion);
        match &settled {
            None => self.client.forget_era(),
            Some(settled) => {
                self.client.desk.set_speech(settled.speech.clone());
                self.client.notify(methods::INITIALIZED).await?;
                self.client.hear_session();
            }
        }
        Ok(settled)
    }
}

/// What is done after `server/discover`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Modern,
    Again,
    Initialize,
    Fail,
}

/// How a question ended, in a few words.
fn words(outcome: &Outcome, status: Option<u16>) -> String {
    let status = status.filter(|status| *status != 200).map(|status| format!("status {status}, "));
    let what = match outcome {
        Outcome::Complete(_) => "a result".to_owned(),
        Outcome::InputRequired(_) => "a result that asks for input".to_owned(),
        Outcome::Task(_) | Outcome::TaskCancelled => "a task".to_owned(),
        Outcome::Error { code, message, .. } => format!("error {code}: {message}"),
        Outcome::Refused { .. } => "no MCP answer".to_owned(),
        Outcome::GivenUp(reason) => format!("nothing ({})", reason.as_str()),
        Outcome::Lost(why) => why.clone(),
        Outcome::Invalid(why) => format!("no valid answer: {why}"),
    };
    format!("{}{what}", status.unwrap_or_default())
}

#[cfg(test)]
mod tests;
