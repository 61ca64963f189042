//! A protected server and its authorization server on this machine, honest or not, and all that they
//! were asked.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

/// What the two do. In texts, `{mcp}` is the URL of the server, `{host}` that without its path, and `{as}`
/// the authorization server without a path.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    /// `WWW-Authenticate` of a 401; empty: none.
    pub(crate) challenge: &'static str,
    /// Where the metadata of the server is, and what it names as `resource`.
    pub(crate) metadata_at: &'static str,
    pub(crate) resource: &'static str,
    /// Members that replace others of the metadata.
    pub(crate) metadata: Value,
    /// The path of the issuer, where its metadata is, and members that replace others.
    pub(crate) tenant: &'static str,
    pub(crate) issuer_at: &'static str,
    pub(crate) issuer: Value,
    /// What comes back with the redirect; `{code}` and `{state}` are filled in. Empty: a page.
    pub(crate) redirect: &'static str,
    /// Members that replace others of the answer of the token endpoint; `status` is that of HTTP.
    pub(crate) token: Value,
    /// Members that replace others of the answer of the identity provider, at `/exchange`.
    pub(crate) exchange: Value,
    /// Scope that `tools/call` needs.
    pub(crate) call_scope: &'static str,
    /// Scopes are never granted.
    pub(crate) grants_nothing: bool,
    /// Tokens are for somebody else: the server takes none.
    pub(crate) other_audience: bool,
    /// Every token is good for so many requests.
    pub(crate) uses: usize,
    /// Secret of the client that it knows, `c`.
    pub(crate) secret: &'static str,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner {
            challenge: "Bearer resource_metadata=\"{host}/meta\"",
            metadata_at: "/meta",
            resource: "{mcp}",
            metadata: json!({}),
            tenant: "",
            issuer_at: "/.well-known/oauth-authorization-server",
            issuer: json!({}),
            redirect: "code={code}&state={state}",
            token: json!({}),
            exchange: json!({}),
            call_scope: "",
            grants_nothing: false,
            other_audience: false,
            uses: usize::MAX,
            secret: "",
        }
    }
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    /// Asked of the protected server; else of the authorization server.
    pub(crate) is_mcp: bool,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
}

impl Heard {
    /// The parameters of a form in the body.
    pub(crate) fn form(&self) -> BTreeMap<String, String> {
        pairs(&self.body)
    }
}

/// Both servers.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) mcp: String,
    host: String,
    issuing: String,
    manner: Manner,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    heard: Vec<Heard>,
    /// What each code was asked for with.
    codes: HashMap<String, BTreeMap<String, String>>,
    /// Tokens with their scopes, and how often each was used.
    tokens: HashMap<String, (HashSet<String>, usize)>,
    renewing: HashMap<String, String>,
    count: usize,
}

/// Status, fields and body.
type Answer = (u16, Vec<(hyper::header::HeaderName, String)>, String);

impl World {
    /// Starts both; they end with the runtime of the test.
    pub(crate) async fn start(manner: Manner) -> Arc<World> {
        let mcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuing = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("http://{}", mcp.local_addr().unwrap());
        let world = Arc::new(World {
            mcp: format!("{host}/team/mcp"),
            host,
            issuing: format!("http://{}", issuing.local_addr().unwrap()),
            manner,
            state: Mutex::default(),
        });
        let tracker = TaskTracker::new();
        for (listener, is_mcp) in [(mcp, true), (issuing, false)] {
            tracker.spawn(accept(world.clone(), listener, is_mcp, tracker.clone()));
        }
        world
    }

