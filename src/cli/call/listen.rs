//! A subscription as it is told.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Value, json};

use crate::cli::args::call::CallArgs;
use crate::machine::reconnect::{Filter, Read};
use crate::peer::client::CallOptions;
use crate::peer::client::listen::{ListenOptions, Listened, listen};
use crate::peer::client::peer::Peer;
use crate::report::harmless;
use crate::time::Ms;

/// Listens until it is enough; true: the subscription ended because the user wanted it to.
pub(super) async fn run(args: &CallArgs, peer: &mut Peer, options: &CallOptions) -> anyhow::Result<bool> {
    let wanted = wanted(&args.watch);
    anyhow::ensure!(
        wanted != Filter::default(),
        "listen to what? Give --watch tools, prompts, resources, task:ID or a URI"
    );
    let listening = ListenOptions {
        wanted,
        limit: args.listen_for.map(Ms),
        changes: args.changes,
        reconnects: args.reconnects,
    };
    let mut failed = None;
    let options = CallOptions { cancel_after: args.cancel_after.map(Ms), ..options.clone() };
    let end = listen(peer, &listening, &options, |event| {
        if let Err(error) = tell(event, args.json) {
            failed = Some(error);
        }
    });
    let end = end.await?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(end.was_wanted),
    }
}

fn wanted(watch: &[String]) -> Filter {
    let mut filter = Filter::default();
    let (mut uris, mut tasks) = (BTreeSet::new(), BTreeSet::new());
    for what in watch {
        match what.as_str() {
            "tools" => filter.tools = true,
            "prompts" => filter.prompts = true,
            "resources" => filter.resources = true,
            other => {
                match other.strip_prefix("task:") {
                    Some(id) => tasks.insert(id.to_owned()),
                    None => uris.insert(other.to_owned()),
                };
            }
        }
    }
    Filter { uris, tasks, ..filter }
}

fn tell(event: &Listened, is_json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if is_json {
        writeln!(out, "{}", as_json(event))?;
    } else {
        writeln!(out, "{}", harmless(&words(event)))?;
    }
    out.flush()
}

fn words(event: &Listened) -> String {
    match event {
        Listened::Granted { missing, .. } if *missing == Filter::default() => "granted, all of it".to_owned(),
        Listened::Granted { missing, .. } => format!("granted, but not {}", names(missing).join(", ")),
        Listened::Changed(what) => format!("changed: {}", name(what)),
        Listened::Fetched { what, came } => format!("read again: {}: {came}", name(what)),
        Listened::Fault(why) => format!("fault: {why}"),
        Listened::Ended { why, is_graceful: true } => format!("ended in order: {why}"),
        Listened::Ended { why, .. } => format!("lost: {why}"),
        Listened::Step(step) => format!("plan: {step}"),
    }
}

fn as_json(event: &Listened) -> Value {
    match event {
        Listened::Granted { granted, missing } => {
            json!({ "event": "granted", "granted": names(granted), "missing": names(missing) })
        }
        Listened::Changed(what) => json!({ "event": "changed", "what": name(what) }),
        Listened::Fetched { what, came } => json!({ "event": "fetched", "what": name(what), "came": came }),
        Listened::Fault(why) => json!({ "event": "fault", "why": why }),
        Listened::Ended { why, is_graceful } => {
            json!({ "event": "ended", "why": why, "graceful": is_graceful })
        }
        Listened::Step(step) => json!({ "event": "step", "step": step }),
    }
}

fn names(filter: &Filter) -> Vec<String> {
    crate::peer::client::listen::affected(filter).iter().map(name).collect()
}

fn name(what: &Read) -> String {
    match what {
        Read::Tools => "tools".to_owned(),
        Read::Prompts => "prompts".to_owned(),
        Read::Resources => "resources".to_owned(),
        Read::Resource(uri) => uri.clone(),
        Read::Prompt(name) => format!("prompt {name}"),
        Read::Task(id) => format!("task {id}"),
    }
}
