//! What the words of a command line ask for.

use anyhow::{Context as _, bail};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::cli::args::call::CallArgs;
use crate::peer::client::{Params, raw};
use crate::spec::lists::ListKind;
use crate::spec::methods;

/// What is asked for.
#[derive(Debug)]
pub(super) enum Request {
    /// A whole list.
    List(ListKind),
    /// A subscription.
    Listen,
    /// One call.
    One {
        /// Its method.
        method: String,
        /// Its parameters.
        params: Params,
    },
}

impl Request {
    pub(super) fn of(args: &CallArgs) -> anyhow::Result<Request> {
        if let Some(method) = &args.method {
            return Ok(Request::One { method: method.clone(), params: params(args.params.as_deref())? });
        }
        let target = |what: &str| {
            args.target.clone().with_context(|| format!("{what} of what? Give its name after the word"))
        };
        let one = |method: &str, params: Params| Request::One { method: method.to_owned(), params };
        let word = args.what.as_deref().unwrap_or_default();
        if !matches!(word, "tool" | "prompt" | "read" | "complete")
            && let Some(target) = &args.target
        {
            bail!("{word} takes no {target}; arguments of a tool go with --arg");
        }
        Ok(match word {
            "discover" => one(methods::DISCOVER, Params::new()),
            "ping" => one(methods::PING, Params::new()),
            "list" => Request::List(ListKind::Tools),
            "prompts" => Request::List(ListKind::Prompts),
            "resources" => Request::List(ListKind::Resources),
            "templates" => Request::List(ListKind::Templates),
            "listen" => Request::Listen,
            "read" => one(methods::RESOURCES_READ, Params::from([("uri".to_owned(), raw(&target("read")?))])),
            "prompt" => {
                let mut params = named(&target("prompt")?, arguments(args)?);
                // Arguments of a prompt are strings, whatever they look like.
                if args.arguments.is_none() {
                    let texts: Map<String, Value> =
                        args.args.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
                    params.insert("arguments".to_owned(), raw(&texts));
                }
                one(methods::PROMPTS_GET, params)
            }
            "complete" => one("completion/complete", completion(args, &target("complete")?)?),
            "tool" => one(methods::TOOLS_CALL, named(&target("tool")?, arguments(args)?)),
            tool => one(methods::TOOLS_CALL, named(tool, arguments(args)?)),
        })
    }
}

fn named(name: &str, arguments: Box<RawValue>) -> Params {
    Params::from([("name".to_owned(), raw(name)), ("arguments".to_owned(), arguments)])
}

fn params(text: Option<&str>) -> anyhow::Result<Params> {
    let Some(text) = text else { return Ok(Params::new()) };
    serde_json::from_str(text)
        .with_context(|| format!("cannot read --params {text}: it must be a JSON object"))
}

/// The first argument is to be completed; the others are known already.
fn completion(args: &CallArgs, target: &str) -> anyhow::Result<Params> {
    let Some(((name, value), known)) = args.args.split_first() else {
        bail!("complete needs --arg NAME=VALUE, with what is typed so far");
    };
    let reference = if target.contains("://") {
        json!({ "type": "ref/resource", "uri": target })
    } else {
        json!({ "type": "ref/prompt", "name": target })
    };
    let mut params = Params::from([
        ("ref".to_owned(), raw(&reference)),
        ("argument".to_owned(), raw(&json!({ "name": name, "value": value }))),
    ]);
    if !known.is_empty() {
        let known: Map<String, Value> =
            known.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        params.insert("context".to_owned(), raw(&json!({ "arguments": known })));
    }
    Ok(params)
}

/// The tool's arguments as one JSON object.
pub(super) fn arguments(args: &CallArgs) -> anyhow::Result<Box<RawValue>> {
    if let Some(text) = &args.arguments {
        let raw: Box<RawValue> = serde_json::from_str(text)
            .with_context(|| format!("cannot read --arguments {text}: it must be a JSON object"))?;
        anyhow::ensure!(raw.get().starts_with('{'), "--arguments {text} is no JSON object");
        return Ok(raw);
    }
    let mut object = Params::new();
    for (name, value) in &args.args {
        // What is JSON keeps every digit.
        let value = serde_json::from_str(value).unwrap_or_else(|_| raw(value));
        object.insert(name.clone(), value);
    }
    Ok(raw(&object))
}
