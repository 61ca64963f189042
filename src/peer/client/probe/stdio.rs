//! The points of pipes.

use super::{Point, PointState};
use crate::peer::client::message::{Outgoing, Speech};
use crate::peer::client::{CallOptions, Client, Outcome, Params, PeerError};
use crate::spec::era::Era;
use crate::spec::{codes, methods};

/// A revision that no server speaks.
const FUTURE: &str = "2999-12-31";
/// A method that no server has.
const NO_METHOD: &str = "midwire/no-such-method";

/// Looks at each point, the last of which is how the server ends.
pub(super) async fn look(
    client: Client,
    is_modern: bool,
    options: &CallOptions,
) -> Result<Vec<Point>, PeerError> {
    let mut points = Vec::new();
    let mut point = |name, rule, sent: String, came: String, state| {
        points.push(Point { name, rule, sent, came, state });
    };
    let not_modern = || "the server has not proven to be modern".to_owned();
    let sent = format!("{} in revision {FUTURE}", methods::DISCOVER);
    if is_modern {
        let (state, came) = version(&client, options).await?;
        point("version", "VER-01", sent, came, state);
    } else {
        point("version", "VER-01", sent, not_modern(), PointState::NotObserved);
    }
    if client.settled().is_some() {
        let report = client.request(NO_METHOD, Params::new(), options, |_| {}).await?;
        let (state, came) = match &report.outcome {
            Outcome::Error { code: codes::METHOD_NOT_FOUND, .. } => {
                (PointState::Ok, "error -32601".to_owned())
            }
            Outcome::Error { code, .. } => (PointState::Violated, format!("error {code}: not -32601")),
            Outcome::GivenUp(_) | Outcome::Lost(_) => (PointState::Violated, "no answer".to_owned()),
            _ => (PointState::Violated, "no error".to_owned()),
        };
        point("unknown method", "RPC-28", NO_METHOD.to_owned(), came, state);
        let before = client.strays();
        client.notify("notifications/midwire-no-such-notification").await?;
        // The next answer comes after whatever the notification has caused.
        client.request(NO_METHOD, Params::new(), options, |_| {}).await?;
        let strays = client.strays() - before;
        let (state, came) = match strays {
            0 => (PointState::Ok, "nothing".to_owned()),
            _ => (PointState::Violated, "an answer, or what is no message".to_owned()),
        };
        point("notification", "RPC-12", "a notification that is not known".to_owned(), came, state);
    } else {
        for (name, rule) in [("unknown method", "RPC-28"), ("notification", "RPC-12")] {
            let why = "the era is not known".to_owned();
            point(name, rule, "nothing".to_owned(), why, PointState::NotObserved);
        }
    }
    let strays = client.strays();
    let state = if strays == 0 { PointState::Ok } else { PointState::Violated };
    let came = format!("{strays} lines that are no message or belong to nothing");
    point("output", "STD-01", "nothing more: all that was written".to_owned(), came, state);
    let exit = client.close().await?;
    let (state, came) = match exit {
        None => (PointState::NotObserved, "it is no process of ours".to_owned()),
        Some(exit) if exit.was_forced => (PointState::Violated, "ended by a signal".to_owned()),
        Some(exit) => (PointState::Ok, format!("ended by itself, {}", exit.status)),
    };
    point("end", "STD-09", "the end of its input".to_owned(), came, state);
    Ok(points)
}

async fn version(client: &Client, options: &CallOptions) -> Result<(PointState, String), PeerError> {
    let speech = Speech { era: Era::V2026_07_28, version: FUTURE.to_owned() };
    let write = |id| Outgoing::new(id, methods::DISCOVER, Params::new(), options, speech.clone());
    let report = client.send(write, options, |_| {}).await?;
    let Outcome::Error { code, data, .. } = &report.outcome else {
        return Ok((PointState::Violated, "no error".to_owned()));
    };
    if *code != codes::UNSUPPORTED_PROTOCOL_VERSION {
        return Ok((PointState::Violated, format!("error {code}: not -32022")));
    }
    let data: serde_json::Value =
        data.as_ref().and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    let is_whole = data["supported"].is_array() && data["requested"] == FUTURE;
    Ok(if is_whole {
        (PointState::Ok, format!("error {code} with what it speaks"))
    } else {
        (PointState::Violated, format!("error {code} without supported and requested"))
    })
}
