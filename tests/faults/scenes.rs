//! What happens between client and server while a fault is looked for: short scenes in which a
//! right pair of peers does nothing that is worth a warning.

use std::pin::Pin;

use midwire::peer::PeerError;
use midwire::peer::client::{CallOptions, Report, raw};
use midwire::time::Ms;
use serde_json::{Value, json};

use crate::rig::Rig;

/// A scene that runs.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A scene.
pub(crate) type Scene = for<'a> fn(&'a mut Rig) -> Running<'a>;

/// Longest wait of the client for a sign of a call.
const IDLE: Ms = Ms(3000);

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
        let order = json!({ "payment_ms": 5000, "release_ms": 50 });
        call(rig, "order_book", order, &options(false, Some(100))).await;
        call(rig, "silent", json!({ "ms": 1000 }), &options(false, None)).await;
    })
}

/// The client gives a silent call up, and goes on for longer than that would have taken.
pub(crate) fn gives_up_silence(rig: &mut Rig) -> Running<'_> {
    Box::pin(async {
        call(rig, "silent", json!({ "ms": 300 }), &options(false, Some(100))).await;
        call(rig, "silent", json!({ "ms": 500 }), &options(false, None)).await;
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
