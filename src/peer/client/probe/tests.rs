//! A server that keeps to every point, and the same with each defect alone.

use serde_json::{Value, json};

use super::*;
use crate::peer::client::scripted::{self, Answer};
use crate::peer::server::{ServerOptions, serve_http, serve_pipes};
use tokio_util::sync::CancellationToken;

const LIMIT: Ms = Ms(2000);

/// What the scripted server does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    OtherId,
    OtherType,
    AnsweredNotification,
    NoMirror,
    MirrorCode,
    VersionStatus,
    NoSupported,
    OtherRequested,
    MethodStatus,
    Get,
    Delete,
    Origin,
    Session,
    /// Dual, so that its GET is none.
    DualGet,
}

fn refusal(status: &str, body: &Value, code: i64, data: &Value) -> Answer {
    let error = json!({ "code": code, "message": "no", "data": data });
    scripted::json(status, &json!({ "jsonrpc": "2.0", "id": body["id"], "error": error }))
}

/// One answer of a modern server with a defect.
fn answer(defect: Defect, head: &str, body: &Value) -> Answer {
    let method = body["method"].as_str().unwrap_or_default();
    let (bad, missing) = ("400 Bad Request", "404 Not Found");
    if head.starts_with("get") || head.starts_with("delete") {
        let is_wrong = (head.starts_with("get") && matches!(defect, Defect::Get | Defect::DualGet))
            || (head.starts_with("delete") && defect == Defect::Delete);
        return (if is_wrong { "200 OK" } else { "405 Method Not Allowed" }.to_owned(), String::new());
    }
    if head.contains("origin:") && defect != Defect::Origin {
        return ("403 Forbidden".to_owned(), String::new());
    }
    if body.get("id").is_none() {
        let is_wrong = defect == Defect::AnsweredNotification;
        return (if is_wrong { "200 OK" } else { "202 Accepted" }.to_owned(), String::new());
    }
    if !head.contains(&format!("mcp-method: {method}")) && defect != Defect::NoMirror {
        let code = if defect == Defect::MirrorCode { -32600 } else { -32020 };
        return refusal(bad, body, code, &json!(null));
    }
    let version = &body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
    if version != "2026-07-28" {
        let status = if defect == Defect::VersionStatus { "200 OK" } else { bad };
        let data = match defect {
            Defect::NoSupported => json!({ "requested": version }),
            Defect::OtherRequested => json!({ "supported": ["2026-07-28"], "requested": "2026-07-28" }),
            _ => json!({ "supported": ["2026-07-28"], "requested": version }),
        };
        return refusal(status, body, -32022, &data);
    }
    if method != "server/discover" {
        let status = if defect == Defect::MethodStatus { "200 OK" } else { missing };
        return refusal(status, body, -32601, &json!(null));
    }
    let versions =
        if defect == Defect::DualGet { json!(["2026-07-28", "2025-11-25"]) } else { json!(["2026-07-28"]) };
    let result = json!({ "resultType": "complete", "supportedVersions": versions, "capabilities": {} });
    // The client that settles the era asks under numbers.
    let id =
        if defect == Defect::OtherId && body["id"].is_string() { json!("other") } else { body["id"].clone() };
    let (start, text) = scripted::json("200 OK", &json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    match defect {
        Defect::OtherType if body["id"].is_string() => {
            ("200 OK\r\nContent-Type: text/plain".to_owned(), text)
        }
        Defect::Session => (format!("{start}\r\nMcp-Session-Id: s-1"), text),
        _ => (start, text),
    }
}

/// The points that are not ok, by name.
fn off(report: &ProbeReport) -> Vec<(&'static str, PointState)> {
    let off = report.points.iter().filter(|point| point.state != PointState::Ok);
    off.map(|point| (point.name, point.state)).collect()
}

#[tokio::test]
async fn each_defect_violates_its_own_point_and_no_other() {
    let cases = [
        (Defect::None, None),
        (Defect::OtherId, Some("endpoint")),
        (Defect::OtherType, Some("endpoint")),
        (Defect::AnsweredNotification, Some("media")),
        (Defect::NoMirror, Some("mirror")),
        (Defect::MirrorCode, Some("mirror")),
        (Defect::VersionStatus, Some("version")),
        (Defect::NoSupported, Some("version")),
        (Defect::OtherRequested, Some("version")),
        (Defect::MethodStatus, Some("unknown method")),
        (Defect::Get, Some("verbs")),
        (Defect::Delete, Some("verbs")),
        (Defect::Origin, Some("origin")),
        (Defect::Session, Some("session")),
        (Defect::DualGet, None),
    ];
    for (defect, violated) in cases {
        let (url, _requests) = scripted::serve(move |head, body| answer(defect, head, body)).await;
        let client = Client::http(&url).unwrap();
        let report = probe(client, &EraPolicy::default(), LIMIT).await.unwrap();
        let expected: Vec<_> = violated.map(|name| (name, PointState::Violated)).into_iter().collect();
        assert_eq!(off(&report), expected, "{defect:?}: {:#?}", report.points);
        assert_eq!(report.is_clean(), violated.is_none(), "{defect:?}");
        assert_eq!(report.points.len(), 8);
    }
}

#[tokio::test]
async fn a_server_that_is_not_modern_is_not_judged_by_modern_points() {
    let web = |_: &str, _: &Value| ("404 Not Found".to_owned(), "<html>".to_owned());
    let (url, _requests) = scripted::serve(web).await;
    let report = probe(Client::http(&url).unwrap(), &EraPolicy::default(), LIMIT).await.unwrap();
    assert!(report.era.settled.is_none() && !report.is_clean());
    let judged: Vec<_> =
        report.points.iter().filter(|point| point.state != PointState::NotObserved).collect();
    assert!(judged.iter().all(|point| point.name == "origin"), "{judged:?}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test lets its server end with the runtime")]
async fn the_reference_server_keeps_to_every_point_on_both_transports() {
    let any = "127.0.0.1:0".parse().unwrap();
    let (addr, serving) = serve_http(any, ServerOptions::default(), CancellationToken::new()).await.unwrap();
    tokio::spawn(serving);
    let client = Client::http(&format!("http://{addr}/mcp")).unwrap();
    let report = probe(client, &EraPolicy::default(), LIMIT).await.unwrap();
    assert!(report.is_clean() && off(&report).is_empty(), "{:#?}", report.points);
    let (client_side, server_in) = tokio::io::duplex(1 << 16);
    let (server_out, client_read) = tokio::io::duplex(1 << 16);
    let options = ServerOptions::default();
    tokio::spawn(serve_pipes(options, server_in, server_out, CancellationToken::new()));
    let client = Client::over_pipes(client_read, client_side);
    let report = probe(client, &EraPolicy::default(), LIMIT).await.unwrap();
    // A server that is no process has no end to be seen.
    assert_eq!(off(&report), [("end", PointState::NotObserved)], "{:#?}", report.points);
}
