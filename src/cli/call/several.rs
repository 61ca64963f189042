//! Several servers at once: what each is, and calls to whoever has the tool.

use std::io::Write;

use futures_util::future::join_all;
use serde_json::json;

use super::{Server, connect, print, request, tell};
use crate::cli::args::call::{CallArgs, Clashing};
use crate::peer::client::CallOptions;
use crate::peer::client::answers::Answers;
use crate::peer::client::peers::{Collisions, Peers};

/// Connects all, prints what they are, or calls a tool of one of them.
pub(super) async fn run(args: &CallArgs, answers: &Answers, options: &CallOptions) -> anyhow::Result<bool> {
    let mut names: Vec<&str> = args.peer.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair.first() == pair.last()) {
        anyhow::bail!("two peers are called {}; give each a name of its own", pair.concat());
    }
    let connecting = args.peer.iter().map(|(name, place)| {
        let server = if place.starts_with("http://") || place.starts_with("https://") {
            Server::Url(place.clone())
        } else {
            Server::Command(place.split_whitespace().map(str::to_owned).collect())
        };
        connect(args, name, server, answers, options)
    });
    let mut connected = Vec::new();
    for peer in join_all(connecting).await {
        connected.push(peer?);
    }
    let eras: Vec<_> = connected.iter().map(|peer| (peer.name().to_owned(), peer.era().clone())).collect();
    let collisions = match args.collisions {
        Clashing::Prefix => Collisions::Prefix,
        Clashing::Reject => Collisions::Reject,
    };
    let mut peers = Peers::of(connected, collisions, options).await?;
    let is_good = match args.what.as_deref() {
        Some("list") => show(args, &peers)?,
        Some(tool) => {
            let arguments = request::arguments(args)?;
            let owner = peers.catalogue().get(tool).map(|owner| owner.peer.clone());
            let talk = peers.call(tool, &arguments, options, tell).await;
            match (talk, eras.iter().find(|(name, _)| Some(name) == owner.as_ref())) {
                (Ok(talk), Some((_, era))) => print::conversation(args, era, &talk)?,
                (Ok(_), None) => false,
                (Err(error), _) => {
                    peers.close().await?;
                    return Err(error.into());
                }
            }
        }
        None => anyhow::bail!("with several peers, give `list` or the name of a tool"),
    };
    peers.close().await?;
    Ok(is_good)
}

/// What each server is; true: all are there.
fn show(args: &CallArgs, peers: &Peers) -> std::io::Result<bool> {
    let mut out = std::io::stdout().lock();
    if args.json {
        let lines = peers.lines().iter().map(|line| {
            json!({
                "peer": line.peer,
                "version": line.version,
                "ttlMs": line.hints.ttl.0,
                "cacheScope": if line.hints.is_public { "public" } else { "private" },
                "tools": line.tools,
                "dropped": line.dropped,
                "trouble": line.trouble,
            })
        });
        let owners = peers
            .catalogue()
            .iter()
            .map(|(name, owner)| (name.clone(), json!({ "peer": owner.peer, "tool": owner.tool })));
        let catalogue: serde_json::Map<_, _> = owners.collect();
        writeln!(out, "{}", json!({ "peers": lines.collect::<Vec<_>>(), "catalogue": catalogue }))?;
    } else {
        for line in peers.lines() {
            let version = line.version.as_deref().unwrap_or("unavailable");
            let scope = if line.hints.is_public { "public" } else { "private" };
            let (peer, ttl, tools) = (&line.peer, line.hints.ttl.0, line.tools.join(", "));
            let trouble = line.trouble.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
            let said = format!("{peer}: {version}, {scope} for {ttl} ms: {tools}{trouble}");
            writeln!(out, "{}", crate::report::harmless(&said))?;
        }
    }
    Ok(peers.lines().iter().all(|line| line.trouble.is_none()))
}
