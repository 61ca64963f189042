//! Servers that are not to be trusted, and ones that do not work.

use midwire::peer::client::auth::AuthSettings;
use serde_json::json;

use crate::world::{Manner, World};
use crate::{call, check_conduct, client, follow, known};

/// What happens at one kind of server.
struct Row {
    manner: Manner,
    /// Words of the error.
    words: &'static str,
    /// Registrations, sign-ins and token requests before the client stops.
    reached: [usize; 3],
}

fn row(manner: Manner, words: &'static str, reached: [usize; 3]) -> Row {
    Row { manner, words, reached }
}

fn issuer(members: serde_json::Value) -> Manner {
    Manner { issuer: members, ..Manner::default() }
}

fn redirect(redirect: &'static str) -> Manner {
    Manner { redirect, ..Manner::default() }
}

fn token(members: serde_json::Value) -> Manner {
    Manner { token: members, ..Manner::default() }
}

async fn check(rows: Vec<Row>) {
    for Row { manner, words, reached } in rows {
        let name = format!("{manner:?}");
        let world = World::start(manner).await;
        let error = call(&client(&world, follow())).await.unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
        let counts = ["/register", "/authorize", "/token"].map(|path| world.count(path));
        assert_eq!(counts, reached, "{name}: {error}");
        for secret in world.secrets() {
            assert!(!error.contains(&secret), "{name}: {error}");
        }
        check_conduct(&world);
    }
}

#[tokio::test]
async fn metadata_that_is_not_to_be_used() {
    let metadata = |metadata| Manner { metadata, ..Manner::default() };
    check(vec![
        row(
            Manner { resource: "https://evil.example/team/mcp", ..Manner::default() },
            "is for https://evil",
            [0; 3],
        ),
        row(Manner { resource: "{host}/other", ..Manner::default() }, "the metadata is for", [0; 3]),
        row(Manner { metadata_at: "/elsewhere", ..Manner::default() }, "cannot be read", [0; 3]),
        row(
            Manner { challenge: "", metadata_at: "/elsewhere", ..Manner::default() },
            "/.well-known/oauth-protected-resource: status 404",
            [0; 3],
        ),
        row(
            Manner { challenge: "Bearer resource_metadata=\"http://192.0.2.1/meta\"", ..Manner::default() },
            "https only",
            [0; 3],
        ),
        row(Manner { challenge: "Basic realm=\"x\"", ..Manner::default() }, "wants Basic", [0; 3]),
        row(metadata(json!({ "authorization_servers": [] })), "no authorization server", [0; 3]),
        row(metadata(json!({ "authorization_servers": ["http://192.0.2.1"] })), "https only", [0; 3]),
        row(metadata(json!({ "resource": 1 })), "cannot be read", [0; 3]),
        row(issuer(json!({ "issuer": "https://attacker.example" })), "calls itself https://attacker", [0; 3]),
        row(issuer(json!({ "issuer": "{as}/" })), "calls itself", [0; 3]),
        row(issuer(json!({ "code_challenge_methods_supported": [] })), "PKCE", [0; 3]),
        row(issuer(json!({ "code_challenge_methods_supported": ["plain"] })), "PKCE", [0; 3]),
        row(issuer(json!({ "authorization_endpoint": "http://192.0.2.1/a" })), "https only", [0; 3]),
        row(issuer(json!({ "token_endpoint": null })), "offers no token endpoint", [0; 3]),
        row(issuer(json!({ "token_endpoint": "http://192.0.2.1/t" })), "https only", [0; 3]),
        row(issuer(json!({ "registration_endpoint": null })), "give --client-id", [0; 3]),
        row(issuer(json!({ "registration_endpoint": "{as}/nowhere" })), "refuses a registration", [0; 3]),
        row(issuer(json!({ "registration_endpoint": "http://192.0.2.1/r" })), "https only", [0; 3]),
    ])
    .await;
}

#[tokio::test]
async fn answers_of_a_sign_in_that_are_not_to_be_believed() {
    let named = json!({ "authorization_response_iss_parameter_supported": true });
    check(vec![
        row(redirect("code={code}&state=other"), "its state", [1, 1, 0]),
        row(redirect("code={code}"), "its state", [1, 1, 0]),
        row(
            redirect("code={code}&state={state}&iss=https%3A%2F%2Fevil.example"),
            "another issuer",
            [1, 1, 0],
        ),
        row(redirect("code={code}&state={state}&iss={as}/"), "another issuer", [1, 1, 0]),
        row(issuer(named), "does not name its issuer", [1, 1, 0]),
        row(
            redirect("error=access_denied&error_description=not%20today&state={state}"),
            "(not today)",
            [1, 1, 0],
        ),
        row(
            redirect("error=x&error_description=call%20us&state={state}&iss=https%3A%2F%2Fevil.example"),
            "another issuer",
            [1, 1, 0],
        ),
        row(redirect("state={state}"), "neither a code nor an error", [1, 1, 0]),
        row(redirect(""), "status 200 and no way back", [1, 1, 0]),
    ])
    .await;
}

#[tokio::test]
async fn tokens_that_are_none_and_tokens_that_do_not_help() {
    let refused = json!({ "status": 400, "error": "invalid_grant", "error_description": "no" });
    let step_up = Manner { call_scope: "write", ..Manner::default() };
    check(vec![
        row(token(refused), "refuses a token: invalid_grant (no)", [1, 1, 1]),
        row(token(json!({ "status": 500 })), "refuses a token: status 500", [1, 1, 1]),
        row(token(json!({ "token_type": "DPoP" })), "not Bearer", [1, 1, 1]),
        row(token(json!({ "access_token": null })), "is missing", [1, 1, 1]),
        row(token(json!({ "access_token": "a\r\nx: y" })), "cannot be sent", [1, 1, 1]),
        // A token for somebody else is refused by the server, and asking again would bring the same.
        row(Manner { other_audience: true, ..Manner::default() }, "has just given", [1, 1, 1]),
        // Wider and wider in vain.
        row(Manner { grants_nothing: true, ..step_up.clone() }, "were not granted", [1, 3, 3]),
        row(
            Manner { token: json!({ "scope": "write", "access_token": "ACCESS-2" }), ..step_up },
            "which has all scopes that are wanted",
            [1, 1, 1],
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_secret_is_for_one_authorization_server() {
    let world = World::start(Manner { secret: "pw", ..Manner::default() }).await;
    let own = Some("https://as.example".to_owned());
    let settings = AuthSettings { client: Some(known(Some("pw"), own)), ..follow() };
    let error = call(&client(&world, settings)).await.unwrap_err().to_string();
    assert!(error.contains("registered with https://as.example"), "{error}");
    // A secret that is refused, by a server that repeats it.
    let repeating = json!({ "status": 401, "error": "invalid_client", "error_description": "wrong: s3cret" });
    let world = World::start(token(repeating)).await;
    let settings = AuthSettings { client: Some(known(Some("s3cret"), None)), ..follow() };
    let error = call(&client(&world, settings)).await.unwrap_err().to_string();
    assert!(error.contains("invalid_client (wrong: ***)"), "{error}");
    check_conduct(&world);
}
