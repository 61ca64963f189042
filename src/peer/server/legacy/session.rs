//! A session of the older revisions: what `initialize` agreed on, and what is under way in it.
//!
//! It knows no transport. Messages of the client come in here, and what the server says goes out
//! of the sinks that come with them.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::negotiation::Negotiated;
use crate::peer::server::SharedCore;
use crate::peer::server::caller::Caller;
use crate::peer::server::calls::Calls;
use crate::peer::server::core::Outgoing;
use crate::peer::server::hub::{Filter, Hub, Listener};
use crate::peer::server::message::{self, Message, Notification, Refusal, Request, Response};
use crate::peer::server::outlet::Outlet;
use crate::peer::server::questions::Questions;
use crate::peer::server::resources;
use crate::spec::era::Era;
use crate::spec::logging::Level;
use crate::spec::transport::Transport;
use crate::spec::{codes, methods};
use crate::wire::jsonrpc::Id;

/// Log messages from here on are told while the client has not set a level. ours: the revisions
/// leave it to the server.
const FIRST_LEVEL: Level = Level::Info;

/// Most URIs that one session may watch. ours.
const WATCHED_MOST: usize = 1000;

/// The handler of a request.
pub(in crate::peer::server) type Handler = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What becomes of a request.
pub(in crate::peer::server) enum Taken {
    /// It is answered already.
    Answered(Bytes),
    /// Its handler is to be run.
    Runs(Handler),
}

/// The session.
#[derive(Debug)]
pub(in crate::peer::server) struct Session {
    /// What the client calls it by, over HTTP.
    pub(super) name: Option<String>,
    pub(super) agreed: Negotiated,
    /// Requests of the client without an answer.
    pub(super) calls: Calls,
    /// Requests of the server without an answer; `None`: the client cannot be asked.
    pub(super) questions: Option<Arc<Questions>>,
    /// Changes that the client is told; `None`: it cannot be told any.
    listener: Option<Listener>,
    state: Mutex<State>,
    ended: CancellationToken,
}

#[derive(Debug)]
struct State {
    level: Level,
    /// `notifications/initialized` came.
    is_ready: bool,
}

impl Session {
    pub(super) fn new(name: Option<String>, agreed: Negotiated, calls: Calls, hub: &Arc<Hub>) -> Session {
        let all = Filter { tools: true, prompts: true, resources: true, ..Filter::default() };
        Session {
            questions: Some(Arc::default()),
            listener: Some(hub.listen(all)),
            ..Session::bare(name, agreed, calls)
        }
    }

    fn bare(name: Option<String>, agreed: Negotiated, calls: Calls) -> Session {
        let state = State { level: FIRST_LEVEL, is_ready: false };
        Session {
            name,
            agreed,
            calls,
            questions: None,
            listener: None,
            state: Mutex::new(state),
            ended: CancellationToken::new(),
        }
    }

    /// A session for one request of a client that made none: it cannot be asked or told anything
    /// beside its answer.
    pub(super) fn passing(agreed: Negotiated, calls: Calls) -> Session {
        Session::bare(None, agreed, calls)
    }

    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request of the client, which came from `peer`. What its handler says goes into
    /// `sink`.
    pub(in crate::peer::server) fn request(
        &self,
        core: &SharedCore,
        request: Request,
        peer: Option<SocketAddr>,
        sink: Outlet,
    ) -> Result<Taken, Refusal> {
        let era = self.agreed.era;
        if methods::Method::find(&request.method, era).is_none() {
            let text = format!("revision {} has no method {}", era.as_str(), request.method);
            return Err(super::shape::refusal(
                &request.method,
                Refusal::new(Some(&request.id), codes::METHOD_NOT_FOUND, text),
            ));
        }
        let token = request.progress_token().map_err(|refusal| super::shape::refusal("", refusal))?;
        if let Some(objection) = self.calls.objection(&request.id, token.as_ref()) {
            let refusal = Refusal::new(Some(&request.id), codes::INVALID_REQUEST, objection);
            return Err(super::shape::refusal("", refusal));
        }
        if let Some(answer) = self.at_once(core, &request) {
            let answer = answer.map_err(|refusal| super::shape::refusal(&request.method, refusal))?;
            return Ok(Taken::Answered(message::result(&request.id, answer, era)));
        }
        let method = request.method.clone();
        let started = core.start(request, self.caller(token, peer), sink);
        let (live, handler) = started.map_err(|refusal| super::shape::refusal(&method, refusal))?;
        self.calls.insert(&live);
        Ok(Taken::Runs(Box::pin(handler)))
    }

