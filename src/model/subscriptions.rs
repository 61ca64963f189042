//! Subscriptions: what each listen asked for and was granted, what it brought, and what the client
//! did after it was lost.
//!
//! How a subscription ended stands in the state of its call: answered (closed by its result, or by
//! a cancel of the server), cancelled or left by the client, lost.

mod filter;

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::call::CallIdx;
use super::content::Content;
use super::fold::At;
use super::message::Said;
use super::pairing::other_type;
use super::row::RowIdx;
use super::scope::ScopeIdx;
use super::seen::Sight;
use super::{CallState, Model, Name, ServerView};
use crate::event::{Dir, Transport};
use crate::spec::methods;
use crate::time::Mono;
use crate::wire::jsonrpc::Id;
pub use filter::{Filter, Kinds};

/// Lost subscriptions that are watched for their client's return at once. ours.
const LOST_LIMIT: usize = 64;

/// How many notifications of each kind a subscription has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// `notifications/tools/list_changed`
    pub tools: u32,
    /// `notifications/prompts/list_changed`
    pub prompts: u32,
    /// `notifications/resources/list_changed`
    pub resources: u32,
    /// `notifications/resources/updated`
    pub updates: u32,
    /// `notifications/tasks`
    pub tasks: u32,
}

impl Delivered {
    fn count(&mut self, method: &str) {
        let counter = match method {
            "notifications/tools/list_changed" => &mut self.tools,
            "notifications/prompts/list_changed" => &mut self.prompts,
            "notifications/resources/list_changed" => &mut self.resources,
            "notifications/resources/updated" => &mut self.updates,
            "notifications/tasks" => &mut self.tasks,
            _ => return,
        };
        *counter = counter.saturating_add(1);
    }
}

/// One `subscriptions/listen` and what became of it.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// Its listen request; its state tells how the subscription ended.
    pub call: CallIdx,
    /// What the request asked for.
    pub asked: Filter,
    /// What the acknowledgement granted; `None`: there was none yet.
    pub granted: Option<Filter>,
    /// When it was acknowledged first.
    pub acknowledged: Option<Mono>,
    /// How often it was acknowledged.
    pub acknowledgements: u32,
    /// Notifications that belong to it, acknowledgements included. Progress and logs never do.
    pub messages: u32,
    /// What it brought.
    pub delivered: Delivered,
    /// When it brought something last, acknowledgements left out.
    pub brought: Option<Mono>,
    /// It was lost: the next listen of the same client.
    pub next: Option<CallIdx>,
    /// It was lost: what the same client has read anew since.
    pub reread: Kinds,
    /// It was lost: when the same client sent its latest request since.
    pub heard: Option<Mono>,
    /// Equal for requests that come from the same client, as far as can be told.
    client: u64,
}

/// Every subscription, and how they are found.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// By rising call.
    all: Vec<Subscription>,
    /// The latest one of each id, by the hash of scope and id.
    by_id: HashMap<u64, CallIdx>,
    /// Lost ones whose client has not yet come back and read everything anew, oldest first.
    lost: Vec<CallIdx>,
}

impl Subscriptions {
    fn find(&self, call: CallIdx) -> Option<&Subscription> {
        self.all.get(self.position(call)?)
    }

    fn find_mut(&mut self, call: CallIdx) -> Option<&mut Subscription> {
        let at = self.position(call)?;
        self.all.get_mut(at)
    }

    fn position(&self, call: CallIdx) -> Option<usize> {
        self.all.binary_search_by_key(&call, |subscription| subscription.call).ok()
    }
}

