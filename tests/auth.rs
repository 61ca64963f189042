//! The reference client at protected servers: with honest ones it comes to a token and uses it rightly,
//! with others it stops before anything of worth is given away.
#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside the test functions")]

#[path = "auth/assertions.rs"]
mod assertions;
#[path = "auth/cli.rs"]
mod cli;
#[path = "auth/dishonest.rs"]
mod dishonest;
#[path = "auth/person.rs"]
mod person;
#[path = "auth/world.rs"]
mod world;

use std::sync::Arc;

use midwire::peer::PeerError;
use midwire::peer::client::auth::{Auth, AuthSettings, Grant, KnownClient, Opener, Secret};
use midwire::peer::client::{CallOptions, Client, Outcome, Report, raw};
use serde_json::json;

use world::{Manner, World};

/// Nobody is asked: the authorization server redirects at once.
pub(crate) fn follow() -> AuthSettings {
    AuthSettings { opener: Opener::Follow, ..AuthSettings::default() }
}

pub(crate) fn client(world: &World, settings: AuthSettings) -> Client {
    let auth = Auth::new(&world.mcp, settings).unwrap();
    Client::http(&world.mcp).unwrap().with_auth(Arc::new(auth))
}

pub(crate) async fn call(client: &Client) -> Result<Report, PeerError> {
    client.call("anything", &raw(&json!({})), &CallOptions::default(), |_| {}).await
}

/// A client that is registered already.
pub(crate) fn known(secret: Option<&str>, issuer: Option<String>) -> KnownClient {
    KnownClient { id: "c".to_owned(), secret: secret.map(Secret::new), key: None, issuer }
}

/// What holds whatever the servers do: secrets are in no URL, tokens go to the server and to nobody
/// else, and every code and token is asked for with what ties it to its request.
pub(crate) fn check_conduct(world: &World) {
    for heard in world.heard() {
        for secret in world.secrets() {
            assert!(!heard.query.values().any(|value| *value == secret), "{heard:?}");
            let has_token = heard.authorization.as_ref().is_some_and(|field| field.contains(&secret));
            assert!(heard.is_mcp || !has_token, "{heard:?}");
            assert!(!heard.is_mcp || !heard.body.contains(&secret), "{heard:?}");
        }
        if heard.path.ends_with("/authorize") {
            let value = |name: &str| heard.query[name].as_str();
            assert_eq!((value("response_type"), value("code_challenge_method")), ("code", "S256"));
            assert!(world.mcp.starts_with(value("resource")) && value("state").len() >= 32, "{heard:?}");
            assert!(!heard.query.contains_key("code_verifier"), "{heard:?}");
        }
        if heard.path.ends_with("/token") {
            assert!(world.mcp.starts_with(&heard.form()["resource"]), "{heard:?}");
        }
    }
}

#[tokio::test]
async fn a_token_is_found_wherever_the_metadata_is() {
    let rows = [
        ("said by the server", Manner::default()),
        (
            "at its path",
            Manner {
                challenge: "Bearer",
                metadata_at: "/.well-known/oauth-protected-resource/team/mcp",
                ..Manner::default()
            },
        ),
        (
            "at the root, for the whole host, and no field",
            Manner {
                challenge: "",
                metadata_at: "/.well-known/oauth-protected-resource",
                resource: "{host}",
                ..Manner::default()
            },
        ),
        ("openid", Manner { issuer_at: "/.well-known/openid-configuration", ..Manner::default() }),
        (
            "a tenant",
            Manner {
                tenant: "/t1",
                issuer_at: "/.well-known/oauth-authorization-server/t1",
                ..Manner::default()
            },
        ),
        (
            "a tenant, openid",
            Manner { tenant: "/t1", issuer_at: "/.well-known/openid-configuration/t1", ..Manner::default() },
        ),
        (
            "a tenant, openid behind it",
            Manner { tenant: "/t1", issuer_at: "/t1/.well-known/openid-configuration", ..Manner::default() },
        ),
        (
            "an issuer that says who it is",
            Manner {
                issuer: json!({ "authorization_response_iss_parameter_supported": true }),
                redirect: "code={code}&state={state}&iss={as}",
                ..Manner::default()
            },
        ),
    ];
    for (name, manner) in rows {
        let world = World::start(manner).await;
        let client = client(&world, follow());
        let report = call(&client).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(matches!(report.outcome, Outcome::Complete(_)), "{name}: {report:?}");
        assert_eq!(report.id.to_string(), "2", "{name}: made again under a new id");
        call(&client).await.unwrap();
        assert_eq!((world.count("/authorize"), world.calls()), (1, 3), "{name}");
        check_conduct(&world);
    }
}

