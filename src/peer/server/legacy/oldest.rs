//! HTTP+SSE as revision 2024-11-05 has it: one stream for everything that the server says, whose
//! first event names the address at which the client's messages are taken.
//!
//! The stream is the session: when it goes, what runs in the session is cancelled.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt;
use hyper::Response as HttpResponse;

use super::pipe::Pipe;
use super::sessions::Sessions;
use crate::peer::server::SharedCore;
use crate::peer::server::calls::Calls;
use crate::peer::server::http::answer::{self, Answer};
use crate::peer::server::message;
use crate::peer::server::outlet::{Outflow, outlet};
use crate::time::Ms;

/// Where the stream is.
pub(in crate::peer::server) const STREAM_PATH: &str = "/sse";
/// Where messages are taken.
pub(in crate::peer::server) const MESSAGES_PATH: &str = "/messages";
/// The member of the query that names the session.
const SESSION: &str = "session=";
/// Most streams at a time. ours.
const LINKS_MOST: usize = 1000;

/// A path of this revision.
pub(in crate::peer::server) fn has(path: &str) -> bool {
    matches!(path, STREAM_PATH | MESSAGES_PATH)
}

/// The streams that are open, by the name of their session.
#[derive(Debug, Default)]
pub(in crate::peer::server) struct Links(Mutex<HashMap<String, Arc<Pipe>>>);

impl Links {
    /// A poisoned lock is still good: no step can stop midway.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Pipe>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open stream. Dropping it ends its session.
struct Link {
    core: SharedCore,
    name: String,
    calls: Calls,
    from: Outflow,
    quiet: Ms,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.core.links.lock().remove(&self.name);
        for live in self.calls.take_all() {
            live.cancel(Some("the stream of the session has ended"));
        }
    }
}

/// Opens a stream.
pub(in crate::peer::server) fn open(core: &SharedCore) -> HttpResponse<Answer> {
    let (name, calls) = (Sessions::name(), Calls::default());
    let (to_client, from) = outlet(core.options.buffer);
    let pipe = Pipe::new(core.clone(), calls.clone(), to_client);
    {
        let mut links = core.links.lock();
        if links.len() >= LINKS_MOST {
            return answer::plain(503, "too many streams are open");
        }
        links.insert(name.clone(), Arc::new(pipe));
    }
    let first = Bytes::from(format!("event: endpoint\ndata: {MESSAGES_PATH}?{SESSION}{name}\n\n"));
    let link = Link { core: core.clone(), name, calls, from, quiet: core.options.keep_alive };
    let rest = futures_util::stream::unfold(link, |mut link| async move {
        let data = link.next().await?;
        Some((data, link))
    });
    answer::event_stream(futures_util::stream::once(std::future::ready(first)).chain(rest))
}

impl Link {
    /// The next bytes; `None`: nobody is left who could say something.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let Ok(outgoing) = tokio::time::timeout(self.quiet.into(), self.from.recv()).await else {
                return Some(answer::COMMENT);
            };
            let outgoing = outgoing?;
            if !outgoing.may_leave() {
                continue;
            }
            if let (Some(live), Some(_)) = (&outgoing.live, outgoing.status) {
                self.calls.take(&live.id);
            }
            let mut event = b"event: message\ndata: ".to_vec();
            event.extend_from_slice(&outgoing.body);
            event.extend_from_slice(b"\n\n");
            return Some(Bytes::from(event));
        }
    }
}

/// Takes a message for the session that the query names; its answer comes on the stream.
pub(in crate::peer::server) async fn post(
    core: &SharedCore,
    query: Option<&str>,
    body: &[u8],
    peer: Option<SocketAddr>,
) -> HttpResponse<Answer> {
    let mut members = query.unwrap_or_default().split('&');
    let name = members.find_map(|member| member.strip_prefix(SESSION));
    let Some(name) = name else { return answer::plain(400, "the query names no session") };
    let pipe = core.links.lock().get(name).cloned();
    let Some(pipe) = pipe else { return answer::plain(404, "there is no stream of this session") };
    match message::read_any(body) {
        Ok(incoming) => {
            pipe.take(incoming, peer).await;
            answer::accepted()
        }
        Err(refusal) => answer::refusal(&refusal),
    }
}

#[cfg(test)]
mod tests;
