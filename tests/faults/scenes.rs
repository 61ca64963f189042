//! What happens between client and server while a fault is looked for: short scenes in which a
//! right pair of peers does nothing that is worth a warning.

use std::pin::Pin;

use midwire::machine::reconnect::Filter;
use midwire::peer::PeerError;
use midwire::peer::client::era::{EraPolicy, EraRule};
use midwire::peer::client::listen::{ListenOptions, Listened, listen};
use midwire::peer::client::{CallOptions, Heard, Outcome, Params, Report, raw};
use midwire::time::Ms;
use serde_json::{Value, json};

use crate::rig::{Rig, patient};

/// A scene that runs.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A scene.
pub(crate) type Scene = for<'a> fn(&'a mut Rig) -> Running<'a>;

/// Longest wait of the client for a sign of a call.
const IDLE: Ms = Ms(20_000);

fn options(wants_progress: bool, cancel_after: Option<u64>) -> CallOptions {
    CallOptions { wants_progress, idle: IDLE, cancel_after: cancel_after.map(Ms), ..CallOptions::default() }
}

/// A call; it may be lost, but it can be made.
async fn call(rig: &Rig, tool: &str, arguments: Value, options: &CallOptions) {
    // With the tap gone there is nobody to call.
    let _: Result<Report, PeerError> = rig.client.call(tool, &raw(&arguments), options, |_| {}).await;
}

/// One quick call, for which the client waits only for a little while.
pub(crate) fn echo(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let options = CallOptions { idle: Ms(300), ..options(false, None) };
        call(rig, "echo", json!({ "text": "hello" }), &options).await;
    })
}

/// One call with progress, then a quick one.
pub(crate) fn steps(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "slow", json!({ "steps": 4, "step_ms": 20 }), &options(true, None)).await;
        call(rig, "echo", json!({ "text": "hello" }), &options(false, None)).await;
    })
}

/// One call with progress now and then, in all for more than two seconds.
pub(crate) fn long_steps(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "slow", json!({ "steps": 6, "step_ms": 450 }), &options(true, None)).await;
    })
}

/// The client gives a silent call up, and hears whether anything comes of that.
pub(crate) fn gives_up(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "silent", json!({}), &options(false, Some(100))).await;
        let comes = async {
            while rig.client.strays() == 0 {
                tokio::time::sleep(Ms(5).into()).await;
            }
        };
        // In health nothing does.
        let _ = tokio::time::timeout(Ms(300).into(), comes).await;
    })
}

/// The client gives an order up while its book is held.
pub(crate) fn gives_up_order(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let order = json!({ "payment_ms": 800, "release_ms": 50 });
        call(rig, "order_book", order, &options(false, Some(100))).await;
        call(rig, "silent", json!({ "ms": 1300 }), &options(false, None)).await;
    })
}

/// The client gives a silent call up, and goes on for longer than that would have taken.
pub(crate) fn gives_up_silence(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "silent", json!({ "ms": 300 }), &options(false, Some(100))).await;
        call(rig, "silent", json!({ "ms": 500 }), &options(false, None)).await;
    })
}

/// The client opens a session of an older revision.
async fn opens_session(rig: &Rig) {
    let policy = EraPolicy { rule: EraRule::Legacy, ..patient() };
    let era = rig.client.settle(&policy, &options(false, None)).await.unwrap();
    assert!(era.settled.is_some(), "{era:?}");
}

/// As [`gives_up_silence`], in a session of an older revision.
pub(crate) fn gives_up_in_a_session(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        opens_session(rig).await;
        gives_up_silence(rig).await;
    })
}

/// As [`two_at_once`], in a session of an older revision.
pub(crate) fn two_at_once_in_a_session(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        opens_session(rig).await;
        two_at_once(rig).await;
    })
}

/// As [`two_at_once`], by a client that says who it is.
pub(crate) fn two_at_once_signed_in(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        rig.sign_in();
        two_at_once(rig).await;
    })
}

/// The client gives work up that tells progress, and goes on for longer than that would have taken.
pub(crate) fn gives_up_steps(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "slow", json!({ "steps": 10, "step_ms": 40 }), &options(true, Some(100))).await;
        call(rig, "silent", json!({ "ms": 500 }), &options(false, None)).await;
    })
}

