//! Subscriptions over both transports, on paused time.

use serde_json::{Value, json};

use crate::peer::server::hub::Change;
use crate::peer::server::wire::{BOTH, Wire};
use crate::peer::server::{AnswerMode, ServerOptions, SharedCore};
use crate::spec::transport::Transport;
use crate::time::{Ms, TimerClock};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Somebody who listens, and somebody who changes things.
fn pair(transport: Transport) -> (Wire, Wire) {
    let listener = Wire::start(transport, ServerOptions::default());
    let other = Wire::to(transport, &listener.core);
    (listener, other)
}

fn wish(notifications: &Value) -> Value {
    json!({ "notifications": notifications })
}

/// Waits until nobody listens any more.
async fn nobody_listens(core: &SharedCore) {
    let gone = async {
        while core.hub.len() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Ms(1000).into(), gone).await.expect("somebody still listens");
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_is_acknowledged_first_and_told_with_its_id_and_nothing_else() {
    for transport in BOTH {
        let (mut listener, mut other) = pair(transport);
        let asked = json!({
            "toolsListChanged": true,
            "promptsListChanged": false,
            "resourceSubscriptions": ["notes://today", "notes://later", "nowhere://x"],
            "taskIds": ["no such task"],
            "somethingNew": true,
        });
        let id = listener.open("subscriptions/listen", wish(&asked)).await;
        let first = listener.heard().await.unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{transport:?}");
        let granted =
            json!({ "toolsListChanged": true, "resourceSubscriptions": ["notes://later", "notes://today"] });
        assert_eq!(first["params"]["notifications"], granted);
        assert_eq!(first["params"]["_meta"][ID], id);

        for (tool, arguments) in [
            ("switch_extra", json!({ "what": "prompt" })),
            ("switch_extra", json!({ "what": "tool" })),
            ("switch_extra", json!({ "what": "tool" })),
            ("note_write", json!({ "name": "ideas", "text": "not watched" })),
            ("note_write", json!({ "name": "later", "text": "new" })),
            ("note_delete", json!({ "name": "today" })),
        ] {
            assert!(other.call(tool, arguments).await["isError"].is_null(), "{tool}");
        }
        let told = [
            ("notifications/tools/list_changed", Value::Null),
            ("notifications/resources/updated", json!("notes://later")),
            ("notifications/resources/updated", json!("notes://today")),
        ];
        for (method, uri) in told {
            let message = listener.heard().await.unwrap();
            assert_eq!((&message["method"], &message["params"]["uri"]), (&json!(method), &uri));
            assert_eq!(message["params"]["_meta"][ID], id);
            assert!(message.get("id").is_none());
        }
        listener.leave(id).await;
        nobody_listens(&listener.core).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_says_so_in_the_way_of_the_transport() {
    for transport in BOTH {
        let (mut listener, _) = pair(transport);
        let id = listener.open("subscriptions/listen", wish(&json!({ "toolsListChanged": true }))).await;
        listener.heard().await.unwrap();
        listener.core.ending.cancel();
        let last = listener.heard().await.unwrap();
        assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(id), &json!("complete")));
        assert_eq!(last["result"]["_meta"][ID], id);
        match transport {
            Transport::Http => assert_eq!(listener.heard().await, None),
            Transport::Stdio => {
                let also = listener.heard().await.unwrap();
                assert_eq!(also["method"], "notifications/cancelled");
                assert_eq!(also["params"]["requestId"], id);
            }
        }
        assert_eq!(listener.core.hub.len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_lost_something_ends_without_a_result() {
    for transport in BOTH {
        let (mut listener, mut other) = pair(transport);
        let uris: Vec<String> = (0..100).map(|k| format!("notes://n{k}")).collect();
        let id = listener.open("subscriptions/listen", wish(&json!({ "resourceSubscriptions": uris }))).await;
        assert_eq!(listener.heard().await.unwrap()["params"]["_meta"][ID], id);
        // All of them at once, while nobody can take any of it.
        for uri in uris {
            other.core.hub.tell(&Change::Updated(uri));
        }
        match transport {
            Transport::Http => assert_eq!(listener.heard().await, None),
            Transport::Stdio => {
                let end = listener.heard().await.unwrap();
                assert_eq!(end["method"], "notifications/cancelled");
                assert_eq!(end["params"]["requestId"], id);
            }
        }
        nobody_listens(&listener.core).await;
        assert_eq!(other.call("echo", json!({ "text": "on" })).await["content"][0]["text"], "on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_makes_no_sense_is_refused() {
    let wrong = [
        json!({}),
        json!({ "notifications": null }),
        json!({ "notifications": [] }),
        wish(&json!({ "toolsListChanged": 1 })),
        wish(&json!({ "resourceSubscriptions": "notes://today" })),
        wish(&json!({ "resourceSubscriptions": [7] })),
        wish(&json!({ "taskIds": {} })),
    ];
    for transport in BOTH {
        let mut wire = Wire::start(transport, ServerOptions::default());
        for params in &wrong {
            let answer = wire.ask("subscriptions/listen", params.clone()).await;
            assert_eq!(answer["error"]["code"], -32602, "{transport:?} {params}");
        }
        assert_eq!(wire.core.hub.len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_a_stream_in_every_mode_and_ends_with_its_stream() {
    for mode in [AnswerMode::Sse, AnswerMode::Json, AnswerMode::JsonDeaf, AnswerMode::LegacyStateless] {
        let options = ServerOptions { mode, ..ServerOptions::default() };
        let mut wire = Wire::start(Transport::Http, options);
        let id = wire.open("subscriptions/listen", wish(&json!({}))).await;
        let first = wire.heard().await.unwrap();
        assert_eq!(first["params"], json!({ "notifications": {}, "_meta": { ID: id } }), "{mode:?}");
        wire.leave(id).await;
        nobody_listens(&wire.core).await;
    }
}

#[test]
fn a_tag_is_the_id_as_it_was_sent() {
    use crate::wire::jsonrpc::Id;
    for raw in ["7", "\"7\"", "18446744073709551617", "\"\\\"\""] {
        let id = Id::from_raw(raw).unwrap();
        let told = Change::Updated("notes://a".to_owned()).notification(Some(&id));
        let told = String::from_utf8(told.to_vec()).unwrap();
        assert!(told.ends_with(&format!("\"uri\":\"notes://a\",\"_meta\":{{\"{ID}\":{raw}}}}}}}")), "{told}");
        assert!(serde_json::from_str::<Value>(&told).is_ok());
    }
    let legacy = Change::Tools.notification(None);
    assert_eq!(
        serde_json::from_slice::<Value>(&legacy).unwrap(),
        json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
    );
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_subscriptions_leave_nothing_behind() {
    for transport in BOTH {
        let (mut listener, mut other) = pair(transport);
        let everything = json!({ "toolsListChanged": true, "resourceSubscriptions": ["notes://today"] });
        for _ in 0..10_000 {
            let id = listener.open("subscriptions/listen", wish(&everything)).await;
            assert!(listener.heard().await.is_some());
            listener.leave(id).await;
        }
        nobody_listens(&listener.core).await;
        assert_eq!(other.call("echo", json!({ "text": "on" })).await["content"][0]["text"], "on");
        let writers = if transport == Transport::Stdio { 2 } else { 0 };
        assert_eq!(listener.core.handlers.len(), writers, "{transport:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn more_requests_than_can_run_are_refused_and_the_rest_goes_on() {
    let options = ServerOptions { most_running: 100, ..ServerOptions::default() };
    let mut wire = Wire::start(Transport::Stdio, options);
    let mut open = Vec::new();
    let refused = loop {
        open.push(wire.open("subscriptions/listen", wish(&json!({}))).await);
        let message = wire.heard().await.unwrap();
        if message["method"].is_null() {
            break message;
        }
        assert!(open.len() <= 100, "no end");
    };
    assert_eq!(refused["error"]["code"], -32603);
    let last = open.pop().unwrap();
    assert_eq!(refused["id"], last);
    for id in open {
        wire.leave(id).await;
    }
    nobody_listens(&wire.core).await;
    assert_eq!(wire.call("echo", json!({ "text": "on" })).await["content"][0]["text"], "on");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_subscription_gets_comments_and_nothing_ends_it() {
    let mut wire = Wire::start(Transport::Http, ServerOptions::default());
    wire.open("subscriptions/listen", wish(&json!({ "toolsListChanged": true }))).await;
    wire.heard().await.unwrap();
    let clock = TimerClock::start();
    for k in 1..=20 {
        assert_eq!(wire.read_on().await.unwrap(), ": keep-alive\n\n");
        assert_eq!(clock.now(), Ms(15_000 * k));
    }
    wire.core.hub.tell(&Change::Tools);
    assert_eq!(wire.heard().await.unwrap()["method"], "notifications/tools/list_changed");
}