impl Model {
    /// Every subscription, in the order of their listen requests.
    #[must_use]
    pub fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions.all
    }

    /// The subscription of a listen request.
    #[must_use]
    pub fn subscription(&self, call: CallIdx) -> Option<&Subscription> {
        self.subscriptions.find(call)
    }

    /// The latest listen of an id.
    pub(super) fn listen_of_id(&self, scope: ScopeIdx, id: &Id) -> Option<CallIdx> {
        if self.subscriptions.all.is_empty() {
            return None;
        }
        let found = self.subscriptions.by_id.get(&self.hasher.hash_one((scope, id))).copied();
        found.filter(|idx| self.call(*idx).is_some_and(|call| call.scope == scope && call.id == *id))
    }

    /// A listen request begins a subscription.
    pub(super) fn listen(&mut self, at: At, said: &Said<'_>, idx: CallIdx, content: Option<&Content>) {
        let Some(id) = &said.id else { return };
        let asked = match content {
            Some(content) => Filter::read(content.value().at(&["params", "notifications"]), &mut self.names),
            None => Filter { is_cut: true, ..Filter::default() },
        };
        let client = self.client_of(at, said);
        let key = self.hasher.hash_one((at.scope, id));
        self.subscriptions.by_id.insert(key, idx);
        self.subscriptions.all.push(Subscription {
            call: idx,
            asked,
            granted: None,
            acknowledged: None,
            acknowledgements: 0,
            messages: 0,
            delivered: Delivered::default(),
            brought: None,
            next: None,
            reread: Kinds::default(),
            heard: None,
            client,
        });
    }

    /// A request may be what a client does after the loss of a subscription.
    pub(super) fn note_return(&mut self, at: At, said: &Said<'_>, idx: CallIdx) {
        if self.subscriptions.lost.is_empty() {
            return;
        }
        let method = said.method.as_deref().unwrap_or_default();
        let reread = Kinds::read_by(method);
        let is_listen = method == methods::LISTEN;
        let client = self.client_of(at, said);
        let mut lost = std::mem::take(&mut self.subscriptions.lost);
        lost.retain(|call| {
            let Some(subscription) = self.subscriptions.find_mut(*call) else { return false };
            if subscription.client != client {
                return true;
            }
            subscription.heard = Some(at.first);
            if is_listen {
                subscription.next.get_or_insert(idx);
            }
            subscription.reread = subscription.reread.and(reread);
            subscription.next.is_none() || !subscription.unread().is_none()
        });
        self.subscriptions.lost = lost;
    }

    /// Equal for requests of one client: the one of a pipe; on HTTP those that sign and name
    /// themselves alike (docs/semantics.md, evidence).
    fn client_of(&self, at: At, said: &Said<'_>) -> u64 {
        if at.transport == Transport::Stdio {
            return 0;
        }
        let headers = at.stream.and_then(|stream| self.exchange_of(stream)).map(super::Exchange::headers);
        self.hasher.hash_one((headers.and_then(|headers| headers.get("authorization")), &said.peer))
    }

    /// A listen ended without an answer and not by its client.
    pub(super) fn note_loss(&mut self, idx: CallIdx) {
        let Some(scope) = self.call(idx).and_then(|call| self.scope(call.scope)) else { return };
        // A client that closes the pipe does not mean to come back.
        let is_wanted = scope.process.stdin_closed.is_some() || scope.process.signalled.is_some();
        let is_acknowledged = self.subscription(idx).is_some_and(|listen| listen.granted.is_some());
        if is_wanted || !is_acknowledged {
            return;
        }
        let lost = &mut self.subscriptions.lost;
        if lost.len() >= LOST_LIMIT {
            lost.remove(0);
        }
        lost.push(idx);
    }

    /// The listen that a notification of the server belongs to: on HTTP that of its stream,
    /// whatever its tag says; on stdio that of its tag.
    pub(super) fn listen_of(&self, at: At, tag: Option<&Id>) -> Option<CallIdx> {
        if at.dir != Dir::S2c {
            return None;
        }
        if at.stream.is_some() {
            return self.find_on_stream(at, |call| call.method == Name::LISTEN);
        }
        self.listen_of_id(at.scope, tag?)
    }

    /// A notification of the server, taken into its subscription.
    pub(super) fn subscription_message(
        &mut self,
        at: At,
        row: RowIdx,
        said: &Said<'_>,
        listen: Option<CallIdx>,
        content: Option<&Content>,
    ) {
        let method = said.method.as_deref().unwrap_or_default();
        if method == "notifications/message" {
            return;
        }
        let Some(idx) = listen else {
            if let Some(id) = &said.subscription
                && at.dir == Dir::S2c
                && self.listen_of_id(at.scope, id).is_none()
            {
                let meant = other_type(id).and_then(|other| self.listen_of_id(at.scope, &other));
                self.see(at, Some(row), meant, Sight::SubscriptionUnknown { id: id.clone() });
            }
            return;
        };
        let granted = (method == methods::ACKNOWLEDGED).then(|| match content {
            Some(content) => Filter::read(content.value().at(&["params", "notifications"]), &mut self.names),
            None => Filter { is_cut: true, ..Filter::default() },
        });
        let Some(subscription) = self.subscriptions.find_mut(idx) else { return };
        let nth = subscription.messages;
        subscription.messages = subscription.messages.saturating_add(1);
        subscription.delivered.count(method);
        if let Some(granted) = granted {
            subscription.acknowledgements = subscription.acknowledgements.saturating_add(1);
            subscription.acknowledged.get_or_insert(at.now);
            subscription.granted.get_or_insert(granted);
        } else {
            subscription.brought = Some(at.now);
        }
        let Some(call) = self.call(idx) else { return };
        let sight = match call.state {
            CallState::AnsweredOk if call.server == ServerView::Completed => Sight::SubscriptionAfterEnd,
            CallState::CancelledByClient => Sight::SubscriptionAfterCancel(self.lateness(at, idx)),
            _ => Sight::Subscription { nth },
        };
        self.see(at, Some(row), Some(idx), sight);
    }
}

impl Subscription {
    /// What it was granted and the client has not read anew since it was lost.
    #[must_use]
    pub fn unread(&self) -> Kinds {
        self.granted.as_ref().map(|granted| granted.kinds).unwrap_or_default().without(self.reread)
    }
}

#[cfg(test)]
mod tests;
