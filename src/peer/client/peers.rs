//! Several servers at once: one catalogue of their tools, made the same whatever server was first.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use thiserror::Error;

use super::lists::Hints;
use super::peer::{Conversation, During, Peer};
use super::{CallOptions, Params, PeerError, raw};
use crate::spec::lists::ListKind;
use crate::spec::methods;

/// What is done where two servers have a tool of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Collisions {
    /// The first server keeps the bare name, later ones get theirs before it: `beta/search`.
    #[default]
    Prefix,
    /// It is an error that names both.
    Reject,
}

/// Whose a tool is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The server.
    pub peer: String,
    /// The name of the tool there.
    pub tool: String,
}

/// Two tools that cannot both be had.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{first} and {second} both have the tool {name}; rename one of the peers, or leave one out")]
pub struct Clash {
    /// The name that both would have.
    pub name: String,
    /// Who has it.
    pub first: String,
    /// Who wants it too.
    pub second: String,
}

/// One catalogue of the tools of several servers; none ever takes the place of another.
///
/// # Errors
/// When a name is wanted twice and no other can be given.
pub fn merge(
    peers: &BTreeMap<String, Vec<String>>,
    collisions: Collisions,
) -> Result<BTreeMap<String, Owner>, Clash> {
    let mut catalogue: BTreeMap<String, Owner> = BTreeMap::new();
    for (peer, tools) in peers {
        let mut tools = tools.clone();
        tools.sort();
        for tool in tools {
            let owner = Owner { peer: peer.clone(), tool: tool.clone() };
            let clash = |name: &str, first: &Owner| Clash {
                name: name.to_owned(),
                first: first.peer.clone(),
                second: peer.clone(),
            };
            let name = match catalogue.get(&tool) {
                None => tool,
                Some(first) if collisions == Collisions::Reject => return Err(clash(&tool, first)),
                Some(_) => format!("{peer}/{tool}"),
            };
            if let Some(first) = catalogue.get(&name) {
                return Err(clash(&name, first));
            }
            catalogue.insert(name, owner);
        }
    }
    Ok(catalogue)
}

/// What is said of one server when all are connected.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name.
    pub peer: String,
    /// The revision that is spoken; `None`: its era is not known, so it is not used.
    pub version: Option<String>,
    /// How long its list of tools stays good, and for whom.
    pub hints: Hints,
    /// Its tools, by their names in the catalogue.
    pub tools: Vec<String>,
    /// Tools that are not used, and why.
    pub dropped: BTreeMap<String, String>,
    /// Why its tools are not there.
    pub trouble: Option<String>,
}

/// Several servers and the catalogue of their tools.
pub struct Peers {
    members: BTreeMap<String, Peer>,
    catalogue: BTreeMap<String, Owner>,
    lines: Vec<Line>,
}

impl Peers {
    /// Lists the tools of all and merges them. A server that is unavailable, or does not list, has none.
    ///
    /// # Errors
    /// When names clash.
    pub async fn of(peers: Vec<Peer>, collisions: Collisions, options: &CallOptions) -> Result<Peers, Clash> {
        let members: BTreeMap<String, Peer> =
            peers.into_iter().map(|peer| (peer.name().to_owned(), peer)).collect();
        let (mut names, mut lines) = (BTreeMap::new(), Vec::new());
        for (name, peer) in &members {
            let version = peer.era().settled.as_ref().map(|settled| settled.speech.version.clone());
            let mut line = Line {
                peer: name.clone(),
                version,
                hints: Hints::default(),
                tools: Vec::new(),
                dropped: BTreeMap::new(),
                trouble: None,
            };
            if peer.is_available() {
                match peer.list(ListKind::Tools, options).await {
                    Ok(Ok(list)) => {
                        names.insert(name.clone(), list.items.keys().cloned().collect::<Vec<_>>());
                        (line.hints, line.dropped) = (list.hints, list.dropped);
                    }
                    Ok(Err(report)) => line.trouble = Some(format!("{:?}", report.outcome)),
                    Err(error) => line.trouble = Some(error.to_string()),
                }
            } else {
                line.trouble = Some("its era is not known".to_owned());
            }
            lines.push(line);
        }
        let catalogue = merge(&names, collisions)?;
        for line in &mut lines {
            let own = catalogue.iter().filter(|(_, owner)| owner.peer == line.peer);
            line.tools = own.map(|(name, _)| name.clone()).collect();
        }
        Ok(Peers { members, catalogue, lines })
    }