#[tokio::test]
async fn calls_at_the_same_time_share_one_token() {
    let world = World::start(Manner::default()).await;
    let client = client(&world, follow());
    let (a, b) = tokio::join!(call(&client), call(&client));
    assert!(matches!(a.unwrap().outcome, Outcome::Complete(_)));
    assert!(matches!(b.unwrap().outcome, Outcome::Complete(_)));
    assert_eq!((world.count("/authorize"), world.count("/register")), (1, 1));
    check_conduct(&world);
}

#[tokio::test]
async fn a_narrow_token_is_widened_and_keeps_what_it_had() {
    let challenge = "Bearer scope=\"read\", resource_metadata=\"{host}/meta\"";
    let world = World::start(Manner { challenge, call_scope: "write", ..Manner::default() }).await;
    let client = client(&world, follow());
    let report = call(&client).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Complete(_)), "{report:?}");
    let scopes: Vec<String> =
        world.heard().iter().filter_map(|heard| heard.query.get("scope").cloned()).collect();
    assert_eq!(scopes, ["read", "read write"]);
    assert_eq!(world.count("/register"), 1);
    check_conduct(&world);
}

#[tokio::test]
async fn a_token_that_is_over_is_renewed_before_anybody_is_asked() {
    // Answer of the token endpoint for renewals; sign-ins for three calls.
    for (manner, sign_ins, renewals) in [
        (Manner { uses: 1, ..Manner::default() }, 1, 2),
        (Manner { uses: 1, token: json!({ "refresh_token": null }), ..Manner::default() }, 3, 0),
        (Manner { uses: 1, token: json!({ "refresh_token": "unknown" }), ..Manner::default() }, 3, 2),
    ] {
        let name = format!("{manner:?}");
        let world = World::start(manner).await;
        let client = client(&world, follow());
        for _ in 0..3 {
            let report = call(&client).await.unwrap();
            assert!(matches!(report.outcome, Outcome::Complete(_)), "{name}: {report:?}");
        }
        let heard = world.heard();
        let forms = heard.iter().filter(|heard| heard.path == "/token").map(world::Heard::form);
        let renewed = forms.filter(|form| form["grant_type"] == "refresh_token").count();
        assert_eq!((world.count("/authorize"), renewed), (sign_ins, renewals), "{name}");
        check_conduct(&world);
    }
}

#[tokio::test]
async fn a_known_client_proves_itself_as_the_server_wants_it() {
    let methods = |names: &[&str]| json!({ "token_endpoint_auth_methods_supported": names });
    // Grant; what the server takes; whether the proof is a field.
    let rows = [
        (Grant::Code, methods(&["client_secret_post", "client_secret_basic"]), true),
        (Grant::Code, methods(&["client_secret_post"]), false),
        (Grant::Code, json!({ "token_endpoint_auth_methods_supported": null }), true),
        (Grant::ClientCredentials, methods(&["client_secret_basic"]), true),
        (Grant::ClientCredentials, methods(&["client_secret_post"]), false),
    ];
    for (grant, issuer, is_field) in rows {
        let name = format!("{grant:?} {issuer}");
        let world = World::start(Manner { issuer, secret: "pw", ..Manner::default() }).await;
        let settings =
            AuthSettings { client: Some(known(Some("pw"), None)), grant: grant.clone(), ..follow() };
        let report = call(&client(&world, settings)).await.unwrap();
        assert!(matches!(report.outcome, Outcome::Complete(_)), "{name}: {report:?}");
        let heard = world.heard();
        let token = heard.iter().find(|heard| heard.path == "/token").unwrap();
        assert_eq!(token.authorization.is_some(), is_field, "{name}");
        assert_eq!(token.form().contains_key("client_secret"), !is_field, "{name}");
        let sign_ins = usize::from(grant == Grant::Code);
        assert_eq!((world.count("/register"), world.count("/authorize")), (0, sign_ins), "{name}");
        check_conduct(&world);
    }
}

#[tokio::test]
async fn a_token_goes_to_no_other_server() {
    let (one, other) = (World::start(Manner::default()).await, World::start(Manner::default()).await);
    let settings = || AuthSettings { bearer: Some(Secret::new("mine")), ..follow() };
    let auth = Arc::new(Auth::new(&one.mcp, settings()).unwrap());
    let client = Client::http(&other.mcp).unwrap().with_auth(auth);
    let report = call(&client).await.unwrap();
    assert_eq!((report.status, report.challenge.is_some()), (Some(401), true));
    assert!(other.heard().iter().all(|heard| heard.authorization.is_none()), "{:?}", other.heard());
    for url in ["http://example.test/mcp", "http://192.0.2.1/mcp"] {
        let error = Auth::new(url, settings()).unwrap_err().to_string();
        assert!(error.contains("https only") && !error.contains("mine"), "{error}");
    }
}
