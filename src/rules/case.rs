//! What a rule looks at: one thing noticed, with its message, its call and its exchange.

use std::cell::OnceCell;

use crate::event::{Dir, Transport};
use crate::machine::policy::Policy;
use crate::model::{
    Call, CallIdx, Exchange, Message, Model, Row, RowIdx, Scope, ScopeIdx, Seen, Sight, Speaks,
};
use crate::spec::era::Era;
use crate::spec::meta;
use crate::wire::json::Value;

/// Characters of a text from the wire that stand in a sentence. ours.
const SHORT_CHARS: usize = 80;

/// One thing noticed, in its model.
pub(super) struct Case<'a> {
    pub model: &'a Model,
    /// What is agreed outside the wire.
    pub policy: &'a Policy,
    pub seen: &'a Seen,
    message: Option<&'a Message>,
    era: Option<Era>,
    parts: OnceCell<Parts<'a>>,
}

/// The parts of a message.
#[derive(Debug, Clone, Copy, Default)]
struct Parts<'a> {
    params: Option<Value<'a>>,
    result: Option<Value<'a>>,
    error: Option<Value<'a>>,
    /// `_meta` of `params`, or of `result`.
    metadata: Option<Value<'a>>,
}

impl<'a> Case<'a> {
    pub(super) fn new(model: &'a Model, policy: &'a Policy, seen: &'a Seen) -> Case<'a> {
        let message = seen.row.and_then(|row| model.messages().iter().find(|message| message.row == row));
        let of_call = || seen.call.and_then(|idx| model.call(idx)).and_then(|call| call.era);
        let of_row = || seen.row.and_then(|row| model.row(row)).and_then(|row| row.era);
        let of_exchange = || seen.stream.and_then(|stream| model.exchange_of(stream)).and_then(Exchange::era);
        let scope = model.scope(seen.scope);
        // What a session settled is what its requests are measured by, header fields included.
        let of_session = || match seen.what {
            Sight::HttpRequest | Sight::HttpHead | Sight::ExchangeEnd if seen.call.is_none() => {
                scope?.negotiated
            }
            _ => None,
        };
        // A message that names no era may be of another than its channel; the end of a process or of a
        // session is not.
        let is_one_channel = seen.transport == Transport::Stdio || seen.scope != ScopeIdx(0);
        let is_end = matches!(seen.what, Sight::Ended { .. });
        let is_of_channel = seen.row.is_none() || (message.is_none() && (is_one_channel || is_end));
        let of_channel = || is_of_channel.then(|| scope?.channel_era()).flatten();
        let era = model.forced_era().or_else(of_session).or_else(of_call).or_else(of_row);
        let era = era.or_else(of_exchange).or_else(of_channel);
        Case { model, policy, seen, message, era, parts: OnceCell::new() }
    }

    /// What was noticed.
    pub(super) fn what(&self) -> &'a Sight {
        &self.seen.what
    }