    /// Takes what came together: answers that are there already, and handlers that are to run, which
    /// say into `sink`. `most`: how many calls may be open.
    pub(super) fn take(
        &self,
        core: &SharedCore,
        messages: Vec<Result<Message, Refusal>>,
        peer: Option<SocketAddr>,
        sink: Outlet,
        most: usize,
    ) -> (Vec<Bytes>, Vec<Handler>) {
        let (mut answers, mut handlers) = (Vec::new(), Vec::new());
        for message in messages {
            let taken = match message {
                Ok(Message::Notification(notification)) => {
                    self.notification(&notification);
                    continue;
                }
                Ok(Message::Response(response)) => {
                    self.response(response);
                    continue;
                }
                Ok(Message::Request(request)) if self.calls.len() >= most => {
                    let text = "too many calls are open in this session";
                    let refusal = Refusal::new(Some(&request.id), codes::INTERNAL_ERROR, text);
                    Err(Refusal { status: 503, ..refusal })
                }
                Ok(Message::Request(request)) => self.request(core, request, peer, sink.clone()),
                Err(refusal) => Err(refusal),
            };
            match taken {
                Ok(Taken::Answered(body)) => answers.push(body),
                Ok(Taken::Runs(handler)) => handlers.push(handler),
                Err(refusal) => answers.push(refusal.to_bytes()),
            }
        }
        // Only the handlers say something from here on.
        drop(sink);
        (answers, handlers)
    }

    /// The answer to what is a matter of the session alone; `None`: a handler answers.
    fn at_once(&self, core: &SharedCore, request: &Request) -> Option<Result<Map<String, Value>, Refusal>> {
        let params = |text: &str| Refusal::params(&request.id, text);
        let uri = || request.string_at(&["uri"]).ok_or_else(|| params("uri is missing"));
        let want = |change: &dyn Fn(&mut Filter) -> Result<(), Refusal>| {
            self.listener.as_ref().map_or(Ok(()), |listener| listener.want(change))
        };
        let done = match request.method.as_str() {
            methods::PING => Ok(()),
            methods::INITIALIZE => Err(Refusal::new(
                Some(&request.id),
                codes::INVALID_REQUEST,
                "the session is initialized already",
            )),
            methods::SET_LEVEL => request
                .string_at(&["level"])
                .and_then(|name| Level::from_name(&name))
                .map(|level| self.lock().level = level)
                .ok_or_else(|| params("level is none of the eight")),
            methods::SUBSCRIBE => uri().and_then(|uri| {
                if !resources::is_known(core, &uri) {
                    let text = format!("there is no resource {uri}");
                    return Err(Refusal::new(Some(&request.id), codes::RESOURCE_NOT_FOUND, text));
                }
                want(&|filter| {
                    if filter.uris.len() >= WATCHED_MOST {
                        return Err(params("this session watches too many resources"));
                    }
                    if filter.uris.iter().all(|one| *one != *uri) {
                        filter.uris.push(uri.clone().into_owned());
                    }
                    Ok(())
                })
            }),
            methods::UNSUBSCRIBE => uri().and_then(|uri| {
                want(&|filter| {
                    filter.uris.retain(|one| *one != *uri);
                    Ok(())
                })
            }),
            _ => return None,
        };
        Some(done.map(|()| Map::new()))
    }

    fn caller(&self, token: Option<Id>, peer: Option<SocketAddr>) -> Caller {
        Caller {
            era: self.agreed.era,
            version: self.agreed.era.as_str().to_owned(),
            capabilities: self.agreed.capabilities.clone(),
            client_info: self.agreed.client_info.clone(),
            log_level: Some(self.lock().level),
            token,
            principal: self.name.clone(),
            questions: self.questions.clone(),
            comes_back: self.agreed.era >= Era::V2025_11_25 && self.name.is_some(),
            transport: if self.name.is_some() { Transport::Http } else { Transport::Stdio },
            peer,
        }
    }

    /// Takes a notification of the client. Those that are malformed, late or unknown are ignored.
    pub(in crate::peer::server) fn notification(&self, notification: &Notification) {
        match notification.method.as_str() {
            methods::INITIALIZED => self.lock().is_ready = true,
            methods::CANCELLED => self.calls.cancel(notification),
            _ => {}
        }
    }

    /// Takes an answer of the client to a question of the server. One that nobody waits for is
    /// ignored.
    pub(in crate::peer::server) fn response(&self, response: Response) {
        if let Some(questions) = &self.questions {
            questions.answer(&response.id, response.said);
        }
    }

    /// The next change that the client is told; `None`: the session ends, or could not be told
    /// everything any more. Changes before the client has said that it is ready are not told.
    pub(super) async fn next_change(&self, core: &SharedCore) -> Option<Outgoing> {
        let listener = self.listener.as_ref()?;
        loop {
            let change = tokio::select! {
                biased;
                () = self.ended.cancelled() => return None,
                () = core.ending.cancelled() => return None,
                change = listener.next() => change?,
            };
            if self.lock().is_ready {
                return Some(Outgoing::new(None, change.notification(None), None));
            }
        }
    }

    /// Ends it: what is under way in it is cancelled.
    pub(super) fn end(&self, why: &str) {
        self.ended.cancel();
        for live in self.calls.take_all() {
            live.cancel(Some(why));
        }
    }

    /// Fires when it has ended.
    #[cfg(test)]
    pub(super) fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}
