//! Eras settled on paused time over pipes and over sockets, by servers that say what a table says.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::*;
use crate::peer::client::scripted;

fn policy(rule: EraRule) -> EraPolicy {
    EraPolicy { rule, ..EraPolicy::default() }
}

/// What a scripted server says to one method; `None`: nothing.
type Script = fn(&Value) -> Option<Value>;

#[expect(clippy::unnecessary_wraps, reason = "a script may say nothing as well")]
fn result(request: &Value, result: &Value) -> Option<Value> {
    Some(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
}

#[expect(clippy::unnecessary_wraps, reason = "a script may say nothing as well")]
fn error(request: &Value, code: i64, data: &Value) -> Option<Value> {
    let error = json!({ "code": code, "message": "no", "data": data });
    Some(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }))
}

fn session(request: &Value) -> Value {
    let version = &request["params"]["protocolVersion"];
    let info = json!({ "name": "old", "version": "1" });
    json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": info })
}

/// Settles over pipes with a server that keeps to a script, and says what it was sent.
async fn over_pipes(policy: &EraPolicy, script: Script) -> (EraReport, Vec<String>, Client) {
    let (client_side, server_in) = tokio::io::duplex(1 << 16);
    let (mut server_out, client_read) = tokio::io::duplex(1 << 16);
    let client = Client::over_pipes(client_read, client_side);
    let mut lines = BufReader::new(server_in).lines();
    let (seen, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let serving = async move {
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            seen.send(message["method"].as_str().unwrap().to_owned()).unwrap();
            if message["method"] == "quit" {
                return;
            }
            if let Some(answer) = script(&message) {
                if answer == json!("close") {
                    return;
                }
                let _ = server_out.write_all(format!("{answer}\n").as_bytes()).await;
            }
        }
    };
    let options = CallOptions::default();
    let asking = async {
        let report = client.settle(policy, &options).await.unwrap();
        if report.settled.is_some() {
            let again = client.settle(policy, &options).await.unwrap();
            assert!(again.steps.is_empty(), "a settled era is not asked for again");
        }
        // Notifications are written before the pipe that carries them is asked for more.
        let _ = client.notify("quit").await;
        report
    };
    let (report, ()) = tokio::join!(asking, serving);
    let mut methods = Vec::new();
    while let Ok(method) = heard.try_recv() {
        methods.push(method);
    }
    methods.retain(|method| method != "quit");
    (report, methods, client)
}

/// A name, the rule of the client, what the server does, the era that is found, and what was sent.
type Row<'a, S> = (&'a str, EraRule, S, Option<Era>, &'a [&'a str]);

fn era_of(report: &EraReport) -> Option<Era> {
    report.settled.as_ref().map(|settled| settled.speech.era)
}

