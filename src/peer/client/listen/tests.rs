//! Subscriptions on paused time: what they hear, how they end, and what follows.

use std::sync::Arc;

use super::*;
use crate::peer::client::era::EraPolicy;
use crate::peer::client::peer::{Dial, Setup};
use crate::peer::client::scripted;
use crate::peer::client::spread::Spread;

/// What the server sends about a subscription after it was opened.
type Script = fn(&Value, u32) -> Vec<Value>;

fn tagged(id: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn acknowledged(id: &Value) -> Value {
    let granted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a"] });
    tagged(id, "notifications/subscriptions/acknowledged", json!({ "notifications": granted }))
}

fn tools_changed(id: &Value) -> Value {
    tagged(id, "notifications/tools/list_changed", json!({}))
}

fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn closed(id: &Value) -> Value {
    let stamp = json!({ "io.modelcontextprotocol/subscriptionId": id });
    result(id, &json!({ "resultType": "complete", "_meta": stamp }))
}

/// Listens to a server that keeps to a script; its listens are counted from 0.
async fn told(script: Script, limits: (Option<u64>, u32)) -> (Vec<Listened>, ListenEnd, Vec<Vec<String>>) {
    let started: Arc<std::sync::Mutex<Vec<scripted::HeardMessages>>> = Arc::default();
    let (keep, listens) = (started.clone(), Arc::new(std::sync::atomic::AtomicU32::new(0)));
    let dial: Dial = Arc::new(move || {
        let (listens, mut lists) = (listens.clone(), 0);
        let (client, heard) = scripted::pipes(move |message| {
            let id = &message["id"];
            match message["method"].as_str().unwrap_or_default() {
                "server/discover" => vec![result(
                    id,
                    &json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {} }),
                )],
                "subscriptions/listen" => {
                    script(id, listens.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                }
                "tools/list" => {
                    lists += 1;
                    let name = format!("tool-{lists}");
                    let tools = json!([{ "name": "echo" }, { "name": name }]);
                    vec![result(id, &json!({ "resultType": "complete", "tools": tools }))]
                }
                "resources/read" => {
                    vec![result(id, &json!({ "resultType": "complete", "contents": [] }))]
                }
                _ => Vec::new(),
            }
        });
        keep.lock().unwrap().push(heard);
        Ok(client)
    });
    let setup =
        Setup { spread: Spread::Named("client-a".to_owned()), era: EraPolicy::default(), ..Setup::default() };
    let options = CallOptions::default();
    let mut peer = Peer::connect("shop", dial, setup, Arc::default(), &options).await.unwrap();
    let uris = ["a", "b"].map(str::to_owned).into();
    let wanted = Filter { tools: true, uris, ..Filter::default() };
    let listening = ListenOptions { wanted, limit: Some(Ms(5000)), changes: limits.0, reconnects: limits.1 };
    let mut told = Vec::new();
    let end = listen(&mut peer, &listening, &options, |event| told.push(event.clone())).await.unwrap();
    // What was written last is still on its way.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let sent = started.lock().unwrap().iter().map(scripted::methods).collect();
    (told, end, sent)
}