/// The same for work that tells nothing.
pub(crate) fn gives_up_work(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "slow", json!({ "steps": 10, "step_ms": 40 }), &options(false, Some(100))).await;
        call(rig, "silent", json!({ "ms": 500 }), &options(false, None)).await;
    })
}

/// The list of tools, whole.
pub(crate) fn lists(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        rig.client.list(None, &options(false, None)).await.unwrap();
    })
}

fn charge(key: Option<&str>, cents: u64) -> Value {
    let mut arguments = json!({ "account": "acct-7", "cents": cents });
    if let Some(key) = key {
        arguments["idempotency_key"] = json!(key);
    }
    arguments
}

/// Calls at once, with progress.
pub(crate) fn two_at_once(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let options = CallOptions { idle: Ms(500), ..options(true, None) };
        let both = [(); 2].map(|()| call(rig, "slow", json!({ "steps": 3, "step_ms": 50 }), &options));
        futures_util::future::join_all(both).await;
    })
}

/// The client gives up after its maximum, whatever comes.
pub(crate) fn reaches_maximum(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let options = CallOptions { max: Ms(400), idle: Ms(300), ..options(true, None) };
        call(rig, "slow", json!({ "steps": 20, "step_ms": 40 }), &options).await;
    })
}

/// The client gives up when nothing but comments has come for a while.
pub(crate) fn hears_comments(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let options = CallOptions { idle: Ms(400), ..options(false, None) };
        call(rig, "silent", json!({ "ms": 1500 }), &options).await;
    })
}

/// More than the buffers on the way hold.
pub(crate) fn floods(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "flood", json!({ "n": 3000, "size": 4000 }), &options(true, None)).await;
    })
}

/// The client rests before it reads what the server has for it.
pub(crate) fn rests(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let (options, arguments) = (options(true, None), json!({ "n": 600, "size": 4000 }));
        let flood = call(rig, "flood", arguments, &options);
        tokio::pin!(flood);
        // It is sent, and then nobody looks.
        assert!(futures_util::poll!(&mut flood).is_pending());
        tokio::time::sleep(Ms(1000).into()).await;
        flood.await;
    })
}

/// The client finds out which era the server speaks, and then calls.
pub(crate) fn finds_era(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let era = rig.client.settle(&patient(), &options(false, None)).await.unwrap();
        if era.settled.is_some() {
            call(rig, "echo", json!({ "text": "hello" }), &options(false, None)).await;
        }
    })
}

/// A subscription to the list of tools, which changes.
pub(crate) fn listens(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let wanted = Params::from([("notifications".to_owned(), raw(&json!({ "toolsListChanged": true })))]);
        let until = CallOptions { cancel_after: Some(Ms(500)), ..options(false, None) };
        let (tell, told) = tokio::sync::oneshot::channel();
        let mut tell = Some(tell);
        let hear = |_: Heard<'_>| {
            // The acknowledgement, if the server does it right.
            let _ = tell.take().map(|tell| tell.send(()));
        };
        let listen = rig.client.converse("subscriptions/listen", wanted, &until, hear);
        let change = async {
            told.await.unwrap();
            call(rig, "switch_extra", json!({ "what": "tool" }), &options(false, None)).await;
            rig.client.list(None, &options(false, None)).await.unwrap();
        };
        let (listened, ()) = tokio::join!(listen, change);
        listened.unwrap();
    })
}

/// Asks for a subscription that nobody can give.
pub(crate) fn listens_in_vain(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let params = Params::from([("notifications".to_owned(), raw(&json!("all")))]);
        rig.client.request("subscriptions/listen", params, &options(false, None), |_| {}).await.unwrap();
    })
}

