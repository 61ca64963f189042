//! Where the switches of the client act: on a request before it leaves, on its head over HTTP, and
//! on what the client does when a call has ended.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Request};
use serde_json::Value;

use super::era::{EraPolicy, EraRule};
use super::message::Outgoing;
use super::{Client, Outcome, Params, Report, raw};
use crate::machine::reconnect::Read;
use crate::peer::faults::{Fault, Faults};
use crate::spec::{headers, methods};
use crate::time::Ms;
use crate::wire::jsonrpc::Id;

/// The token that all calls share.
const SHARED: &str = "progress-of-all";

/// The member of a tool's arguments that holds its idempotency key, by the contract of the
/// reference server.
const KEY: &str = "idempotency_key";

/// A version that nobody speaks, and a name that nobody has.
const OTHER_VERSION: &str = "2025-11-25";
const OTHER_NAME: &str = "another-one";

/// What the names of header fields that mirror arguments begin with, in small letters.
const PARAM_PREFIX: &str = "mcp-param-";

/// A maximum that no call reaches: a year.
const NEVER: Ms = Ms(31_536_000_000);

/// How often a client without patience asks again.
const IMPATIENT: u32 = 24;

/// Between two attempts of a client without patience.
pub(super) const PAUSE: Ms = Ms(50);

/// How long a slow reader rests; longer than anybody wants to wait for it.
pub(super) const REST: Ms = Ms(1500);

/// What is wrong with a client, and what that has to be remembered for.
#[derive(Debug, Default)]
pub(super) struct Wrongs {
    faults: OnceLock<Arc<Faults>>,
    /// The first key that was used.
    key: Mutex<Option<Value>>,
}

impl Wrongs {
    pub(super) fn set(&self, faults: Arc<Faults>) {
        // Once: a client is made with its faults.
        let _ = self.faults.set(faults);
    }

    pub(super) fn is_on(&self, fault: Fault) -> bool {
        self.faults.get().is_some_and(|faults| faults.is_on(fault))
    }

    /// The maximum of a call.
    pub(super) fn maximum(&self, max: Ms) -> Ms {
        if self.is_on(Fault::NoMaximum) { NEVER } else { max }
    }

    /// The wait before a subscription is opened again.
    pub(super) fn wait(&self, wait: Ms) -> Ms {
        if self.is_on(Fault::NoBackoff) { PAUSE } else { wait }
    }

    /// What is read after a subscription was opened again.
    pub(super) fn due(&self, reads: Vec<Read>) -> Vec<Read> {
        if self.is_on(Fault::CarelessReconnect) { Vec::new() } else { reads }
    }

    /// How an era is found out.
    pub(super) fn policy(&self, policy: &EraPolicy) -> EraPolicy {
        let is_strict = policy.rule == EraRule::Strict;
        let rule =
            if is_strict && self.is_on(Fault::FallsBackAnywhere) { EraRule::Lenient } else { policy.rule };
        EraPolicy { rule, ..policy.clone() }
    }

    /// A request that is about to leave.
    pub(super) fn spoil(&self, outgoing: &mut Outgoing) {
        if !self.is_on(Fault::SharedToken) {
            return;
        }
        let Some(token) = outgoing.token.replace(Id::Str(SHARED.into())) else { return };
        let text = String::from_utf8_lossy(&outgoing.body);
        outgoing.body = text.replacen(&token.to_string(), &Id::Str(SHARED.into()).to_string(), 1).into();
    }

    /// The head of a request over HTTP.
    pub(super) fn spoil_head(&self, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
        let fields = request.headers_mut();
        let removed = [
            (Fault::NoVersionHeader, headers::PROTOCOL_VERSION),
            (Fault::NoMethodHeader, headers::METHOD),
            (Fault::NoNameHeader, headers::NAME),
        ];
        for (_, name) in removed.into_iter().filter(|(fault, _)| self.is_on(*fault)) {
            fields.remove(name);
        }
        let changed = [
            (Fault::OtherVersionHeader, headers::PROTOCOL_VERSION, OTHER_VERSION),
            (Fault::OtherNameHeader, headers::NAME, OTHER_NAME),
        ];
        for (_, name, value) in changed.into_iter().filter(|(fault, ..)| self.is_on(*fault)) {
            if fields.contains_key(name) {
                put(fields, name, value);
            }
        }
        if self.is_on(Fault::OtherParamHeader) {
            let is_mirror = |name: &&HeaderName| name.as_str().starts_with(PARAM_PREFIX);
            let mirrors: Vec<HeaderName> = fields.keys().filter(is_mirror).cloned().collect();
            for name in mirrors {
                fields.insert(name, HeaderValue::from_static(OTHER_NAME));
            }
        }
        if self.is_on(Fault::Resumes) {
            put(fields, headers::LAST_EVENT_ID, "event-1");
        }
        request
    }

    /// The parameters of a call: without its key, or with the first one that this client has used.
    pub(super) fn with_other_key(&self, method: &str, params: Params) -> Params {
        if method != methods::TOOLS_CALL {
            return params;
        }
        if self.is_on(Fault::RetriesWithoutKey) {
            return edit_arguments(params, |arguments| {
                if let Some(members) = arguments.as_object_mut() {
                    members.remove(KEY);
                }
            });
        }
        if !self.is_on(Fault::KeyForTwo) {
            return params;
        }
        let mut first = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        edit_arguments(params, |arguments| {
            if let Some(key) = arguments.get_mut(KEY) {
                *key = first.get_or_insert_with(|| key.clone()).clone();
            }
        })
    }

    /// What to ask for again by itself after `nth` attempts (from 1), where a right client would
    /// leave it, or wait.
    pub(super) fn again(&self, method: &str, params: &Params, report: &Report, nth: u32) -> Option<Params> {
        let is_lost = matches!(report.outcome, Outcome::Lost(_) | Outcome::GivenUp(_));
        let is_call = method == methods::TOOLS_CALL && is_lost && nth == 1;
        if is_call && (self.is_on(Fault::RetriesWithoutKey) || self.is_on(Fault::RetriesUnsafe)) {
            return Some(params.clone());
        }
        let is_refused = !matches!(report.outcome, Outcome::Complete(_));
        let asks_on = method == methods::LISTEN && is_refused && self.is_on(Fault::NoBackoff);
        (asks_on && nth < IMPATIENT).then(|| params.clone())
    }
}

impl Client {
    /// What this client does wrong.
    pub(super) fn wrongs(&self) -> &Wrongs {
        &self.desk.wrongs
    }

    /// Has the client do these things wrong, on purpose. Only the first set counts.
    #[must_use]
    pub fn with_faults(self, faults: Arc<Faults>) -> Client {
        self.desk.wrongs.set(faults);
        self
    }
}

fn put(fields: &mut HeaderMap, name: &str, value: &'static str) {
    if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
        fields.insert(name, HeaderValue::from_static(value));
    }
}

fn arguments(params: &Params) -> Option<Value> {
    params.get("arguments").and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// The same parameters with other arguments.
fn edit_arguments(mut params: Params, edit: impl FnOnce(&mut Value)) -> Params {
    if let Some(mut arguments) = arguments(&params) {
        edit(&mut arguments);
        params.insert("arguments".to_owned(), raw(&arguments));
    }
    params
}
