//! State that only one of several servers knows: hidden until another one is asked.

use midwire::peer::client::{CallOptions, Outcome, raw};
use midwire::peer::faults::Fault;
use serde_json::{Value, json};

use crate::rig::Rig;

/// Calls a tool; its structured content.
async fn call(rig: &Rig, tool: &str, arguments: Value) -> Value {
    let (arguments, options) = (raw(&arguments), CallOptions::default());
    let report = rig.client.call(tool, &arguments, &options, |_| {}).await.unwrap();
    let Outcome::Complete(result) = report.outcome else { panic!("{report:?}") };
    serde_json::from_str::<Value>(result.get()).unwrap()["structuredContent"].take()
}

#[tokio::test]
async fn a_draft_without_its_handle_is_known_to_one_replica_only_and_with_it_to_all() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger").display().to_string();
    let serve = |fault: Option<Fault>| {
        let mut options = vec!["--ledger".to_owned(), ledger.clone()];
        options.extend(fault.map(|fault| format!("--fault={fault}")));
        options
    };
    for fault in [None, Some(Fault::ReplicaMemory)] {
        let options = serve(fault);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let replicas = [Rig::stdio(&options), Rig::stdio(&options)];
        let made = call(&replicas[0], "draft_create", json!({})).await;
        let handle = &made["handle"];
        let mut text = String::new();
        for (replica, has_handle, works) in [
            (0, true, true),
            (1, true, true),
            (0, false, fault.is_some()),
            (1, false, false),
            (1, true, true),
        ] {
            let mut arguments = json!({ "text": "a" });
            if has_handle {
                arguments["handle"] = handle.clone();
            }
            let came = call(&replicas[replica], "draft_append", arguments).await;
            if works {
                text.push('a');
                assert_eq!(came["text"], json!(text), "{fault:?} {replica} {has_handle}");
            } else {
                let code = fault.map(|_| json!("no_draft")).unwrap_or_default();
                assert_eq!(came.get("code").cloned().unwrap_or_default(), code, "{came}");
            }
        }
    }
}
