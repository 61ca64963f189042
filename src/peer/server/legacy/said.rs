//! What the server says in a session over HTTP, as its streams carry it.

use bytes::Bytes;

use super::stream::{Carried, Key};
use crate::machine::buffer::Kind;
use crate::peer::server::calls::Calls;
use crate::peer::server::core::Outgoing;
use crate::spec::methods;
use crate::wire::jsonrpc::{self, Frame};

/// A message on a stream of a session.
#[derive(Debug)]
pub(super) struct Said {
    outgoing: Outgoing,
    /// Where its request stands until it is answered.
    calls: Calls,
    /// A response on it is the last message of the stream.
    ends_with_response: bool,
}

impl Said {
    pub(super) fn new(outgoing: Outgoing, calls: &Calls, ends_with_response: bool) -> Said {
        Said { outgoing, calls: calls.clone(), ends_with_response }
    }

    /// What it is for a queue: only progress, logs and cues may be given up or merged.
    pub(super) fn kind(&self) -> Kind<Key> {
        if self.outgoing.status.is_some() {
            return Kind::Final;
        }
        let Frame::Message(message) = jsonrpc::read(&self.outgoing.body) else { return Kind::Final };
        let uri = || {
            let uri = message.member("params").and_then(|params| jsonrpc::at(params, &["uri"]));
            uri.and_then(jsonrpc::string).unwrap_or_default()
        };
        match message.method().as_deref() {
            Some(methods::PROGRESS) => Kind::Progress(String::new()),
            Some(methods::MESSAGE) => Kind::Log,
            Some(methods::RESOURCE_UPDATED) => Kind::Latest(format!("updated {}", uri())),
            Some(method) if method.ends_with("/list_changed") => Kind::Latest(method.to_owned()),
            _ => Kind::Final,
        }
    }

    /// The server asks the client something by it.
    pub(super) fn is_question(&self) -> bool {
        self.outgoing.status.is_none()
            && matches!(jsonrpc::read(&self.outgoing.body), Frame::Message(message) if message.has_id())
    }
}

impl Carried for Said {
    fn leave(&self) -> Option<Bytes> {
        if !self.outgoing.may_leave() {
            return None;
        }
        if let (Some(live), Some(_)) = (&self.outgoing.live, self.outgoing.status) {
            self.calls.take(&live.id);
        }
        Some(self.outgoing.body.clone())
    }

    fn size(&self) -> usize {
        self.outgoing.body.len()
    }

    fn is_last(&self) -> bool {
        self.ends_with_response && self.outgoing.status.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_newer_message_replaces_may_be_merged_or_dropped() {
        let updated = |uri: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
            )
        };
        let cases = [
            (r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#.to_owned(), None, Kind::Progress(String::new())),
            (r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#.to_owned(), None, Kind::Log),
            (r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(), None, Kind::Latest("notifications/tools/list_changed".to_owned())),
            (updated("a:1"), None, Kind::Latest("updated a:1".to_owned())),
            (updated("a:2"), None, Kind::Latest("updated a:2".to_owned())),
            (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#.to_owned(), None, Kind::Final),
            (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#.to_owned(), None, Kind::Final),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(), Some(200), Kind::Final),
        ];
        for (body, status, kind) in cases {
            let is_question = body.contains("roots/list");
            let outgoing = Outgoing::new(None, Bytes::from(body.clone()), status);
            let said = Said::new(outgoing, &Calls::default(), true);
            assert_eq!((said.kind(), said.is_question()), (kind, is_question), "{body}");
            assert_eq!(said.is_last(), status.is_some());
        }
    }
}