/// A report, asked for until some time after its end.
pub(crate) fn reports(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let capabilities = json!({ "extensions": { TASKS: {} } });
        let options = CallOptions { capabilities, ..options(false, None) };
        let arguments = raw(&json!({ "sections": 1, "section_ms": 20 }));
        let report = rig.client.call("generate_report", &arguments, &options, |_| {}).await.unwrap();
        let Outcome::Task(handle) = report.outcome else { panic!("{report:?}") };
        let handle: Value = serde_json::from_str(handle.get()).unwrap();
        let params = Params::from([("taskId".to_owned(), raw(&handle["taskId"]))]);
        for _ in 0..3 {
            // No sooner than the server wants it.
            tokio::time::sleep(Ms(550).into()).await;
            rig.client.request("tasks/get", params.clone(), &options, |_| {}).await.unwrap();
        }
    })
}

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A report whose cancel is acknowledged, and what becomes of it.
pub(crate) fn cancels_report(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let options = options(false, Some(100));
        let options = CallOptions { capabilities: json!({ "extensions": { TASKS: {} } }), ..options };
        let arguments = raw(&json!({ "sections": 4, "section_ms": 200 }));
        let mut peer = rig.peer(&options).await;
        let params =
            Params::from([("name".to_owned(), raw(&"generate_report")), ("arguments".to_owned(), arguments)]);
        peer.request("tools/call", &params, &options, |_| {}).await.unwrap();
        peer.close().await.unwrap();
        call(rig, "silent", json!({ "ms": 800 }), &self::options(false, None)).await;
    })
}

/// A subscription whose stream is lost with the server, kept up, and a call some time later.
pub(crate) fn keeps_listening(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let options = options(false, None);
        let mut peer = rig.peer(&options).await;
        let wanted = Filter { tools: true, ..Filter::default() };
        let listening = ListenOptions { wanted, limit: Some(Ms(1500)), changes: None, reconnects: 3 };
        let (tell, told) = tokio::sync::oneshot::channel();
        let mut tell = Some(tell);
        let kept = listen(&mut peer, &listening, &options, |event| {
            if matches!(event, Listened::Granted { .. }) {
                let _ = tell.take().map(|tell| tell.send(()));
            }
        });
        let restart = async {
            told.await.unwrap();
            rig.restart_server().await;
        };
        let (kept, ()) = tokio::join!(kept, restart);
        kept.unwrap();
        // Not by way of the list of tools, which would be read anew for it.
        peer.client().call("echo", &raw(&json!({})), &options, |_| {}).await.unwrap();
        peer.close().await.unwrap();
    })
}

/// A call whose argument stands in a header field too.
pub(crate) fn mirrors_argument(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let options = options(false, None);
        let mut peer = rig.peer(&options).await;
        let params = Params::from([
            ("name".to_owned(), raw(&"region")),
            ("arguments".to_owned(), raw(&json!({ "region": "north" }))),
        ]);
        peer.request("tools/call", &params, &options, |_| {}).await.unwrap();
        peer.close().await.unwrap();
    })
}

/// The client gives a charge up at once, and does not know what became of it.
pub(crate) fn gives_up_charge(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "charge_account", charge(Some("k-1"), 1200), &options(false, Some(0))).await;
        call(rig, "silent", json!({ "ms": 100 }), &options(false, None)).await;
    })
}

/// Two charges, each with its key.
pub(crate) fn charges_two(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        for (key, cents) in [("k-1", 1200), ("k-2", 700)] {
            call(rig, "charge_account", charge(Some(key), cents), &options(false, None)).await;
        }
    })
}

/// One charge with its key.
pub(crate) fn charges(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "charge_account", charge(Some("k-1"), 1200), &options(false, None)).await;
    })
}

/// One charge, made three times with its key.
pub(crate) fn charges_again(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        for _ in 0..3 {
            call(rig, "charge_account", charge(Some("k-1"), 1200), &options(false, None)).await;
        }
    })
}

/// One charge, made twice at once with its key.
pub(crate) fn charges_twice_at_once(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        let options = options(false, None);
        let both = [(); 2].map(|()| call(rig, "charge_account", charge(Some("k-1"), 1200), &options));
        futures_util::future::join_all(both).await;
    })
}

/// One charge, and another one with its key, which is refused.
pub(crate) fn charges_other(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        for cents in [1200, 700] {
            call(rig, "charge_account", charge(Some("k-1"), cents), &options(false, None)).await;
        }
    })
}

/// One charge before a restart of the server, and again after it.
pub(crate) fn charges_across_a_restart(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "charge_account", charge(Some("k-1"), 1200), &options(false, None)).await;
        rig.restart_server().await;
        call(rig, "charge_account", charge(Some("k-1"), 1200), &options(false, None)).await;
    })
}
