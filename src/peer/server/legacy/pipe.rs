//! A session that has one channel for all of it: stdio, and HTTP+SSE of 2024-11-05.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::negotiation::Negotiated;
use super::session::{Session, Taken};
use super::{batch, is_modern, shape};
use crate::peer::server::calls::Calls;
use crate::peer::server::core::Outgoing;
use crate::peer::server::message::{self, Incoming, Message, Notification, Refusal, Request, Response};
use crate::peer::server::outlet::{Outlet, outlet};
use crate::peer::server::{ServerEra, SharedCore};
use crate::spec::era::Era;
use crate::spec::{codes, methods};

/// One client on one channel.
#[derive(Debug)]
pub(in crate::peer::server) struct Pipe {
    core: SharedCore,
    calls: Calls,
    to_client: Outlet,
    /// What `initialize` has agreed on, once it has.
    session: OnceLock<Arc<Session>>,
}

impl Pipe {
    /// `calls`: where its requests are kept until they are answered; whoever writes what comes out
    /// of `to_client` takes them from there.
    pub(in crate::peer::server) fn new(core: SharedCore, calls: Calls, to_client: Outlet) -> Pipe {
        Pipe { core, calls, to_client, session: OnceLock::new() }
    }

    /// The message is one of the older revisions. In a server of both: whatever does not say that
    /// it is modern, once a session is agreed on (VER-11).
    pub(in crate::peer::server) fn is_for(&self, incoming: &Incoming) -> bool {
        match self.core.options.era {
            ServerEra::Modern => return false,
            ServerEra::Dual => {}
            _ => return true,
        }
        match incoming {
            Incoming::One(Message::Request(request)) => {
                let is_open = self.session.get().is_some();
                !is_modern(request) && (is_open || request.method == methods::INITIALIZE)
            }
            _ => self.session.get().is_some(),
        }
    }

    /// Takes a message of the client; `peer`: where it came from, over HTTP.
    pub(in crate::peer::server) async fn take(&self, incoming: Incoming, peer: Option<SocketAddr>) {
        match incoming {
            Incoming::One(Message::Request(request)) => self.request(request, peer).await,
            Incoming::One(Message::Notification(notification)) => self.notification(&notification),
            Incoming::One(Message::Response(response)) => self.response(response),
            Incoming::Many(messages) => self.batch(messages, peer).await,
        }
    }

    async fn request(&self, request: Request, peer: Option<SocketAddr>) {
        let answer = match self.begin(&request) {
            Begun::Answered(body) => body,
            Begun::Silent => return,
            Begun::In(session) => match session.request(&self.core, request, peer, self.to_client.clone()) {
                Ok(Taken::Answered(body)) => body,
                Ok(Taken::Runs(handler)) => {
                    self.core.handlers.spawn(handler);
                    return;
                }
                Err(refusal) => refusal.to_bytes(),
            },
        };
        self.say(answer).await;
    }

    async fn say(&self, body: Bytes) {
        // The writer is gone only when everything is ending.
        let _ = self.to_client.send(Outgoing::new(None, body, Some(200))).await;
    }

    /// The session that serves a request, or what becomes of it without one.
    fn begin(&self, request: &Request) -> Begun {
        if let Some(session) = self.session.get() {
            return Begun::In(session.clone());
        }
        let passing = || Session::passing(Negotiated::assumed(None), self.calls.clone());
        let is_known = methods::Method::find(&request.method, Era::V2025_11_25).is_some();
        match (request.method.as_str(), self.core.options.era) {
            (methods::INITIALIZE, _) => {
                let opened = Negotiated::read(request).map(|agreed| {
                    let body = message::result(&request.id, agreed.result(), agreed.era);
                    let session = Session::new(None, agreed, self.calls.clone(), &self.core.hub);
                    let session = self.session.get_or_init(|| Arc::new(session));
                    let (core, to_client) = (self.core.clone(), self.to_client.clone());
                    self.core.handlers.spawn(forward(core, session.clone(), to_client));
                    body
                });
                Begun::Answered(opened.unwrap_or_else(|refusal| refusal.to_bytes()))
            }
            (methods::PING, _) | (_, ServerEra::LenientLegacy) => Begun::In(Arc::new(passing())),
            (_, ServerEra::SilentLegacy) => Begun::Silent,
            _ => {
                let (code, text) = if is_known {
                    (codes::INVALID_REQUEST, "initialize first".to_owned())
                } else {
                    (codes::METHOD_NOT_FOUND, format!("no method {}", request.method))
                };
                let refusal = shape::refusal("", Refusal::new(Some(&request.id), code, text));
                Begun::Answered(refusal.to_bytes())
            }
        }
    }

    fn notification(&self, notification: &Notification) {
        match self.session.get() {
            Some(session) => session.notification(notification),
            None if notification.method == methods::CANCELLED => self.calls.cancel(notification),
            None => {}
        }
    }

    fn response(&self, response: Response) {
        if let Some(session) = self.session.get() {
            session.response(response);
        }
    }

    /// Several messages at once: 2025-03-26 only.
    async fn batch(&self, messages: Vec<Result<Message, Refusal>>, peer: Option<SocketAddr>) {
        let session = self.session.get().filter(|session| session.agreed.era == Era::V2025_03_26);
        let Some(session) = session else {
            let text = "batches exist in revision 2025-03-26 only";
            self.say(Refusal::new(None, codes::INVALID_REQUEST, text).to_bytes()).await;
            return;
        };
        let (sink, said) = outlet(self.core.options.buffer);
        let (answers, handlers) = session.take(&self.core, messages, peer, sink, usize::MAX);
        for handler in handlers {
            self.core.handlers.spawn(handler);
        }
        self.core.handlers.spawn(batch::gather(answers, said, self.to_client.clone(), self.calls.clone()));
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Some(session) = self.session.get() {
            session.end("the channel of the session has ended");
        }
    }
}

/// Tells the client of changes, until the session ends.
async fn forward(core: SharedCore, session: Arc<Session>, to_client: Outlet) {
    while let Some(outgoing) = session.next_change(&core).await {
        if to_client.send(outgoing).await.is_err() {
            return;
        }
    }
}

/// How a request begins.
enum Begun {
    /// Answered already.
    Answered(Bytes),
    /// Never answered.
    Silent,
    /// This session serves it.
    In(Arc<Session>),
}

#[cfg(test)]
mod tests;
