//! The client that a scenario of the MCP conformance suite asks for: it goes through all that the
//! server of the scenario offers. The suite names scenario and revision in the environment, and gives
//! the URL last (`tests/conformance/run client`).

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cli::say;
use crate::peer::client::answers::{Answers, least_of};
use crate::peer::client::auth::{
    Auth, AuthSettings, ClientKey, Grant, IdentityProvider, KnownClient, Opener, Secret,
};
use crate::peer::client::era::{EraPolicy, EraRule};
use crate::peer::client::lists::List;
use crate::peer::client::peer::{Dial, During, Peer, Setup};
use crate::peer::client::{CallOptions, Client, Outcome, Params, raw};
use crate::spec::era::Era;
use crate::spec::lists::ListKind;
use crate::spec::methods;
use crate::time::Ms;
use crate::wire::jsonrpc;

/// How long a scenario's server may take to answer: it runs on a busy machine.
const LIMIT: Ms = Ms(20_000);

/// What the suite takes for the document about a client (it is never fetched).
const METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// What the suite says in the environment.
struct Scenario {
    name: String,
    revision: Option<Era>,
    /// What some scenarios want beside.
    context: Value,
}

impl Scenario {
    fn of_environment() -> Scenario {
        let text = |name: &str| std::env::var(name).unwrap_or_default();
        Scenario {
            name: text("MCP_CONFORMANCE_SCENARIO"),
            revision: Era::from_name(&text("MCP_CONFORMANCE_PROTOCOL_VERSION")),
            context: serde_json::from_str(&text("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default(),
        }
    }

    /// Nobody signs in: the authorization servers of the suite redirect at once.
    ///
    /// # Errors
    /// When the key that the scenario gives is none.
    fn auth(&self, resource: Option<&str>) -> anyhow::Result<AuthSettings> {
        let text = |name: &str| self.context[name].as_str().map(str::to_owned);
        let key = text("private_key_pem").map(Secret::new);
        let key = key.as_ref().map(ClientKey::from_pem).transpose()?;
        let client = text("client_id").map(|id| KnownClient {
            id,
            secret: text("client_secret").map(Secret::new),
            key: key.map(Arc::new),
            issuer: text("issuer"),
        });
        let id_token = (text("idp_id_token"), text("idp_token_endpoint"), text("idp_client_id"));
        let grant = match (text("valid_jwt"), id_token) {
            (Some(assertion), _) => Grant::Assertion(Secret::new(assertion)),
            (_, (Some(id_token), Some(token_endpoint), Some(client_id))) => {
                Grant::CrossApp(IdentityProvider {
                    token_endpoint,
                    client_id,
                    id_token: Secret::new(id_token),
                })
            }
            _ if self.name.starts_with("auth/client-credentials") => Grant::ClientCredentials,
            _ => Grant::Code,
        };
        Ok(AuthSettings {
            client,
            metadata_url: Some(METADATA_URL.to_owned()),
            resource: resource.map(str::to_owned),
            grant,
            opener: Opener::Follow,
            ..AuthSettings::default()
        })
    }

    /// The revision decides how the server is met.
    fn policy(&self) -> EraPolicy {
        let limits = EraPolicy { probe_limit: LIMIT, initialize_limit: LIMIT, ..EraPolicy::default() };
        match self.revision {
            Some(era) if !era.is_modern() => {
                EraPolicy { rule: EraRule::Legacy, revisions: vec![era], ..limits }
            }
            Some(_) => limits,
            None => EraPolicy { rule: EraRule::Lenient, ..limits },
        }
    }
}

/// Goes through a scenario; true: nothing failed on this side.
/// `resource`: what its server is known as, where that is not its URL.
pub(super) async fn run(url: &str, resource: Option<&str>) -> anyhow::Result<bool> {
    let scenario = Scenario::of_environment();
    let answers = Answers { fills_forms: true, ..Answers::default() };
    let options = CallOptions { capabilities: answers.capabilities(), ..CallOptions::default() };
    let setup = Setup { era: scenario.policy(), answers, ..Setup::default() };
    let place = url.to_owned();
    let auth = Arc::new(Auth::new(url, scenario.auth(resource)?)?);
    let dial: Dial = Arc::new(move || Ok(Client::http(&place)?.with_auth(auth.clone())));
    let peer = Peer::connect("conformance", dial, setup, Arc::default(), &options).await?;
    for step in &peer.era().steps {
        say(&format!("{} -> {}; {}", step.sent, step.came, step.conclusion));
    }
    anyhow::ensure!(peer.is_available(), "the era of the server is not established");
    let mut tour = Tour { peer, options, is_good: true };
    tour.go(&scenario).await?;
    tour.peer.close().await?;
    Ok(tour.is_good)
}

struct Tour {
    peer: Peer,
    options: CallOptions,
    is_good: bool,
}

impl Tour {
    async fn go(&mut self, scenario: &Scenario) -> anyhow::Result<()> {
        let tools = self.list(ListKind::Tools).await?;
        for (tool, arguments) in calls(scenario, &tools) {
            let params = Params::from([("name".to_owned(), raw(&tool)), ("arguments".to_owned(), arguments)]);
            self.ask(methods::TOOLS_CALL, params).await?;
        }
        if self.offers("resources") {
            let resources = self.list(ListKind::Resources).await?;
            for uri in resources.items.keys() {
                let params = Params::from([("uri".to_owned(), raw(uri))]);
                self.ask(methods::RESOURCES_READ, params).await?;
            }
        }
        if self.offers("prompts") {
            let prompts = self.list(ListKind::Prompts).await?;
            for (name, prompt) in &prompts.items {
                let params =
                    Params::from([("name".to_owned(), raw(name)), ("arguments".to_owned(), texts(prompt))]);
                self.ask(methods::PROMPTS_GET, params).await?;
            }
        }
        Ok(())
    }

    /// The server says that it has this.
    fn offers(&self, capability: &str) -> bool {
        let settled = self.peer.era().settled.as_ref();
        let introduction = settled.and_then(|settled| settled.introduction.as_ref());
        introduction.is_some_and(|said| jsonrpc::at(said, &["capabilities", capability]).is_some())
    }

    async fn list(&mut self, kind: ListKind) -> anyhow::Result<List> {
        match self.peer.list(kind, &self.options).await? {
            Ok(list) => {
                for (name, why) in &list.dropped {
                    say(&format!("{name} is not used: {why}"));
                }
                Ok(list)
            }
            Err(report) => {
                say(&format!("{}: {:?}", kind.method(), report.outcome));
                self.is_good = false;
                Ok(List::default())
            }
        }
    }

    async fn ask(&mut self, method: &str, params: Params) -> anyhow::Result<()> {
        let told = params.get("name").or_else(|| params.get("uri")).map(ToString::to_string);
        let tell = |during: During<'_>| {
            if let During::Note(note) = during {
                say(note);
            }
        };
        let talk = self.peer.request(method, &params, &self.options, tell).await?;
        say(&format!("{method} {}: {:?}", told.unwrap_or_default(), talk.outcome));
        // What the server answers is its own matter; an answer without its kind is refused, and the next
        // call goes on.
        self.is_good &=
            matches!(talk.outcome, Outcome::Complete(_) | Outcome::Error { .. } | Outcome::Invalid(_));
        Ok(())
    }
}

/// Which tools are called with what: as the scenario says, else each with the least that it wants.
fn calls(scenario: &Scenario, tools: &List) -> Vec<(String, Box<RawValue>)> {
    if let Some(wanted) = scenario.context["toolCalls"].as_array() {
        let call = |call: &Value| Some((call["name"].as_str()?.to_owned(), raw(&call["arguments"])));
        return wanted.iter().filter_map(call).collect();
    }
    let schema = |name: &str| jsonrpc::at(tools.items.get(name)?, &["inputSchema"]);
    let call = |name: &String| {
        // This one wants the definition of another back, byte for byte.
        let focal = schema("json_schema_2020_12_tool").filter(|_| name == "json_schema_echo");
        let arguments = if let Some(focal) = focal {
            raw(&json!({ "schema": focal }))
        } else {
            let schema = schema(name).and_then(|schema| serde_json::from_str(schema.get()).ok());
            raw(&least_of(&schema.unwrap_or(Value::Null)))
        };
        (name.clone(), arguments)
    };
    tools.items.keys().map(call).collect()
}

/// A text for each argument of a prompt.
fn texts(prompt: &RawValue) -> Box<RawValue> {
    let prompt: Value = serde_json::from_str(prompt.get()).unwrap_or_default();
    let names = prompt["arguments"].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str());
    let texts: serde_json::Map<String, Value> = names.map(|name| (name.to_owned(), json!("text"))).collect();
    raw(&texts)
}