    /// What is known of each, in the order of their names.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Whose each tool is, by its name in the catalogue.
    #[must_use]
    pub fn catalogue(&self) -> &BTreeMap<String, Owner> {
        &self.catalogue
    }

    /// Calls a tool by its name in the catalogue, at the server that owns it and in its era.
    ///
    /// # Errors
    /// When no server has it, its owner is unavailable, or nothing can be sent.
    pub async fn call(
        &mut self,
        name: &str,
        arguments: &RawValue,
        options: &CallOptions,
        on_event: impl FnMut(During<'_>) + Send,
    ) -> Result<Conversation, PeerError> {
        let unknown = || PeerError::NoSuchTool { name: name.to_owned() };
        let owner = self.catalogue.get(name).ok_or_else(unknown)?;
        let peer = self.members.get_mut(&owner.peer).ok_or_else(unknown)?;
        let params = Params::from([
            ("name".to_owned(), raw(&owner.tool)),
            ("arguments".to_owned(), arguments.to_owned()),
        ]);
        peer.request(methods::TOOLS_CALL, &params, options, on_event).await
    }

    /// Ends every connection in order.
    ///
    /// # Errors
    /// As [`Peer::close`]; the others are ended all the same.
    pub async fn close(self) -> Result<(), PeerError> {
        let ends = futures_util::future::join_all(self.members.into_values().map(Peer::close)).await;
        ends.into_iter().try_for_each(|end| end.map(|_| ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_the_same_in_any_order_and_nothing_is_overwritten() {
        use Collisions::{Prefix, Reject};
        /// Peers with their tools; the catalogue, or the clash.
        type Row<'a> = (Collisions, &'a [(&'a str, &'a [&'a str])], Result<&'a [&'a str], [&'a str; 3]>);
        let rows: [Row<'_>; 6] = [
            (
                Prefix,
                &[("alpha", &["search", "write"]), ("beta", &["read", "search"])],
                Ok(&[
                    "beta/search=beta:search",
                    "read=beta:read",
                    "search=alpha:search",
                    "write=alpha:write",
                ]),
            ),
            (
                Prefix,
                &[("beta", &["search", "read"]), ("alpha", &["write", "search"])],
                Ok(&[
                    "beta/search=beta:search",
                    "read=beta:read",
                    "search=alpha:search",
                    "write=alpha:write",
                ]),
            ),
            (Reject, &[("beta", &["search"]), ("alpha", &["search"])], Err(["search", "alpha", "beta"])),
            (Reject, &[("alpha", &["a"]), ("beta", &["b"])], Ok(&["a=alpha:a", "b=beta:b"])),
            (Prefix, &[("alpha", &["beta/x", "x"]), ("beta", &["x"])], Err(["beta/x", "alpha", "beta"])),
            (Prefix, &[], Ok(&[])),
        ];
        for (collisions, peers, expected) in rows {
            let all: BTreeMap<String, Vec<String>> = peers
                .iter()
                .map(|(peer, tools)| ((*peer).to_owned(), tools.iter().map(|t| (*t).to_owned()).collect()))
                .collect();
            let merged = merge(&all, collisions).map(|catalogue| {
                let line = |(name, owner): (&String, &Owner)| format!("{name}={}:{}", owner.peer, owner.tool);
                catalogue.iter().map(line).collect::<Vec<_>>()
            });
            let expected = expected
                .map(|lines| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
                .map_err(|[name, first, second]| Clash {
                    name: name.to_owned(),
                    first: first.to_owned(),
                    second: second.to_owned(),
                });
            assert_eq!(merged, expected, "{peers:?}");
        }
    }
}
