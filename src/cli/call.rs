//! `midwire call`: the reference client.

mod auth;
mod conformance;
mod listen;
mod print;
mod request;
mod several;

use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};

use self::request::Request;
use super::args::call::CallArgs;
use super::{CLEAN, FINDINGS, say, serve};
use crate::app::policy;
use crate::machine::task::EXTENSION;
use crate::peer::client::answers::Answers;
use crate::peer::client::peer::{Conversation, Dial, During, Peer, Setup};
use crate::peer::client::spread::Spread;
use crate::peer::client::{CallOptions, Client, Heard, Outcome, Params, Progress, raw};
use crate::peer::faults::{Faults, Side};
use crate::spec::methods;
use crate::time::Ms;

/// Makes one call and prints what came of it.
pub(super) fn call(args: &CallArgs) -> anyhow::Result<u8> {
    if args.steering.faults {
        return serve::list_faults(Side::Client);
    }
    if let Some(fault) = args.steering.fault.iter().find(|fault| fault.side() == Side::Server) {
        anyhow::bail!("{fault} is a fault of the server; give it to `midwire serve`");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let is_good = runtime.block_on(run(args))?;
    Ok(if is_good { CLEAN } else { FINDINGS })
}

async fn run(args: &CallArgs) -> anyhow::Result<bool> {
    if let Some(url) = &args.conformance {
        return conformance::run(url, args.auth.resource.as_deref()).await;
    }
    let answers = answers(args)?;
    let options = options(args, &answers)?;
    if !args.peer.is_empty() {
        return several::run(args, &answers, &options).await;
    }
    let request = Request::of(args)?;
    let mut peer = connect(args, "server", server(args), &answers, &options).await?;
    if !peer.is_available() {
        let is_good = print::unsettled(args, peer.era())?;
        peer.close().await?;
        return Ok(is_good);
    }
    if let Some(level) = args.log_level.filter(|_| !peer.client().speech().era.is_modern()) {
        // The older eras set it for a session.
        let params = Params::from([("level".to_owned(), raw(level.as_str()))]);
        peer.client().request(methods::SET_LEVEL, params, &options, |_| {}).await?;
    }
    let is_good = match &request {
        Request::Listen => listen::run(args, &mut peer, &options).await?,
        Request::List(kind) => {
            let walk = peer.client().walk(*kind, &options).await?;
            print::walk(args, peer.era(), &walk)?
        }
        Request::One { method, params } => {
            let talk = peer.request(method, params, &options, tell).await?;
            print::conversation(args, peer.era(), &talk)?
        }
    };
    for notice in peer.client().take_notices() {
        tell(During::Heard(Heard::Notice(&notice)));
    }
    let strays = peer.client().strays();
    if strays > 0 {
        say(&format!("{strays} messages of the server belonged to no call"));
    }
    if let Some(exit) = peer.close().await?
        && exit.was_forced
    {
        say("the server did not end when its input was closed, and was ended by a signal");
    }
    Ok(is_good)
}

/// Where the one server is.
fn server(args: &CallArgs) -> Server {
    match &args.url {
        Some(url) => Server::Url(url.clone()),
        None => Server::Command(args.command.clone()),
    }
}

/// Where a server is.
#[derive(Debug, Clone)]
enum Server {
    Url(String),
    Command(Vec<String>),
}

async fn connect(
    args: &CallArgs,
    name: &str,
    server: Server,
    answers: &Answers,
    options: &CallOptions,
) -> anyhow::Result<Peer> {
    let (full, is_command) = match &server {
        Server::Url(url) => (url.clone(), false),
        Server::Command(command) => (command.join(" "), true),
    };
    let contracts = match &args.era.policy {
        Some(path) => policy::load(path)?.contracts,
        None => Vec::new(),
    };
    let setup = Setup {
        era: args.era.for_server(&full, is_command)?,
        answers: answers.clone(),
        // One that speaks of servers counts only for those.
        contracts: contracts
            .into_iter()
            .filter(|contract| {
                contract.servers.is_empty() || contract.servers.iter().any(|name| name.matches(&full))
            })
            .collect(),
        retries: args.retries,
        spread: args.spread.clone().map_or(Spread::Random, Spread::Named),
        authorisation: String::new(),
    };
    let faults = Arc::new(Faults::with(args.steering.fault.iter().copied()));
    let auth = match &server {
        Server::Url(url) => auth::of(&args.auth, url)?,
        Server::Command(_) => None,
    };
    let dial: Dial = Arc::new(move || {
        let client = match &server {
            Server::Url(url) => Client::http(url),
            Server::Command(command) => Client::spawn(command),
        };
        let client = client?.with_faults(faults.clone());
        Ok(match &auth {
            Some(auth) => client.with_auth(auth.clone()),
            None => client,
        })
    });
    Ok(Peer::connect(name, dial, setup, Arc::default(), options).await?)
}

fn options(args: &CallArgs, answers: &Answers) -> anyhow::Result<CallOptions> {
    let mut capabilities = answers.capabilities();
    if !args.no_tasks {
        capabilities["extensions"][EXTENSION] = json!({});
    }
    if let Some(text) = &args.capabilities {
        capabilities = object(text, "--capabilities")?;
    }
    Ok(CallOptions {
        idle: Ms(args.timeout),
        max: Ms(args.max.max(args.timeout)),
        wants_progress: args.progress,
        capabilities,
        log_level: args.log_level,
        cancel_after: args.cancel_after.map(Ms),
        drop_after: args.drop_after.map(Ms),
        ..CallOptions::default()
    })
}

fn answers(args: &CallArgs) -> anyhow::Result<Answers> {
    let mut answers = Answers { fills_forms: args.fill_forms, ..Answers::default() };
    if let Some(path) = &args.answers {
        let file = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the answers {file}; give --answers a JSON file"))?;
        answers.by_name = serde_json::from_str(&text)
            .with_context(|| format!("{file} is no JSON object with an answer for each key"))?;
    }
    for (key, text) in &args.answer {
        let answer = serde_json::from_str(text)
            .with_context(|| format!("cannot read --answer {key}={text}: the answer must be JSON"))?;
        answers.by_name.insert(key.clone(), answer);
    }
    Ok(answers)
}

/// A JSON object of the command line.
fn object(text: &str, flag: &str) -> anyhow::Result<Value> {
    let value: Value = serde_json::from_str(text)
        .with_context(|| format!("cannot read {flag} {text}: it must be a JSON object"))?;
    anyhow::ensure!(value.is_object(), "{flag} {text} is no JSON object");
    Ok(value)
}

/// Says what happens while a call is under way.
fn tell(during: During<'_>) {
    match during {
        During::Heard(Heard::Sent(_)) => {}
        During::Heard(Heard::Progress(progress)) => tell_progress(progress),
        During::Heard(Heard::Notice(notice)) => {
            let params = notice.params.as_ref().map(|params| format!(" {params}")).unwrap_or_default();
            say(&format!("{}{params}", notice.method));
        }
        During::Task(state) => say(&format!("the task is {}", state.as_str())),
        During::Note(note) => say(note),
    }
}

fn tell_progress(progress: &Progress) {
    let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let message = progress.message.as_deref().map(|message| format!("  {message}")).unwrap_or_default();
    say(&format!("progress {}{total}{message}", progress.value));
}

/// Whether a call has ended as its user wished.
fn is_good(talk: &Conversation) -> bool {
    match &talk.outcome {
        Outcome::Complete(result) => !print::is_tool_error(result),
        Outcome::InputRequired(_) => true,
        _ => false,
    }
}