#[tokio::test(start_paused = true)]
async fn an_older_handshake_goes_only_to_those_who_may_get_it() {
    use EraRule::{Allowed, Legacy, Lenient, Modern, Strict};
    const DISCOVER: &[&str] = &["server/discover"];
    const TWICE: &[&str] = &["server/discover", "server/discover"];
    const OPENED: &[&str] = &["server/discover", "initialize", "notifications/initialized"];
    const CANCELLED: &[&str] = &["server/discover", "notifications/cancelled"];
    const AFTER_SILENCE: &[&str] =
        &["server/discover", "notifications/cancelled", "initialize", "notifications/initialized"];
    let modern: Script = |m| {
        result(
            m,
            &json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} }),
        )
    };
    let other_modern: Script = |m| {
        result(
            m,
            &json!({ "resultType": "complete", "supportedVersions": ["2027-01-01"], "capabilities": {} }),
        )
    };
    let refuses: Script = |m| error(m, -32022, &json!({ "supported": ["2027-01-01"], "requested": "x" }));
    let refuses_what_it_offers: Script =
        |m| error(m, -32022, &json!({ "supported": ["2026-07-28"], "requested": "x" }));
    let refuses_once: Script = |m| {
        if m["id"] == 1 {
            return error(m, -32022, &json!({ "supported": ["2026-07-28"], "requested": "x" }));
        }
        let found =
            json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} });
        result(m, &found)
    };
    let offers_old: Script = |m| match m["method"].as_str() {
        Some("server/discover") => error(m, -32022, &json!({ "supported": ["2025-11-25"] })),
        Some("initialize") => result(m, &session(m)),
        _ => None,
    };
    let mismatch: Script = |m| error(m, -32020, &json!(null));
    let capability: Script = |m| error(m, -32021, &json!(null));
    let old: Script = |m| match m["method"].as_str() {
        Some("server/discover") => error(m, -32601, &json!(null)),
        Some("initialize") => result(m, &session(m)),
        _ => None,
    };
    let silent: Script = |m| if m["method"] == "initialize" { result(m, &session(m)) } else { None };
    let gone: Script = |_| Some(json!("close"));
    let empty: Script = |m| result(m, &json!({ "resultType": "complete" }));
    let (new, last_old) = (Some(Era::V2026_07_28), Some(Era::V2025_11_25));
    let cases: [Row<'_, Script>; 22] = [
        ("modern", Strict, modern, new, DISCOVER),
        ("modern is never initialized", Allowed, modern, new, DISCOVER),
        ("no common revision", Strict, other_modern, None, DISCOVER),
        ("no common revision", Allowed, other_modern, None, DISCOVER),
        ("refuses", Allowed, refuses, None, DISCOVER),
        ("refuses", Lenient, refuses, None, DISCOVER),
        ("refuses once", Strict, refuses_once, new, TWICE),
        ("refuses what it offers", Allowed, refuses_what_it_offers, None, TWICE),
        ("offers old only", Strict, offers_old, None, DISCOVER),
        ("offers old only", Allowed, offers_old, None, DISCOVER),
        ("offers old only", Lenient, offers_old, last_old, OPENED),
        ("-32020", Allowed, mismatch, new, DISCOVER),
        ("-32021", Allowed, capability, new, DISCOVER),
        ("-32601 alone is no evidence", Strict, old, None, DISCOVER),
        ("old", Allowed, old, last_old, OPENED),
        ("old", Lenient, old, last_old, OPENED),
        ("silent", Strict, silent, None, CANCELLED),
        ("silent", Allowed, silent, last_old, AFTER_SILENCE),
        ("empty", Strict, empty, None, DISCOVER),
        ("gone", Strict, gone, None, DISCOVER),
        ("pinned", Modern, old, new, &[]),
        ("not asked", Legacy, old, last_old, &["initialize", "notifications/initialized"]),
    ];
    for (name, rule, script, era, sent) in cases {
        let (report, methods, client) = over_pipes(&policy(rule), script).await;
        assert_eq!(era_of(&report), era, "{name} {rule:?}: {report:?}");
        assert_eq!(methods, sent, "{name} {rule:?}: {report:?}");
        assert_eq!(report.is_gone, name == "gone", "{name}");
        let spoken = era.map_or_else(Speech::modern, Speech::of);
        assert_eq!(client.speech(), spoken, "{name} {rule:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_gives_control_back_at_the_limit() {
    let limits = EraPolicy { probe_limit: Ms(275), initialize_limit: Ms(500), ..policy(EraRule::Allowed) };
    let clock = crate::time::TimerClock::start();
    let (report, methods, _) = over_pipes(&limits, |_| None).await;
    assert_eq!((era_of(&report), clock.now()), (None, Ms(275 + 500)));
    // An opening is never cancelled (CAN-04).
    assert_eq!(methods, ["server/discover", "notifications/cancelled", "initialize"]);
}

#[tokio::test(start_paused = true)]
async fn each_defect_of_an_opening_alone_leaves_the_era_unknown() {
    let cases: [(&str, Script); 13] = [
        ("jsonrpc", |m| Some(json!({ "id": m["id"], "result": session(m) }))),
        ("id", |m| Some(json!({ "jsonrpc": "2.0", "id": 99, "result": session(m) }))),
        ("id type", |m| Some(json!({ "jsonrpc": "2.0", "id": m["id"].to_string(), "result": session(m) }))),
        ("both", |m| Some(json!({ "jsonrpc": "2.0", "id": m["id"], "result": session(m), "error": {} }))),
        ("error", |m| error(m, -32600, &json!(null))),
        ("result", |m| result(m, &json!("ready"))),
        ("revision", |m| result(m, &with(m, "protocolVersion", &json!("2026-07-28")))),
        ("revision unknown", |m| result(m, &with(m, "protocolVersion", &json!("2025-01-01")))),
        ("revision type", |m| result(m, &with(m, "protocolVersion", &json!(20_251_125)))),
        ("capabilities", |m| result(m, &with(m, "capabilities", &json!([])))),
        ("name", |m| result(m, &with(m, "serverInfo", &json!({ "name": "", "version": "1" })))),
        ("version", |m| result(m, &with(m, "serverInfo", &json!({ "name": "old" })))),
        ("info", |m| result(m, &with(m, "serverInfo", &json!(null)))),
    ];
    for (name, script) in cases {
        let (report, methods, client) = over_pipes(&policy(EraRule::Legacy), script).await;
        assert_eq!(era_of(&report), None, "{name}: {report:?}");
        assert!(!methods.iter().any(|method| method == "notifications/initialized"), "{name}: {methods:?}");
        assert_eq!(client.speech(), Speech::modern(), "{name}");
    }
}

fn with(request: &Value, member: &str, value: &Value) -> Value {
    let mut session = session(request);
    session[member] = value.clone();
    session
}

/// What an HTTP server answers: a status line with fields, and a body.
type Answering = fn(&str, &Value) -> (&'static str, String);

/// Settles over HTTP with a server that answers each request as told, and says what it was sent.
async fn over_http(policy: &EraPolicy, answering: Answering) -> (EraReport, Vec<String>) {
    let answering = move |head: &str, body: &Value| {
        let (start, body) = answering(head, body);
        (start.to_owned(), body)
    };
    let (url, mut requests) = scripted::serve(answering).await;
    let client = Client::http(&url).unwrap();
    let report = client.settle(policy, &CallOptions::default()).await.unwrap();
    client.close().await.unwrap();
    let mut sent = Vec::new();
    while let Ok((head, body)) = requests.try_recv() {
        let verb = head.split(' ').next().unwrap_or_default();
        let method = body["method"].as_str().unwrap_or_default();
        let session = if head.contains("mcp-session-id: s-1") { " in session" } else { "" };
        let said = format!("{verb} {method}");
        sent.push(format!("{}{session}", said.trim_end()));
    }
    (report, sent)
}

#[tokio::test]
async fn on_http_the_body_of_a_refusal_decides_and_a_session_is_kept_to() {
    use EraRule::{Allowed, Strict};
    let old: Answering = |head, body| match body["method"].as_str() {
        Some("initialize") => {
            let answer = json!({ "jsonrpc": "2.0", "id": body["id"], "result": session(body) });
            assert!(!head.contains("mcp-method") && !head.contains("mcp-protocol-version"), "{head}");
            ("200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s-1", answer.to_string())
        }
        Some("server/discover") => ("400 Bad Request", "Bad Request: no session".to_owned()),
        Some(_) => {
            assert!(head.contains("mcp-protocol-version: 2025-11-25"), "{head}");
            ("202 Accepted", String::new())
        }
        None => ("405 Method Not Allowed", String::new()),
    };
    let modern_without_discover: Answering = |_, body| {
        let answer =
            json!({ "jsonrpc": "2.0", "id": body["id"], "error": { "code": -32601, "message": "" } });
        ("404 Not Found\r\nContent-Type: application/json", answer.to_string())
    };
    let mismatch: Answering = |_, body| {
        let answer =
            json!({ "jsonrpc": "2.0", "id": body["id"], "error": { "code": -32020, "message": "" } });
        ("400 Bad Request\r\nContent-Type: application/json", answer.to_string())
    };
    let down: Answering = |_, _| ("503 Service Unavailable", "busy".to_owned());
    let web: Answering = |_, _| ("404 Not Found", "<html>".to_owned());
    let (new, last_old) = (Some(Era::V2026_07_28), Some(Era::V2025_11_25));
    let opened = ["post server/discover", "post initialize", "post notifications/initialized in session"];
    let cases: [Row<'_, Answering>; 7] = [
        ("old", Strict, old, None, &opened[..1]),
        ("old", Allowed, old, last_old, &opened),
        ("no discover", Allowed, modern_without_discover, new, &opened[..1]),
        ("-32020", Allowed, mismatch, new, &opened[..1]),
        ("down", Allowed, down, None, &opened[..1]),
        ("a web server", Strict, web, None, &opened[..1]),
        ("a web server", Allowed, web, None, &["post server/discover", "post initialize", "get"]),
    ];
    for (name, rule, answering, era, expected) in cases {
        let (report, sent) = over_http(&policy(rule), answering).await;
        assert_eq!(era_of(&report), era, "{name} {rule:?}: {report:?}");
        // What follows runs beside: the stream of the session, and its end.
        assert_eq!(
            sent.get(..expected.len()),
            Some(&expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..]),
            "{name} {rule:?}"
        );
        let more = &sent[expected.len()..];
        assert!(
            more.iter().all(|said| ["get in session", "delete in session"].contains(&said.as_str())),
            "{more:?}"
        );
        assert_eq!(more.iter().any(|said| said.starts_with("delete")), era == last_old, "{name} {more:?}");
    }
}