    /// The message of its row, when that was read in this event.
    pub(super) fn message(&self) -> Option<&'a Message> {
        self.message
    }

    /// The whole message as a JSON value; `None` where it was too long to be looked into.
    pub(super) fn body(&self) -> Option<Value<'a>> {
        Some(self.message?.content.as_ref()?.value())
    }

    /// The method of the message, or, for an answer, of its call; empty where there is none.
    pub(super) fn method(&self) -> &'a str {
        let own = self.message.and_then(|message| message.method);
        let name = own.or_else(|| self.call().map(|call| call.method));
        name.map_or("", |name| self.model.text(name))
    }

    /// The parts of the message, found once for all rules.
    fn parts(&self) -> Parts<'a> {
        *self.parts.get_or_init(|| {
            let mut parts = Parts::default();
            for (name, value) in self.body().into_iter().flat_map(Value::members) {
                match &*name {
                    "params" => parts.params = Some(value),
                    "result" => parts.result = Some(value),
                    "error" => parts.error = Some(value),
                    _ => {}
                }
            }
            parts.metadata = parts.params.or(parts.result).and_then(|body| body.get("_meta"));
            parts
        })
    }

    /// `params` of the message.
    pub(super) fn params(&self) -> Option<Value<'a>> {
        self.parts().params
    }

    /// `result` of the message.
    pub(super) fn result(&self) -> Option<Value<'a>> {
        self.parts().result
    }

    /// `error` of the message.
    pub(super) fn error(&self) -> Option<Value<'a>> {
        self.parts().error
    }

    /// The code of the error, where it is an integer.
    pub(super) fn code(&self) -> Option<i64> {
        self.error()?.get("code")?.integer()
    }

    /// `_meta` of the message's `params` or `result`.
    pub(super) fn metadata(&self) -> Option<Value<'a>> {
        self.parts().metadata
    }

    /// A member of `_meta` in the message's `params` or `result`.
    pub(super) fn meta(&self, name: &str) -> Option<Value<'a>> {
        self.metadata()?.get(name)
    }

    /// The request that the call was made with, as a JSON value; only while the call is open and in
    /// the event that ended it.
    pub(super) fn request(&self) -> Option<Value<'a>> {
        self.model.request_of(self.seen.call?)
    }

    /// `params` of the call's request.
    pub(super) fn request_params(&self) -> Option<Value<'a>> {
        self.request()?.get("params")
    }

    /// What the client can do: in the modern era as the call's request says (`_meta`
    /// clientCapabilities), in a legacy one as its `initialize` said. `None`: nobody knows.
    pub(super) fn client_capabilities(&self) -> Option<Value<'a>> {
        if self.is_modern() {
            return self.request_params()?.at(&["_meta", meta::CLIENT_CAPABILITIES]);
        }
        self.model.capabilities(self.seen.scope)?.client()
    }

    /// What the server says it can do in the era of the case, by its latest discover or initialize
    /// result. `None`: nobody knows.
    pub(super) fn server_capabilities(&self) -> Option<Value<'a>> {
        self.model.capabilities(self.seen.scope)?.server(self.era()?)
    }

    /// The number of the event folded last: what proves a thing that has no row of its own.
    pub(super) fn event_number(&self) -> u64 {
        self.model.rows().last().map_or(0, |row| row.n)
    }

    /// What the answers of the server have proved about its eras so far. Over HTTP the modern ones
    /// belong to no session.
    pub(super) fn speaks(&self) -> Speaks {
        let own = self.scope().map(|scope| scope.speaks).unwrap_or_default();
        let shared = self.model.scope(ScopeIdx(0)).map(|scope| scope.speaks).unwrap_or_default();
        let is_http = self.transport() == Transport::Http;
        Speaks { modern: own.modern || (is_http && shared.modern), ..own }
    }

    /// The client sent it.
    pub(super) fn is_from_client(&self) -> bool {
        self.row().is_some_and(|row| row.dir == Dir::C2s)
    }

    /// The server sent it.
    pub(super) fn is_from_server(&self) -> bool {
        self.row().is_some_and(|row| row.dir == Dir::S2c)
    }

    /// On a pipe: JSON that is no message at all, not even a bad one.
    pub(super) fn is_noise(&self) -> bool {
        let names_itself = self.body().is_some_and(|body| body.get("jsonrpc").is_some());
        self.transport() == Transport::Stdio && !names_itself
    }

    /// The HTTP exchange that it belongs to.
    pub(super) fn exchange(&self) -> Option<&'a Exchange> {
        self.model.exchange_of(self.seen.stream?)
    }

    /// The call that it belongs to.
    pub(super) fn call(&self) -> Option<&'a Call> {
        self.model.call(self.seen.call?)
    }

    /// The row that shows it.
    pub(super) fn row(&self) -> Option<&'a Row> {
        self.model.row(self.seen.row?)
    }

    /// The process or session.
    pub(super) fn scope(&self) -> Option<&'a Scope> {
        self.model.scope(self.seen.scope)
    }

    /// The era that it is judged under: of its call, else of its row, its exchange, its channel.
    pub(super) fn era(&self) -> Option<Era> {
        self.era
    }

    /// It is judged under the modern era.
    pub(super) fn is_modern(&self) -> bool {
        self.era.is_some_and(Era::is_modern)
    }

    /// How the peers are joined.
    pub(super) fn transport(&self) -> Transport {
        self.seen.transport
    }

    /// The process or session has completed a legacy handshake: both eras may be in use at once
    /// (docs/semantics.md, eras).
    pub(super) fn is_dual(&self) -> bool {
        self.scope().is_some_and(|scope| scope.negotiated.is_some())
    }

    /// Its session is of the transport of 2024-11-05, whose answers come on the stream of a GET; that
    /// is spoken under later versions as well.
    pub(super) fn is_http_sse(&self) -> bool {
        self.scope().is_some_and(|scope| scope.is_http_sse)
    }

    /// Something was injected into its call: what follows is nobody's fault.
    pub(super) fn is_injected(&self) -> bool {
        self.call().is_some_and(|call| call.is_injected)
    }

    /// Everything since the beginning was recorded.
    pub(super) fn is_full(&self) -> bool {
        self.model.overview().is_full
    }

    /// The grace window in which signals may cross, in nanoseconds (docs/semantics.md, races).
    pub(super) fn window_ns(&self) -> u64 {
        self.model.window_ns(self.seen.scope)
    }

    /// Whether two HTTP requests are known to come from one client: by their connection.
    pub(super) fn is_one_connection(&self, other: CallIdx) -> bool {
        let conn = self.call().and_then(|call| call.conn);
        conn.is_some() && conn == self.model.call(other).and_then(|call| call.conn)
    }

    /// A call in words: method, target and id.
    pub(super) fn name(&self, idx: CallIdx) -> String {
        let Some(call) = self.model.call(idx) else { return "a request".to_owned() };
        let method = self.model.text(call.method);
        match call.target {
            Some(target) => format!("{method} {} (id {})", self.model.text(target), call.id),
            None => format!("{method} (id {})", call.id),
        }
    }

    /// Its call in words.
    pub(super) fn subject(&self) -> String {
        self.seen.call.map_or_else(|| "a request".to_owned(), |idx| self.name(idx))
    }

    /// Milliseconds in words.
    pub(super) fn ms(ns: u64) -> String {
        let ms = ns / 1_000_000;
        if ms < 10_000 { format!("{ms} ms") } else { format!("{}.{} s", ms / 1000, ms % 1000 / 100) }
    }
}

/// The number of the event that completed a row.
pub(super) fn number(model: &Model, row: RowIdx) -> Option<u64> {
    model.row(row).map(|row| row.n)
}

/// Text from the wire, short enough for a sentence.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(SHORT_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// `3 lines` or `1 line`.
pub(super) fn count(times: u32, noun: &str) -> String {
    if times == 1 { format!("1 {noun}") } else { format!("{times} {noun}s") }
}