    /// All that was asked, in order.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.state.lock().unwrap().heard.clone()
    }

    /// Requests whose path ends so.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.heard().iter().filter(|heard| heard.path.ends_with(path)).count()
    }

    /// Requests of MCP itself.
    pub(crate) fn calls(&self) -> usize {
        self.heard().iter().filter(|heard| heard.is_mcp && heard.path == "/team/mcp").count()
    }

    /// Every secret that was given out.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state.tokens.keys().chain(state.renewing.keys()).cloned().collect()
    }

    /// Where the identity provider exchanges tokens.
    pub(crate) fn exchange(&self) -> String {
        format!("{}/exchange", self.issuing)
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{mcp}", &self.mcp).replace("{host}", &self.host).replace("{as}", &self.issuing)
    }

    fn merged(&self, mut base: Value, over: &Value) -> String {
        for (name, value) in over.as_object().unwrap() {
            base[name] = value.clone();
        }
        self.fill(&base.to_string())
    }

    fn answer(&self, heard: &Heard, method: &Method) -> Answer {
        let manner = &self.manner;
        let path = heard.path.strip_prefix(manner.tenant).unwrap_or(&heard.path);
        match (heard.is_mcp, path) {
            (true, "/team/mcp") if method == Method::POST => self.mcp(heard),
            (true, path) if path == manner.metadata_at => {
                let servers = [format!("{{as}}{}", manner.tenant)];
                let base = json!({ "resource": manner.resource, "authorization_servers": servers });
                (200, Vec::new(), self.merged(base, &manner.metadata))
            }
            (false, _) if heard.path == manner.issuer_at => (200, Vec::new(), self.issuer()),
            (false, "/authorize") => self.authorize(&heard.query),
            (false, "/token") => self.token(heard),
            (false, "/exchange") => {
                let form = heard.form();
                let is_good = form["subject_token"] == "ID.TOKEN.OF-ADA" && form["resource"] == self.mcp;
                let given = json!({ "access_token": "MADE.BY.IDP", "issued_token_type": form["requested_token_type"] });
                if is_good {
                    (200, Vec::new(), self.merged(given, &self.manner.exchange))
                } else {
                    (400, Vec::new(), String::new())
                }
            }
            (false, "/register") => {
                let client = json!({ "client_id": "registered", "token_endpoint_auth_method": "none" });
                (201, Vec::new(), client.to_string())
            }
            _ => (404, Vec::new(), "nothing here".to_owned()),
        }
    }

    fn issuer(&self) -> String {
        let at = format!("{{as}}{}", self.manner.tenant);
        let base = json!({
            "issuer": at,
            "authorization_endpoint": format!("{at}/authorize"),
            "token_endpoint": format!("{at}/token"),
            "registration_endpoint": format!("{at}/register"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        });
        self.merged(base, &self.manner.issuer)
    }

    fn mcp(&self, heard: &Heard) -> Answer {
        let refuse = |status, field: String| (status, vec![(WWW_AUTHENTICATE, field)], String::new());
        let message: Value = serde_json::from_str(&heard.body).unwrap();
        let mut state = self.state.lock().unwrap();
        let token = heard.authorization.as_deref().and_then(|field| field.strip_prefix("Bearer "));
        let known = token.and_then(|token| state.tokens.get_mut(token));
        let scopes = match known {
            Some((scopes, used)) if *used < self.manner.uses && !self.manner.other_audience => {
                *used += 1;
                scopes
            }
            _ if self.manner.challenge.is_empty() => return (401, Vec::new(), String::new()),
            _ => return refuse(401, self.fill(self.manner.challenge)),
        };
        let needed = self.manner.call_scope;
        if message["method"] == "tools/call" && !needed.is_empty() && !scopes.contains(needed) {
            let field = format!(
                "Bearer error=\"insufficient_scope\", scope=\"{needed}\", resource_metadata=\"{{host}}/meta\""
            );
            return refuse(403, self.fill(&field));
        }
        if message["method"] == "subscriptions/listen" {
            return listened(&message);
        }
        let result = json!({ "resultType": "complete", "content": [], "tools": [] });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        (200, Vec::new(), answer.to_string())
    }

    fn authorize(&self, query: &BTreeMap<String, String>) -> Answer {
        if self.manner.redirect.is_empty() {
            return (200, Vec::new(), "<html>".to_owned());
        }
        let mut state = self.state.lock().unwrap();
        state.count += 1;
        let code = format!("CODE-{}", state.count);
        state.codes.insert(code.clone(), query.clone());
        let answer = self.manner.redirect.replace("{code}", &code).replace("{state}", &query["state"]);
        (302, vec![(LOCATION, format!("{}?{}", query["redirect_uri"], self.fill(&answer)))], String::new())
    }

    fn token(&self, heard: &Heard) -> Answer {
        let form = heard.form();
        let bad = |error: &str| (400, Vec::new(), json!({ "error": error }).to_string());
        let mut state = self.state.lock().unwrap();
        let field = |name: &str| form.get(name).cloned().unwrap_or_default();
        let scope = match form["grant_type"].as_str() {
            "authorization_code" => {
                let Some(asked) = state.codes.remove(&field("code")) else { return bad("invalid_grant") };
                let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
                let is_same = |name: &str| form.get(name) == asked.get(name);
                if asked["code_challenge"] != challenge || !is_same("redirect_uri") || !is_same("resource") {
                    return bad("invalid_grant");
                }
                asked.get("scope").cloned().unwrap_or_default()
            }
            "refresh_token" => match state.renewing.remove(&field("refresh_token")) {
                Some(scope) => scope,
                None => return bad("invalid_grant"),
            },
            "client_credentials" => field("scope"),
            // Of somebody whom this server trusts.
            "urn:ietf:params:oauth:grant-type:jwt-bearer" if field("assertion") == "MADE.BY.IDP" => {
                field("scope")
            }
            _ => return bad("unsupported_grant_type"),
        };
        if !self.manner.secret.is_empty() {
            let expected = format!("Basic {}", STANDARD.encode(format!("c:{}", self.manner.secret)));
            let is_known = heard.authorization.as_deref() == Some(&expected)
                || (field("client_id") == "c" && field("client_secret") == self.manner.secret)
                || (field("client_id") == "c" && field("client_assertion").split('.').count() == 3);
            if !is_known {
                return bad("invalid_client");
            }
        }
        state.count += 1;
        let (access, renewing) = (format!("ACCESS-{}", state.count), format!("RENEWING-{}", state.count));
        let granted = if self.manner.grants_nothing { "" } else { &scope };
        let scopes = granted.split(' ').map(str::to_owned).collect();
        state.tokens.insert(access.clone(), (scopes, 0));
        state.renewing.insert(renewing.clone(), scope.clone());
        let base = json!({
            "access_token": access, "token_type": "Bearer", "refresh_token": renewing, "scope": granted,
        });
        let status = self.manner.token["status"].as_u64().unwrap_or(200);
        (u16::try_from(status).unwrap(), Vec::new(), self.merged(base, &self.manner.token))
    }
}

