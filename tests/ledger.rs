//! The ledger of the reference server in real processes: killed, restarted, and two at once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests stand outside the test functions")]

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use midwire::peer::client::{CallOptions, Client, Outcome, Params, raw};
use serde_json::{Value, json};

const MIDWIRE: &str = env!("CARGO_BIN_EXE_midwire");
const SIGKILL: i32 = 9;

/// A server with this ledger and these faults, and its client.
fn serve(ledger: &Path, faults: &[&str]) -> Client {
    let mut command = vec![MIDWIRE, "serve", "stdio", "--ledger", ledger.to_str().unwrap()];
    let faults = faults.join(",");
    if !faults.is_empty() {
        command.extend(["--fault", &faults]);
    }
    let command: Vec<String> = command.into_iter().map(str::to_owned).collect();
    Client::spawn(&command).unwrap()
}

/// What a tool puts in `structuredContent`; `None`: the server was gone before its answer.
async fn call(client: &Client, tool: &str, arguments: &Value) -> Option<Value> {
    let report = client.call(tool, &raw(arguments), &CallOptions::default(), |_| {}).await.unwrap();
    match report.outcome {
        Outcome::Complete(result) => {
            let mut result: Value = serde_json::from_str(result.get()).unwrap();
            Some(result["structuredContent"].take())
        }
        Outcome::Lost(_) => None,
        other => panic!("{other:?}"),
    }
}

fn reserve() -> Value {
    json!({ "sku": "SKU-1", "quantity": 2, "idempotency_key": "order-1" })
}

/// What can still be reserved of SKU-1.
async fn stock(client: &Client) -> Value {
    read(client, "stock://SKU-1").await["available"].clone()
}

/// What a resource says.
async fn read(client: &Client, uri: &str) -> Value {
    let params = Params::from([("uri".to_owned(), raw(uri))]);
    let report = client.request("resources/read", params, &CallOptions::default(), |_| {}).await.unwrap();
    let Outcome::Complete(result) = report.outcome else { panic!("{report:?}") };
    let result: Value = serde_json::from_str(result.get()).unwrap();
    serde_json::from_str(result["contents"][0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_server_that_is_killed_between_effect_and_commit_leaves_nothing_half() {
    // With check and effect in two steps the effect is there, and its key is not.
    let rows: [(&[&str], i64, &str); 2] = [
        (&["crash_after_effect"], 10, "reservation-001"),
        (&["crash_after_effect", "check_then_act"], 8, "reservation-002"),
    ];
    for (faults, left, receipt) in rows {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite3");
        let client = serve(&ledger, faults);
        assert_eq!(call(&client, "reserve_inventory", &reserve()).await, None, "{faults:?}");
        let exit = client.close().await.unwrap().unwrap();
        assert_eq!(exit.status.signal(), Some(SIGKILL), "{faults:?}");

        let client = serve(&ledger, &[]);
        let found = call(&client, "lookup_receipt", &json!({ "idempotency_key": "order-1" })).await;
        assert_eq!(found.unwrap()["found"], false, "{faults:?}");
        assert_eq!(stock(&client).await, left, "{faults:?}");
        let reserved = call(&client, "reserve_inventory", &reserve()).await.unwrap();
        assert_eq!(reserved["receipt"], receipt, "{faults:?}");
        assert_eq!(stock(&client).await, left - 2);
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_key_is_remembered_after_a_restart_unless_it_is_kept_in_memory() {
    for (faults, again) in [(&[][..], "reservation-001"), (&["memory_ledger"][..], "reservation-002")] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite3");
        for expected in ["reservation-001", again] {
            let client = serve(&ledger, faults);
            let reserved = call(&client, "reserve_inventory", &reserve()).await.unwrap();
            assert_eq!(reserved["receipt"], expected, "{faults:?}");
            client.close().await.unwrap();
        }
    }
}

#[tokio::test]
async fn two_servers_with_one_ledger_take_effect_once() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger.sqlite3");
    let servers = [(); 2].map(|()| serve(&ledger, &[]));
    for round in 1..=20 {
        let arguments =
            json!({ "account": "acct-7", "cents": 1200, "idempotency_key": format!("race-{round}") });
        let (one, two) = tokio::join!(
            call(&servers[0], "charge_account", &arguments),
            call(&servers[1], "charge_account", &arguments)
        );
        let receipt = format!("charge-{round:03}");
        assert_eq!((&one.unwrap()["receipt"], &two.unwrap()["receipt"]), (&json!(receipt), &json!(receipt)));
    }
    for server in servers {
        server.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_parcel_is_not_taken_back_with_the_transaction() {
    for (via, parcels) in [("direct", 2), ("keyed", 1), ("outbox", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite3");
        let arguments = json!({ "sku": "SKU-1", "quantity": 1, "via": via, "idempotency_key": "order-1" });
        let client = serve(&ledger, &["crash_after_effect"]);
        assert_eq!(call(&client, "ship_goods", &arguments).await, None);
        client.close().await.unwrap();
        let client = serve(&ledger, &[]);
        let shipped = call(&client, "ship_goods", &arguments).await.unwrap();
        assert_eq!(shipped["receipt"], "shipment-001");
        let found = read(&client, "carrier://parcels").await;
        assert_eq!(found["parcels"].as_array().unwrap().len(), parcels, "{via}");
        client.close().await.unwrap();
    }
}
