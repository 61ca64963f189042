//! What the tap does to an exchange beside passing it: the one place that is asked about each
//! request head, each answer head and each body that may have to change.
//!
//! Without a reason to change anything every question is answered with `Pass`, and the paths move
//! the bytes they read.

use std::net::SocketAddr;

use bytes::Bytes;

use super::HttpOptions;
use super::answer::OwnAnswer;
use super::guard::Guard;
use super::heads::edit_field;
use super::origin::{self, Rewrite};
use crate::event::tape::Tape;
use crate::event::{Dir, What};
use crate::wire::http1::{Head, Start};

/// Longest body or event that is held back to change it; a longer one passes as it is.
pub(super) const HOLD_LIMIT_BYTES: usize = 256 << 10;

/// Where OAuth protected-resource metadata is found. // RFC 9728 §3
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// What the tap may have to change in the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wish {
    /// Nothing.
    #[default]
    Nothing,
    /// A GET: the URL of an `endpoint` event, if it opens an HTTP+SSE session.
    Endpoint,
    /// The `resource` of protected-resource metadata.
    Metadata,
}

/// What becomes of a request.
#[derive(Debug)]
pub(super) enum Upward {
    /// It passes as it is.
    Pass,
    /// Its head passes in this form.
    Head(Bytes),
    /// It does not pass; the tap answers.
    Refuse(OwnAnswer),
}

/// What becomes of the body of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Downward {
    /// It passes as it is.
    Pass,
    /// Its first event is held until it is whole.
    FirstEvent,
    /// It is held until it is whole.
    Whole,
}

/// The rules of one tap.
#[derive(Debug)]
pub(super) struct Policy {
    /// There when `Host` must become the server's, and so the tap must judge it.
    guard: Option<Guard>,
    server_authority: String,
    server_origin: String,
    /// The tap's own origin, for a client that named none.
    listen_origin: String,
    rewrites_origin: bool,
}

impl Policy {
    pub(super) fn new(options: &HttpOptions, listen: SocketAddr) -> Policy {
        let upstream = &options.upstream;
        // A server on this machine gets Host and Origin as the client sent them, and judges them
        // itself as it would without us.
        let is_judged_here = upstream.is_tls() || !upstream.is_loopback();
        Policy {
            guard: is_judged_here.then(|| Guard::new(listen, options.allowed_hosts.clone())),
            server_authority: upstream.authority(),
            server_origin: upstream.origin(),
            listen_origin: format!("http://{listen}"),
            rewrites_origin: options.rewrites_origin,
        }
    }

    /// The server's origin.
    pub(super) fn server_origin(&self) -> &str {
        &self.server_origin
    }

    /// What `Host` names for the server.
    pub(super) fn server_authority(&self) -> &str {
        &self.server_authority
    }

    /// Whether request heads may change, so that they must be whole before they are passed on.
    pub(super) fn edits_requests(&self) -> bool {
        self.guard.is_some()
    }

    /// The same for heads of answers.
    pub(super) fn edits_answer_heads(&self) -> bool {
        self.rewrites_origin
    }

    /// Says in the recording, once for a tap, what it changes in every request.
    pub(super) fn announce(&self, tape: &Tape) {
        if self.guard.is_some() {
            let what = What::Inject {
                what: "rewrite".to_owned(),
                target: "Host and Origin of every request".to_owned(),
                by: "midwire".to_owned(),
                cause: Some(format!("the server is addressed as {}", self.server_authority)),
                sent: None,
            };
            tape.push_http(Dir::Tap, None, None, what);
        }
    }

    /// What becomes of this request.
    pub(super) fn request(&self, head: &Head) -> Upward {
        let Some(guard) = &self.guard else { return Upward::Pass };
        if let Err(answer) = guard.judge(head.all("host"), head.all("origin")) {
            return Upward::Refuse(answer);
        }
        let raw = edit_field(&head.raw, "host", |_| Some(self.server_authority.clone()));
        Upward::Head(edit_field(&raw, "origin", |_| Some(self.server_origin.clone())))
    }

    /// What this request lets the tap look for in its answer.
    pub(super) fn wish(&self, head: &Head) -> Wish {
        let Start::Request { method, target } = &head.start else { return Wish::Nothing };
        match method.as_str() {
            "GET" if self.rewrites_origin && target.starts_with(METADATA_PATH) => Wish::Metadata,
            "GET" => Wish::Endpoint,
            _ => Wish::Nothing,
        }
    }

    /// The origin under which the client knows the tap.
    pub(super) fn own_origin(&self, head: &Head) -> String {
        head.get("host").map_or_else(|| self.listen_origin.clone(), |host| format!("http://{host}"))
    }

    /// What becomes of the body after this head.
    pub(super) fn answer(wish: Wish, head: &Head) -> Downward {
        let is_plain = head.get("content-encoding").is_none_or(|v| v.eq_ignore_ascii_case("identity"));
        if head.start != (Start::Answer { status: 200 }) || !is_plain {
            return Downward::Pass;
        }
        match wish {
            // With a stated length nothing could be changed.
            Wish::Endpoint
                if is_event_stream(head.get("content-type")) && head.get("content-length").is_none() =>
            {
                Downward::FirstEvent
            }
            Wish::Metadata => Downward::Whole,
            _ => Downward::Pass,
        }
    }

    /// The head of an answer with its challenge under the tap's origin, if it has one.
    pub(super) fn answer_head(&self, head: &Head, own_origin: &str) -> Option<(Bytes, Rewrite)> {
        let mut rewrite = None;
        head.get("www-authenticate").filter(|_| self.rewrites_origin)?;
        let raw = edit_field(&head.raw, "www-authenticate", |value| {
            match origin::rewrite_challenge(value, &self.server_origin, own_origin) {
                Some((new, change)) => {
                    rewrite = Some(change);
                    Some(new)
                }
                None => Some(value.to_owned()),
            }
        });
        rewrite.map(|rewrite| (raw, rewrite))
    }
}

/// Whether an answer with this `Content-Type` is a stream of server-sent events.
pub(super) fn is_event_stream(content_type: Option<&str>) -> bool {
    content_type.is_some_and(|value| {
        value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// The event that tells of a change of one URL.
pub(super) fn rewrite_event(target: &str, rewrite: &Rewrite) -> What {
    What::Inject {
        what: "rewrite".to_owned(),
        target: target.to_owned(),
        by: "midwire".to_owned(),
        cause: Some(format!("{} became {}", rewrite.from, rewrite.to)),
        sent: None,
    }
}
