//! The same on the command line.

use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use crate::world::{Manner, World};

/// Runs `midwire call list` at the server without a terminal; exit code, standard output and error.
async fn run(world: &World, more: &[&str]) -> (i32, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_midwire"))
        .args(["call", "list", "--modern", "--url", &world.mcp])
        .args(more)
        .envs([("BAD", "s3cret-token"), ("PW", "pw"), ("EMPTY", "")])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

#[tokio::test]
async fn a_script_is_told_what_is_needed() {
    // Arguments; exit code; a word of what is printed.
    let rows: [(&[&str], i32, &str); 15] = [
        (&[], 2, "nobody can sign in here"),
        (&["--json"], 2, "nobody can sign in here"),
        (&["--no-auth"], 1, "refused with status 401: the server wants authorization"),
        (&["--no-auth", "--json"], 1, "\"status\":401"),
        (&["--bearer-env", "BAD"], 2, "the server refuses the token"),
        (&["--bearer-env", "BAD", "--json"], 2, "the server refuses the token"),
        (&["--bearer-env", "EMPTY"], 2, "EMPTY is empty"),
        (&["--bearer-env", "NOT_THERE_AT_ALL"], 2, "NOT_THERE_AT_ALL"),
        (&["--grant", "client-credentials"], 2, "needs --client-id"),
        (
            &["--grant", "client-credentials", "--client-id", "c", "--client-key", "/no/such/key"],
            2,
            "/no/such/key",
        ),
        (&["--assertion-env", "BAD"], 2, "--client-id"),
        (&["--assertion-env", "BAD", "--client-id", "c"], 2, "refuses a token"),
        (&["--id-token-env", "BAD", "--client-id", "c"], 2, "--idp"),
        (&["--client-metadata-url", "http://c.example/c"], 2, "is no https URL"),
        (
            &["--grant", "client-credentials", "--client-id", "c", "--client-secret-env", "PW"],
            0,
            "\"tools\":[]",
        ),
    ];
    for (args, code, word) in rows {
        let world = World::start(Manner { secret: "pw", ..Manner::default() }).await;
        let (got, out, err) = run(&world, args).await;
        assert_eq!(got, code, "{args:?}: {out} {err}");
        assert!(out.contains(word) || err.contains(word), "{args:?}: {out} {err}");
        for secret in world.secrets().iter().map(String::as_str).chain(["s3cret-token"]) {
            assert!(!out.contains(secret) && !err.contains(secret), "{args:?}: {out} {err}");
        }
    }
}

#[tokio::test]
async fn a_token_at_hand_is_sent_and_no_other_is_fetched() {
    let world = World::start(Manner { secret: "pw", ..Manner::default() }).await;
    let own = ["--grant", "client-credentials", "--client-id", "c", "--client-secret-env", "PW"];
    let (code, _, err) = run(&world, &own).await;
    assert_eq!(code, 0, "{err}");
    // The first token that this server gives.
    let token = world.secrets().into_iter().find(|secret| secret.starts_with("ACCESS-")).unwrap();
    assert_eq!(token, "ACCESS-1");
    let before = world.heard().len();
    let done = Command::new(env!("CARGO_BIN_EXE_midwire"))
        .args(["call", "list", "--modern", "--json", "--bearer-env", "TOKEN", "--url", &world.mcp])
        .env("TOKEN", &token)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{out}");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&object["status"], &object["detail"]["items"]), (&json!(200), &json!([])));
    assert!(!out.contains(&token), "{out}");
    assert!(world.heard()[before..].iter().all(|heard| heard.is_mcp && heard.authorization.is_some()));
}

#[tokio::test]
async fn a_subscription_is_told_apart_by_the_id_that_it_got_in_the_end() {
    let world = World::start(Manner { secret: "pw", ..Manner::default() }).await;
    let done = Command::new(env!("CARGO_BIN_EXE_midwire"))
        .args(["call", "listen", "--watch", "tools", "--modern", "--json", "--url", &world.mcp])
        .args(["--grant", "client-credentials", "--client-id", "c", "--client-secret-env", "PW"])
        .env("PW", "pw")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let (out, err) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    let bodies: Vec<String> = world.heard().into_iter().map(|heard| heard.body).collect();
    let listens = bodies.iter().filter(|body| body.contains("subscriptions/listen")).count();
    assert_eq!(listens, 2, "refused first, for want of a token: {out} {err}");
    assert!(!out.contains("fault"), "{out}");
    let events: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["granted", "ended"], "{out}");
}
