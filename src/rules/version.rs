//! Versions: refusals and what follows them, discovery, fallbacks between the eras, the legacy
//! handshake and what it settles (VER-01..21).

mod discovery;
mod early_stream;
mod fallback;
mod handshake;
mod negotiated;
mod refusal;
mod settled;

use std::borrow::Cow;

use crate::event::Transport;
use crate::model::ScopeIdx;
use crate::rules::book::Book;
use crate::rules::case::Case;
use crate::spec::meta;
use crate::wire::json::Value;

/// Channels that are remembered at once. ours: connections come and go; the oldest knowledge is of
/// no use.
const CHANNELS: usize = 1024;

pub(super) fn rules(book: &mut Book) {
    refusal::rules(book);
    discovery::rules(book);
    fallback::rules(book);
    handshake::rules(book);
    settled::rules(book);
    negotiated::rules(book);
}

/// The version that a request names in its `_meta`.
fn version_of(request: Value<'_>) -> Option<String> {
    Some(request.at(&["params", "_meta", meta::PROTOCOL_VERSION])?.text()?.into_owned())
}

/// The strings of a list; `None`: it is no list of strings.
fn strings(list: Value<'_>) -> Option<Vec<String>> {
    if !list.is_array() {
        return None;
    }
    list.items().map(|item| item.text().map(Cow::into_owned)).collect()
}

/// Where one client is known to speak: its process, or its connection. Over HTTP several clients
/// share everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Channel {
    Process(ScopeIdx),
    Connection(u64),
}

impl Channel {
    fn of(case: &Case<'_>) -> Option<Channel> {
        match case.transport() {
            Transport::Stdio => Some(Channel::Process(case.seen.scope)),
            Transport::Http => case.seen.conn.map(Channel::Connection),
        }
    }
}