/// What was told, short.
fn short(told: &[Listened]) -> Vec<String> {
    told.iter()
        .map(|event| match event {
            Listened::Granted { missing, .. } => format!("granted but {:?}", missing.uris),
            Listened::Changed(what) => format!("changed {what:?}"),
            Listened::Fetched { what, came } => format!("{what:?}: {came}"),
            Listened::Fault(why) => format!("fault {why}"),
            Listened::Ended { is_graceful, .. } => format!("ended {is_graceful}"),
            Listened::Step(step) => step.clone(),
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_change_is_read_again_and_enough_is_enough() {
    let script: Script = |id, _| vec![acknowledged(id), tools_changed(id), tools_changed(id)];
    let (told, end, sent) = told(script, (Some(2), 0)).await;
    let told = short(&told);
    assert_eq!(told[0], "granted but {\"b\"}");
    assert_eq!(told.iter().filter(|line| *line == "changed Tools").count(), 2);
    assert!(told.contains(&"Tools: 2 items".to_owned()), "{told:?}");
    assert_eq!(end, ListenEnd { changes: 2, opened: 1, was_wanted: true });
    assert_eq!(sent[0].last().unwrap(), "notifications/cancelled", "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn after_an_end_in_order_or_a_loss_the_plan_is_gone_through() {
    let closes: Script = |id, count| match count {
        0 => vec![acknowledged(id), tools_changed(id), closed(id)],
        _ => vec![acknowledged(id)],
    };
    let cancels: Script = |id, count| {
        let params = json!({ "requestId": id, "reason": "restart" });
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        if count == 0 { vec![acknowledged(id), tools_changed(id), cancel] } else { vec![acknowledged(id)] }
    };
    let dies: Script = |id, count| match count {
        0 => vec![acknowledged(id), json!("close")],
        _ => vec![acknowledged(id)],
    };
    for (script, is_graceful, processes) in [(closes, true, 1), (cancels, true, 1), (dies, false, 2)] {
        let (told, end, sent) = told(script, (None, 1)).await;
        let lines = short(&told);
        let at = |line: &str| {
            lines.iter().position(|found| found == line).unwrap_or_else(|| panic!("{line} in {lines:#?}"))
        };
        let ended = at(&format!("ended {is_graceful}"));
        let (wait, anew) = (at("wait 162 ms"), at("listen anew, under a new id"));
        let granted = lines.iter().rposition(|line| line.starts_with("granted")).unwrap();
        assert!(ended < wait && wait < anew && anew < granted, "{lines:#?}");
        // Each thing once, and only when the new subscription is acknowledged.
        for what in ["Tools", "Resource(\"a\")", "Resource(\"b\")"] {
            let read = lines.iter().skip(granted).filter(|line| line.starts_with(what)).count();
            assert_eq!(read, 1, "{what} in {lines:#?}");
        }
        if processes == 2 {
            let restart = at("start the server again, and ask what it is");
            assert!(wait < restart && restart < anew, "{lines:#?}");
            assert_eq!(sent[1][..3], ["server/discover", "tools/list", "subscriptions/listen"]);
        }
        assert_eq!((end.opened, sent.len(), end.was_wanted), (2, processes, true), "{lines:#?}");
    }
}

#[test]
fn what_is_against_the_rules_of_a_subscription_is_told() {
    let wanted = Filter { tools: true, uris: ["n://a".to_owned()].into(), ..Filter::default() };
    let updated = |uri: &str| tagged(&json!(7), "notifications/resources/updated", json!({ "uri": uri }));
    let cases = [
        (acknowledged(&json!(7)), false, "Granted"),
        (acknowledged(&json!(7)), true, "Fault"),
        (acknowledged(&json!("7")), false, "Fault"),
        (tools_changed(&json!(7)), true, "Changed(Tools)"),
        (tools_changed(&json!(7)), false, "Fault"),
        (tools_changed(&json!(8)), true, "Fault"),
        (tagged(&json!(7), "notifications/prompts/list_changed", json!({})), true, "Fault"),
        (tagged(&json!(7), "notifications/message", json!({})), true, "Fault"),
        (updated("n://a"), true, "Changed(Resource"),
        (updated("n://a/part"), true, "Changed(Resource"),
        (updated("n://other"), true, "Fault"),
    ];
    for (message, is_acknowledged, expected) in cases {
        let notice = Notice {
            method: message["method"].as_str().unwrap().to_owned(),
            params: Some(raw(&message["params"])),
            about: crate::wire::jsonrpc::Id::from_raw(
                &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].to_string(),
            ),
        };
        let told = judge(&notice, &Id::from(7), is_acknowledged, &wanted);
        assert!(format!("{told:?}").starts_with(expected), "{message}: {told:?}");
    }
}

#[test]
fn a_filter_goes_out_and_comes_back_and_says_what_it_is_about() {
    let filter = Filter {
        tools: true,
        uris: ["b", "a"].map(str::to_owned).into(),
        tasks: ["t".to_owned()].into(),
        ..Filter::default()
    };
    let written = as_json(&filter);
    assert_eq!(
        written,
        json!({ "toolsListChanged": true, "resourceSubscriptions": ["a", "b"], "taskIds": ["t"] })
    );
    assert_eq!(from_json(&raw(&written)), filter);
    let resource = |uri: &str| Read::Resource(uri.to_owned());
    assert_eq!(affected(&filter), [Read::Tools, resource("a"), resource("b"), Read::Task("t".to_owned())]);
}
