//! Keys, receipts and handles, as a client sees them.

use serde_json::{Value, json};

use crate::peer::faults::{Fault, Faults};
use crate::peer::server::wire::{BOTH, When, Wire};
use crate::peer::server::{LedgerPlace, ServerOptions};
use crate::spec::transport::Transport;
use crate::time::Ms;

fn charge(key: Option<&str>, cents: i64) -> Value {
    let mut arguments = json!({ "account": "acct-7", "cents": cents });
    if let Some(key) = key {
        arguments["idempotency_key"] = json!(key);
    }
    arguments
}

fn receipt(result: &Value) -> &str {
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"]["receipt"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_retry_without_its_key_charges_twice_and_with_it_once() {
    for transport in BOTH {
        let mut wire = Wire::start(transport, ServerOptions::default());
        for expected in ["charge-001", "charge-002"] {
            assert_eq!(receipt(&wire.call("charge_account", charge(None, 1200)).await), expected);
        }
        let first = wire.call("charge_account", charge(Some("checkout-7"), 1200)).await;
        assert_eq!(receipt(&first), "charge-003");
        let again = wire.call("charge_account", charge(Some("checkout-7"), 1200)).await;
        assert_eq!(again, first, "the whole result");
        let other = wire.call("charge_account", charge(Some("checkout-7"), 700)).await;
        assert_eq!(other["structuredContent"]["code"], "idempotency_key_conflict");
        assert_eq!(other["isError"], true);

        let found = wire.call("lookup_receipt", json!({ "idempotency_key": "checkout-7" })).await;
        let expected = json!({
            "found": true,
            "receipt": "charge-003",
            "operation": "charge_account",
            "execution": 3,
            "firstRequest": "3",
            "replays": 1,
            "result": first["structuredContent"],
        });
        assert_eq!(found["structuredContent"], expected);
        let found = wire.call("lookup_receipt", json!({ "idempotency_key": "checkout-8" })).await;
        assert_eq!(found["structuredContent"], json!({ "found": false }));
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_have_no_effect() {
    let mut wire = Wire::start(Transport::Stdio, ServerOptions::default());
    let cases = [
        ("charge_account", json!({})),
        ("charge_account", json!({ "account": "a" })),
        ("charge_account", json!({ "account": " ", "cents": 1 })),
        ("charge_account", json!({ "account": 7, "cents": 1 })),
        ("charge_account", json!({ "account": "a", "cents": 0 })),
        ("charge_account", json!({ "account": "a", "cents": -1 })),
        ("charge_account", json!({ "account": "a", "cents": 12.5 })),
        ("charge_account", json!({ "account": "a", "cents": 1.0 })),
        ("charge_account", json!({ "account": "a", "cents": "1" })),
        ("charge_account", json!({ "account": "a", "cents": 1_000_000_001 })),
        ("charge_account", json!({ "account": "a", "cents": 1, "idempotency_key": "" })),
        ("charge_account", json!({ "account": "a", "cents": 1, "idempotency_key": " \t" })),
        ("charge_account", json!({ "account": "a", "cents": 1, "idempotency_key": 7 })),
        ("charge_account", json!({ "account": "a", "cents": 1, "idempotencyKey": "k" })),
        ("reserve_inventory", json!({ "sku": "SKU-9", "quantity": 1 })),
        ("reserve_inventory", json!({ "sku": "SKU-1", "quantity": 11 })),
        ("ship_goods", json!({ "sku": "SKU-1", "quantity": 1, "via": "pigeon" })),
        ("lookup_receipt", json!({})),
        ("lookup_receipt", json!({ "idempotency_key": "" })),
        ("draft_append", json!({ "text": "no handle" })),
        ("draft_append", json!({ "handle": "draft-1", "text": "a guess" })),
    ];
    for (tool, arguments) in cases {
        let result = wire.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
    }
    assert_eq!(receipt(&wire.call("charge_account", charge(None, 1)).await), "charge-001");
    let all = json!({ "sku": "SKU-1", "quantity": 10 });
    assert_eq!(receipt(&wire.call("reserve_inventory", all).await), "reservation-001");
}

#[tokio::test(start_paused = true)]
async fn keys_and_drafts_are_those_of_their_principal() {
    let mut ann = Wire::start(Transport::Http, ServerOptions::default());
    let mut bob = Wire::to(Transport::Http, &ann.core);
    (ann.principal, bob.principal) = (Some("Bearer ann"), Some("Bearer bob"));
    receipt(&ann.call("charge_account", charge(Some("k"), 1)).await);
    let taken = bob.call("charge_account", charge(Some("k"), 1)).await;
    assert_eq!(taken["structuredContent"]["code"], "idempotency_key_conflict");
    let found = bob.call("lookup_receipt", json!({ "idempotency_key": "k" })).await;
    assert_eq!(found["structuredContent"]["found"], false);

    let made = ann.call("draft_create", json!({})).await;
    let handle = &made["structuredContent"]["handle"];
    let append = json!({ "handle": handle, "text": "a" });
    assert_eq!(ann.call("draft_append", append.clone()).await["structuredContent"]["text"], "a");
    let refused = bob.call("draft_append", append.clone()).await;
    assert_eq!(refused["structuredContent"]["code"], "no_draft");
    assert_eq!(ann.call("draft_append", append).await["structuredContent"]["text"], "aa");
    let made = ann.call("draft_create", json!({ "ttl_ms": 0 })).await;
    let append = json!({ "handle": made["structuredContent"]["handle"], "text": "a" });
    let refused = ann.call("draft_append", append).await;
    assert_eq!(refused["structuredContent"]["code"], "no_draft", "it has expired");
}

#[tokio::test(start_paused = true)]
async fn a_draft_lives_on_every_replica_of_one_ledger_and_on_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let shared = LedgerPlace::File(folder.path().join("ledger.sqlite3"));
    for (place, is_known) in [(shared, true), (LedgerPlace::Memory, false)] {
        let options = || ServerOptions { ledger: place.clone(), ..ServerOptions::default() };
        let mut replicas = [(); 2].map(|()| Wire::start(Transport::Http, options()));
        let made = replicas[0].call("draft_create", json!({})).await;
        let append = json!({ "handle": made["structuredContent"]["handle"], "text": "a" });
        let result = replicas[1].call("draft_append", append).await;
        assert_eq!(result["isError"] != true, is_known, "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_found_by_its_key() {
    for transport in BOTH {
        let faults = Faults::with([Fault::DropResponseAfterCommit]);
        let mut wire =
            Wire::start(transport, ServerOptions { faults: faults.into(), ..ServerOptions::default() });
        let reserve = json!({ "sku": "SKU-1", "quantity": 2, "idempotency_key": "order-1" });
        assert!(
            wire.give_up("reserve_inventory", reserve.clone(), When::After(Ms(5000))).await
                == (transport == Transport::Stdio)
        );
        let found = wire.call("lookup_receipt", json!({ "idempotency_key": "order-1" })).await;
        assert_eq!(found["structuredContent"]["receipt"], "reservation-001");
        assert_eq!(receipt(&wire.call("reserve_inventory", reserve).await), "reservation-001");
    }
}

#[tokio::test(start_paused = true)]
async fn stock_is_told_to_those_who_listen_and_read_afresh_by_those_who_come_back() {
    for transport in BOTH {
        let mut wire = Wire::start(transport, ServerOptions::default());
        let mut other = Wire::to(transport, &wire.core);
        let reserve = |key: &str| json!({ "sku": "SKU-1", "quantity": 2, "idempotency_key": key });
        let wish =
            json!({ "notifications": { "resourceSubscriptions": ["stock://SKU-1", "stock://SKU-9"] } });

        let id = wire.open("subscriptions/listen", wish.clone()).await;
        let granted = wire.heard().await.unwrap()["params"]["notifications"].take();
        assert_eq!(granted, json!({ "resourceSubscriptions": ["stock://SKU-1"] }));
        receipt(&other.call("reserve_inventory", reserve("a")).await);
        let told = wire.heard().await.unwrap();
        assert_eq!(told["params"]["uri"], "stock://SKU-1");
        wire.leave(id).await;

        // Nobody listens; then a new subscription, and nothing of this is told again.
        receipt(&other.call("reserve_inventory", reserve("b")).await);
        let id = wire.open("subscriptions/listen", wish).await;
        wire.heard().await.unwrap();
        receipt(&other.call("reserve_inventory", reserve("b")).await);
        let nothing = tokio::time::timeout(Ms(10).into(), wire.heard()).await;
        assert!(nothing.is_err(), "a replay changes no stock");
        let read = other.ask("resources/read", json!({ "uri": "stock://SKU-1" })).await;
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert_eq!(text, r#"{"available":6,"sku":"SKU-1"}"#);
        assert_eq!(read["result"]["ttlMs"], 0);
        receipt(&other.call("reserve_inventory", reserve("c")).await);
        assert_eq!(wire.heard().await.unwrap()["params"]["uri"], "stock://SKU-1");
        wire.leave(id).await;

        let read = other.ask("resources/read", json!({ "uri": "ledger://keys" })).await;
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        let keys: Value = serde_json::from_str(text).unwrap();
        let found: Vec<_> = keys["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| (entry["key"].as_str().unwrap(), entry["replays"].as_i64().unwrap()))
            .collect();
        assert_eq!(found, [("c", 0), ("b", 1), ("a", 0)]);
        assert_eq!(keys["keys"][0]["fingerprint"].as_str().unwrap().len(), 12);
        assert_eq!(read["result"]["cacheScope"], "private");
    }
}
