//! Orders to a running peer over a local socket (`docs/control.md`): one JSON object a line, and
//! one line in answer. On connecting, the peer says what it is and which orders it takes, so that
//! other programs of this project can speak the same way with other orders.

use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::faults::{Fault, Faults, Side};
use crate::wire::lines::LineDecoder;

/// Version of the way in which orders are given.
pub const VERSION: u64 = 1;

/// Longest order.
const LINE_LIMIT_BYTES: usize = 4096;

/// Who may give orders at once. ours: a person, a script, and some that hang.
const CONNECTIONS: usize = 8;

/// Takes orders about the switches of one peer until `cancel` fires.
///
/// # Errors
/// When the listener cannot be used.
pub async fn serve(
    listener: StdListener,
    side: Side,
    faults: Arc<Faults>,
    cancel: CancellationToken,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = cancel.cancelled() => return Ok(()),
        };
        let (stream, _) = accepted?;
        // More than so many are turned away.
        if connections.len() < CONNECTIONS {
            let (faults, cancel) = (faults.clone(), cancel.clone());
            connections.spawn(async move {
                tokio::select! {
                    () = cancel.cancelled() => {}
                    ended = converse(stream, side, &faults) => if let Err(error) = ended {
                        tracing::debug!(%error, "a giver of orders left");
                    },
                }
            });
        }
    }
}

async fn converse(mut stream: UnixStream, side: Side, faults: &Faults) -> io::Result<()> {
    let greeting = json!({
        "midwire": "control",
        "version": VERSION,
        "of": side.as_str(),
        "commands": ["fault", "faults"],
    });
    say(&mut stream, &greeting).await?;
    let mut lines = LineDecoder::new(LINE_LIMIT_BYTES);
    let mut buf = [0; LINE_LIMIT_BYTES];
    loop {
        let len = stream.read(&mut buf).await?;
        if len == 0 {
            return Ok(());
        }
        for line in lines.push(buf.get(..len).unwrap_or_default()) {
            let answer = match obey(&line.body, side, faults) {
                Ok(mut answer) => {
                    answer.insert("ok".to_owned(), json!(true));
                    Value::Object(answer)
                }
                Err(why) => json!({ "ok": false, "error": why }),
            };
            say(&mut stream, &answer).await?;
        }
    }
}

async fn say(stream: &mut UnixStream, value: &Value) -> io::Result<()> {
    stream.write_all(format!("{value}\n").as_bytes()).await
}

/// Carries one order out; what it says in answer, or why it could not.
fn obey(line: &[u8], side: Side, faults: &Faults) -> Result<Map<String, Value>, String> {
    let order: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("an order is a JSON object: {error}"))?;
    let answer = match (order.get("fault"), order.get("faults"), order.get("on")) {
        (Some(Value::String(name)), None, Some(Value::Bool(on))) => {
            let fault: Fault = name.parse().map_err(|error| format!("{error}"))?;
            if fault.side() != side {
                return Err(format!("{fault} is a fault of the {}", fault.side().as_str()));
            }
            faults.turn(fault, *on);
            json!({ "fault": fault.as_str(), "on": on })
        }
        (None, Some(Value::String(what)), None) if what == "list" => {
            let all: Vec<Value> = Fault::of(side).map(|fault| describe(fault, faults)).collect();
            json!({ "faults": all })
        }
        _ => {
            return Err(
                r#"unknown order; there are {"fault":NAME,"on":true|false} and {"faults":"list"}"#.to_owned()
            );
        }
    };
    match answer {
        Value::Object(members) => Ok(members),
        _ => Ok(Map::new()),
    }
}

fn describe(fault: Fault, faults: &Faults) -> Value {
    json!({
        "name": fault.as_str(),
        "on": faults.is_on(fault),
        "rules": fault.rules(),
        "says": fault.says(),
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    #[tokio::test]
    async fn orders_turn_switches_and_each_gets_one_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let faults = Arc::new(Faults::default());
        let cancel = CancellationToken::new();
        let listener = StdListener::bind(&path).unwrap();
        let serving = serve(listener, Side::Server, faults.clone(), cancel.clone());
        let giving = async {
            let stream = UnixStream::connect(&path).await.unwrap();
            let (from, mut to) = stream.into_split();
            let mut from = BufReader::new(from).lines();
            let mut next = async || -> Value {
                serde_json::from_str(&from.next_line().await.unwrap().unwrap()).unwrap()
            };
            let greeting = next().await;
            assert_eq!((&greeting["version"], &greeting["of"]), (&json!(1), &json!("server")));
            let long = "x".repeat(2 * LINE_LIMIT_BYTES);
            let cases = [
                (r#"{"fault":"prints","on":true}"#, true),
                (r#"{"fault":"prints","on":"yes"}"#, false),
                (r#"{"fault":"no such","on":true}"#, false),
                (r#"{"fault":"reuses_id","on":true}"#, false),
                (r#"{"faults":"all"}"#, false),
                (r#"{"faults":"list","on":true}"#, false),
                ("[]", false),
                ("nonsense", false),
                (&*long, false),
            ];
            for (order, is_ok) in cases {
                to.write_all(format!("{order}\n").as_bytes()).await.unwrap();
                let answer = next().await;
                assert_eq!(answer["ok"], json!(is_ok), "{order}: {answer}");
            }
            assert_eq!(faults.all_on().collect::<Vec<_>>(), [Fault::Prints]);
            to.write_all(b"{\"fault\":\"prints\",\"on\":false}\n{\"faults\":\"list\"}\n").await.unwrap();
            assert_eq!(next().await["fault"], "prints");
            let listed = next().await;
            let listed = listed["faults"].as_array().unwrap();
            assert_eq!(listed.len(), Fault::of(Side::Server).count());
            assert!(listed.iter().all(|one| one["on"] == json!(false)));
            cancel.cancel();
        };
        let (served, ()) = tokio::join!(serving, giving);
        served.unwrap();
    }
}
