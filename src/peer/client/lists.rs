//! Lists, page by page, and how long what was read stays good.

use std::collections::{BTreeMap, HashSet};

use serde_json::value::RawValue;

use super::{CallOptions, Client, Outcome, Params, PeerError, Report, mirror, next_cursor};
use crate::spec::codes;
use crate::spec::lists::ListKind;
use crate::spec::transport::Transport;
use crate::time::Ms;
use crate::wire::jsonrpc;

/// Pages of one walk that are read. ours: a server that has more of them goes in a circle.
const PAGE_LIMIT: usize = 1000;

/// How long and for whom something that was read stays good. What an older server says nothing of is
/// stale at once, and private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// `ttlMs`.
    pub ttl: Ms,
    /// `cacheScope` is `public`: other users may be given it too.
    pub is_public: bool,
}

impl Hints {
    /// Those of one result.
    #[must_use]
    pub fn of(result: &RawValue) -> Hints {
        let ttl = jsonrpc::at(result, &["ttlMs"]).and_then(|raw| raw.get().parse().ok());
        let scope = jsonrpc::at(result, &["cacheScope"]).and_then(jsonrpc::string);
        Hints { ttl: Ms(ttl.unwrap_or(0)), is_public: scope.is_some_and(|scope| scope == "public") }
    }
}

/// A whole list, items in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// Items by the name that stays the same: tool, prompt, URI.
    pub items: BTreeMap<String, Box<RawValue>>,
    /// Items that are not used, and why: the client would break a rule by using them.
    pub dropped: BTreeMap<String, String>,
    /// The shortest of all pages, and public only if all are.
    pub hints: Hints,
}

/// A walk through the pages of a list.
#[derive(Debug)]
pub struct Walk {
    /// How each request went.
    pub reports: Vec<Report>,
    /// The list; `None`: the last request tells why not.
    pub list: Option<List>,
}

impl Client {
    /// Reads a whole list. Over modern HTTP a tool with bad annotations is dropped (HTTP-30).
    ///
    /// # Errors
    /// When a request cannot be sent.
    pub async fn walk(&self, kind: ListKind, options: &CallOptions) -> Result<Walk, PeerError> {
        let mut walk = Walk { reports: Vec::new(), list: None };
        let (mut list, mut cursor) = (List::default(), None::<Box<RawValue>>);
        let (mut seen, mut is_again) = (HashSet::new(), false);
        for page in 0..PAGE_LIMIT {
            let params: Params = cursor.iter().map(|cursor| ("cursor".to_owned(), cursor.clone())).collect();
            let report = self.request(kind.method(), params, options, |_| {}).await?;
            let next = match &report.outcome {
                Outcome::Complete(result) => {
                    self.take(kind, result, page == 0, &mut list);
                    next_cursor(result).map(ToOwned::to_owned)
                }
                // The cursor is no longer good: from the start, once.
                Outcome::Error { code: codes::INVALID_PARAMS, .. } if cursor.is_some() && !is_again => {
                    (list, cursor, is_again) = (List::default(), None, true);
                    seen.clear();
                    walk.reports.push(report);
                    continue;
                }
                _ => {
                    walk.reports.push(report);
                    return Ok(walk);
                }
            };
            walk.reports.push(report);
            match next {
                Some(next) if seen.insert(next.get().to_owned()) => cursor = Some(next),
                // A cursor that comes again leads round in a circle.
                _ => break,
            }
        }
        walk.list = Some(list);
        Ok(walk)
    }

    fn take(&self, kind: ListKind, page: &RawValue, is_first: bool, list: &mut List) {
        let hints = Hints::of(page);
        list.hints = if is_first {
            hints
        } else {
            Hints { ttl: list.hints.ttl.min(hints.ttl), is_public: list.hints.is_public && hints.is_public }
        };
        let items = jsonrpc::at(page, &[kind.member()]);
        let items: Vec<Box<RawValue>> =
            items.and_then(|items| serde_json::from_str(items.get()).ok()).unwrap_or_default();
        let mirrors = self.transport() == Transport::Http && self.speech().era.is_modern();
        for item in items {
            let Some(name) = jsonrpc::at(&item, &[kind.key()]).and_then(jsonrpc::string) else { continue };
            let name = name.into_owned();
            match mirror::fault(&item).filter(|_| mirrors && kind == ListKind::Tools) {
                Some(fault) => {
                    list.dropped.insert(name, fault);
                }
                None => {
                    list.items.insert(name, item);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::peer::client::scripted;

    /// Pages by cursor: `""`, `b`, then the end; one tool has a bad annotation.
    fn page(_: &str, body: &Value) -> scripted::Answer {
        let tool = |name: &str, kind: &str| {
            let schema =
                json!({ "type": "object", "properties": { "a": { "type": kind, "x-mcp-header": "A" } } });
            json!({ "name": name, "inputSchema": schema })
        };
        let (tools, ttl, scope, next) = match body["params"].get("cursor").and_then(Value::as_str) {
            None => (vec![tool("z", "string"), tool("bad", "number")], 60, "public", json!("")),
            Some("") => (vec![tool("m", "string")], 10, "public", json!("b")),
            Some("b") => (vec![tool("a", "string")], 30, "private", json!("b")),
            Some(_) => (Vec::new(), 0, "private", json!(null)),
        };
        let result = json!({
            "resultType": "complete", "tools": tools, "ttlMs": ttl, "cacheScope": scope, "nextCursor": next,
        });
        scripted::json("200 OK", &json!({ "jsonrpc": "2.0", "id": body["id"], "result": result }))
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end_in_order_and_bad_tools_are_dropped() {
        let (url, _requests) = scripted::serve(page).await;
        let client = Client::http(&url).unwrap();
        let walk = client.walk(ListKind::Tools, &CallOptions::default()).await.unwrap();
        let list = walk.list.unwrap();
        assert_eq!(list.items.keys().collect::<Vec<_>>(), ["a", "m", "z"]);
        assert_eq!(list.dropped.keys().collect::<Vec<_>>(), ["bad"]);
        assert_eq!((walk.reports.len(), list.hints), (3, Hints { ttl: Ms(10), is_public: false }));
    }

    #[tokio::test]
    async fn a_walk_that_fails_says_with_which_request() {
        let answer = |_: &str, body: &Value| {
            let error = json!({ "code": -32601, "message": "no" });
            scripted::json("404 Not Found", &json!({ "jsonrpc": "2.0", "id": body["id"], "error": error }))
        };
        let (url, _requests) = scripted::serve(answer).await;
        let walk =
            Client::http(&url).unwrap().walk(ListKind::Prompts, &CallOptions::default()).await.unwrap();
        assert!(walk.list.is_none() && walk.reports.len() == 1);
    }
}