/// A subscription that is acknowledged and ended at once.
fn listened(message: &Value) -> Answer {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
    let granted = json!({ "notifications": message["params"]["notifications"], "_meta": meta });
    let acknowledged = "notifications/subscriptions/acknowledged";
    let first = json!({ "jsonrpc": "2.0", "method": acknowledged, "params": granted });
    let result = json!({ "resultType": "complete", "_meta": meta });
    let last = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    let fields = vec![(CONTENT_TYPE, "text/event-stream".to_owned())];
    (200, fields, format!("data: {first}\n\ndata: {last}\n\n"))
}

async fn accept(world: Arc<World>, listener: TcpListener, is_mcp: bool, tracker: TaskTracker) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let world = world.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let world = world.clone();
            async move { Ok::<_, Infallible>(respond(&world, request, is_mcp).await) }
        });
        tracker.spawn(async move {
            // How a connection ends is its client's business.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(world: &World, request: Request<Incoming>, is_mcp: bool) -> Response<Full<Bytes>> {
    let (parts, body) = request.into_parts();
    let authorization = parts.headers.get(AUTHORIZATION).map(|field| field.to_str().unwrap().to_owned());
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let heard = Heard {
        is_mcp,
        path: parts.uri.path().to_owned(),
        query: pairs(parts.uri.query().unwrap_or_default()),
        authorization,
        body,
    };
    world.state.lock().unwrap().heard.push(heard.clone());
    let (status, fields, text) = world.answer(&heard, &parts.method);
    let mut response = Response::builder().status(status);
    if fields.iter().all(|(name, _)| name != CONTENT_TYPE) {
        response = response.header(CONTENT_TYPE, "application/json");
    }
    for (name, value) in fields {
        response = response.header(name, value);
    }
    response.body(Full::new(Bytes::from(text))).unwrap()
}

/// The parameters of a query or a form; each comes once.
pub(crate) fn pairs(text: &str) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap();
        assert_eq!(pairs.insert(decoded(name), decoded(value)), None, "{name} comes twice");
    }
    pairs
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(hex, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).unwrap()
}
