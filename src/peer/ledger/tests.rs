//! One effect for one key: under races, restarts and changed arguments; and each fault shows what
//! it takes away.

use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

use serde_json::json;

use super::*;
use crate::time::Ms;

const CHARGE: &str = r#"{"account":"acct-7","cents":1200,"idempotency_key":"checkout-7"}"#;

fn charge(key: Option<&str>, cents: i64) -> Intent {
    let mut arguments = json!({ "account": "acct-7", "cents": cents });
    if let Some(key) = key {
        arguments[KEY] = json!(key);
    }
    let effect = Effect::Charge { account: "acct-7".to_owned(), cents };
    Intent::new(effect, "demo", key, &arguments.to_string(), &Id::from(41)).unwrap()
}

fn reserve(key: Option<&str>, sku: &str, quantity: i64) -> Intent {
    let arguments = json!({ "sku": sku, "quantity": quantity, KEY: key });
    let effect = Effect::Reserve { sku: sku.to_owned(), quantity };
    Intent::new(effect, "demo", key, &arguments.to_string(), &Id::from(1)).unwrap()
}

struct Files {
    _folder: tempfile::TempDir,
    place: LedgerPlace,
}

fn files() -> Files {
    let folder = tempfile::tempdir().unwrap();
    let place = LedgerPlace::File(folder.path().join("new/ledger.sqlite3"));
    Files { _folder: folder, place }
}

fn faults(on: &[Fault]) -> Arc<Faults> {
    Arc::new(Faults::with(on.iter().copied()))
}

fn open(place: &LedgerPlace, on: &[Fault]) -> Book {
    Book::open(place, faults(on)).unwrap()
}

fn record(book: &mut Book, intent: &Intent) -> Result<Recorded, LedgerError> {
    book.record(intent, |_| ())
}

/// Effects in the file, as receipts in their order.
fn receipts(book: &mut Book) -> Vec<String> {
    let mut read = book.db.prepare("SELECT receipt FROM effect ORDER BY execution").unwrap();
    read.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

fn left(book: &mut Book, sku: &str) -> i64 {
    book.stock().unwrap().into_iter().find(|stock| stock.sku == sku).unwrap().available
}

#[test]
fn an_intent_is_bound_to_operation_tenant_and_arguments() {
    let fingerprint = |tenant: &str, effect: Effect, arguments: &str| {
        Intent::new(effect, tenant, None, arguments, &Id::from(1)).unwrap().fingerprint
    };
    let charge = || Effect::Charge { account: String::new(), cents: 0 };
    let reserve = || Effect::Reserve { sku: String::new(), quantity: 0 };
    let cases = [
        ("demo", charge(), CHARGE, "a858743e0990b172cd863784ae2d4fa92badf7d21c73c1ccff188025d9f9da73"),
        ("demo", charge(), r#"{"account":"acct-7","cents":700}"#, "df215eef"),
        ("demo", reserve(), r#"{"sku":"SKU-1","quantity":2}"#, "cf4626b4"),
        ("demo", reserve(), r#"{"quantity":3,"sku":"SKU-1"}"#, "9c65aabd"),
    ];
    for (tenant, effect, arguments, start) in cases {
        let found = fingerprint(tenant, effect, arguments);
        assert!(found.starts_with(start), "{arguments}: {found}");
    }
    let first = fingerprint("demo", charge(), CHARGE);
    assert_ne!(fingerprint("other", charge(), CHARGE), first);
    assert_ne!(fingerprint("demo", reserve(), CHARGE), first);
}

#[test]
fn a_blank_key_is_refused_and_a_missing_one_protects_nothing() {
    for key in ["", " ", "\t\n"] {
        let effect = Effect::Charge { account: "acct-7".to_owned(), cents: 1 };
        let refused = Intent::new(effect, "demo", Some(key), "{}", &Id::from(1));
        assert!(matches!(refused, Err(LedgerError::BlankKey)), "{key:?}");
    }
    let mut book = open(&LedgerPlace::Memory, &[]);
    for receipt in ["charge-001", "charge-002"] {
        let recorded = record(&mut book, &charge(None, 1200)).unwrap();
        assert_eq!((&*recorded.receipt, recorded.is_replay), (receipt, false));
    }
    assert!(book.entries("demo").unwrap().is_empty());
}

#[test]
fn a_key_takes_effect_once_and_stands_for_one_wish() {
    let files = files();
    let mut book = open(&files.place, &[]);
    let first = record(&mut book, &charge(Some("checkout-7"), 1200)).unwrap();
    assert!(!first.is_replay);
    let expected = json!({
        "content": [{ "type": "text", "text": "charge-001: 1200 cents charged to acct-7" }],
        "structuredContent": { "receipt": "charge-001", "account": "acct-7", "cents": 1200 },
    });
    assert_eq!(first.result, expected);

    // What the caller does to its result stays with the caller.
    let mut changed = first.result;
    changed["structuredContent"]["cents"] = json!(0);
    let again = record(&mut book, &charge(Some("checkout-7"), 1200)).unwrap();
    assert_eq!(
        again,
        Recorded { result: expected.clone(), receipt: "charge-001".to_owned(), is_replay: true }
    );

    let other = [charge(Some("checkout-7"), 700), reserve(Some("checkout-7"), "SKU-1", 1)];
    for intent in other {
        let refused = record(&mut book, &intent);
        assert!(matches!(refused, Err(LedgerError::Conflict(key)) if key == "checkout-7"));
    }
    assert_eq!((receipts(&mut book).len(), left(&mut book, "SKU-1")), (1, 10));

    // Another process, later.
    drop(book);
    let mut book = open(&files.place, &[]);
    assert_eq!(record(&mut book, &charge(Some("checkout-7"), 1200)).unwrap().result, expected);
    let entry = book.lookup("demo", "checkout-7").unwrap().unwrap();
    assert_eq!(
        (&*entry.receipt, entry.execution, &*entry.request, entry.replays),
        ("charge-001", 1, "41", 2)
    );
    assert_eq!(entry.result().unwrap(), expected);
    assert_eq!(book.lookup("other", "checkout-7").unwrap(), None, "keys are not shown to other tenants");
    assert_eq!(book.lookup("demo", "checkout-8").unwrap(), None);
    assert_eq!(book.entries("demo").unwrap(), [entry]);
}

#[test]
fn what_is_not_there_is_not_reserved() {
    let mut book = open(&LedgerPlace::Memory, &[]);
    record(&mut book, &reserve(Some("a"), "SKU-2", 2)).unwrap();
    let refused = record(&mut book, &reserve(Some("b"), "SKU-2", 2));
    assert!(matches!(refused, Err(LedgerError::OutOfStock { left: 1, wanted: 2, .. })));
    let refused = record(&mut book, &reserve(Some("c"), "SKU-9", 1));
    assert!(matches!(refused, Err(LedgerError::UnknownSku(_))));
    assert_eq!((receipts(&mut book), left(&mut book, "SKU-2")), (vec!["reservation-001".to_owned()], 1));
    // A refusal is no outcome: the key is free, and no receipt was used up.
    let recorded = record(&mut book, &reserve(Some("b"), "SKU-2", 1)).unwrap();
    assert_eq!((&*recorded.receipt, left(&mut book, "SKU-2")), ("reservation-002", 0));
}

/// Two connections, as of two processes, record the same intent at the same moment.
fn race(place: &LedgerPlace, intent: &Intent, on: &[Fault]) -> [Recorded; 2] {
    let (start, checked) = (&Barrier::new(2), &Barrier::new(2));
    let one = || {
        let mut book = open(place, on);
        start.wait();
        if !on.contains(&Fault::CheckThenAct) {
            return record(&mut book, intent).unwrap();
        }
        let found = book.check(intent).unwrap();
        checked.wait();
        found.unwrap_or_else(|| book.act(intent, |_| ()).unwrap())
    };
    thread::scope(|scope| {
        let both = [scope.spawn(one), scope.spawn(one)];
        both.map(|one| one.join().unwrap())
    })
}

#[test]
fn a_hundred_races_of_two_connections_have_one_effect_each() {
    let files = files();
    for round in 1..=100 {
        let key = format!("race-{round}");
        let [one, two] = race(&files.place, &charge(Some(&key), 1200), &[]);
        assert_eq!((one.result, &one.receipt), (two.result, &two.receipt));
        assert_ne!(one.is_replay, two.is_replay, "one was first");
        assert_eq!(receipts(&mut open(&files.place, &[])).len(), round);
    }
}

#[test]
fn check_then_act_doubles_the_effect_every_time() {
    let files = files();
    for round in 1..=10 {
        let key = format!("race-{round}");
        let [one, two] = race(&files.place, &charge(Some(&key), 1200), &[Fault::CheckThenAct]);
        assert_ne!(one.receipt, two.receipt);
        assert!(!one.is_replay && !two.is_replay);
        assert_eq!(receipts(&mut open(&files.place, &[])).len(), 2 * round);
    }
}

#[test]
fn many_processes_may_open_a_new_ledger_at_once() {
    for _ in 0..20 {
        let files = files();
        let start = &Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let mut book = open(&files.place, &[]);
                    record(&mut book, &charge(None, 1)).unwrap();
                });
            }
        });
        assert_eq!(receipts(&mut open(&files.place, &[])).len(), 8);
    }
}

#[test]
fn nothing_half_is_seen_or_stays() {
    let files = files();
    let intent = reserve(Some("order-1"), "SKU-1", 2);
    let mut seen = Vec::new();
    let mut book = open(&files.place, &[]);
    // At each point another process reads, and then this one dies there: its transaction is never
    // committed.
    for last in [Point::Checked, Point::Effected] {
        let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = book.record(&intent, |point| {
                let mut other = open(&LedgerPlace::Memory, &[]);
                other.db = rusqlite::Connection::open(path(&files.place)).unwrap();
                let stock: i64 = other
                    .db
                    .query_row("SELECT available FROM stock WHERE sku = 'SKU-1'", [], |row| row.get(0))
                    .unwrap();
                seen.push((point, stock, other.lookup("demo", "order-1").unwrap().is_some()));
                assert_ne!(point, last, "dies here");
            });
        }));
        assert!(died.is_err());
    }
    let (checked, effected) = ((Point::Checked, 10, false), (Point::Effected, 10, false));
    assert_eq!(seen, [checked, checked, effected]);
    let mut book = open(&files.place, &[]);
    assert_eq!((receipts(&mut book).len(), left(&mut book, "SKU-1")), (0, 10));
    let recorded = record(&mut book, &intent).unwrap();
    assert_eq!(
        (&*recorded.receipt, recorded.is_replay, left(&mut book, "SKU-1")),
        ("reservation-001", false, 8)
    );
}

#[test]
fn an_effect_elsewhere_happens_once_only_under_a_key_of_its_own() {
    // How it is bound to the ledger, where the process dies; parcels after a retry with the key.
    let rows = [
        (Via::Direct, Point::Effected, 2),
        (Via::Direct, Point::Committed, 1),
        (Via::Keyed, Point::Effected, 1),
        (Via::Outbox, Point::Effected, 1),
        (Via::Outbox, Point::Committed, 1),
        (Via::Outbox, Point::Delivered, 1),
    ];
    for (via, last, parcels) in rows {
        let files = files();
        let effect = Effect::Ship { sku: "SKU-1".to_owned(), quantity: 2, via };
        let intent = Intent::new(effect, "demo", Some("order-1"), "{}", &Id::from(1)).unwrap();
        let died = std::panic::catch_unwind(|| {
            let mut book = open(&files.place, &[]);
            let _ = book.record(&intent, |point| assert_ne!(point, last, "dies here"));
        });
        assert!(died.is_err());
        let mut book = open(&files.place, &[]);
        let recorded = record(&mut book, &intent).unwrap();
        assert_eq!(recorded.receipt, "shipment-001", "{via:?}");
        // A replay delivers nothing; the next process does.
        drop(book);
        let mut book = open(&files.place, &[]);
        book.deliver(&mut |_| ());
        assert_eq!(book.parcels().unwrap().len(), parcels, "{via:?}, dies at {last:?}");
        book.deliver(&mut |_| panic!("nothing waits"));
    }
}

#[test]
fn a_file_of_the_first_layout_gets_its_outbox() {
    let files = files();
    let book = open(&files.place, &[]);
    book.db.execute_batch("DROP TABLE outbox; PRAGMA user_version = 1").unwrap();
    drop(book);
    let mut book = open(&files.place, &[]);
    let effect = Effect::Ship { sku: "SKU-1".to_owned(), quantity: 1, via: Via::Outbox };
    let intent = Intent::new(effect, "demo", None, "{}", &Id::from(1)).unwrap();
    record(&mut book, &intent).unwrap();
    let parcel =
        Parcel { number: 1, key: Some("shipment-001".to_owned()), sku: "SKU-1".to_owned(), quantity: 1 };
    assert_eq!(book.parcels().unwrap(), [parcel]);
}

fn path(place: &LedgerPlace) -> PathBuf {
    let LedgerPlace::File(path) = place else { panic!("a file") };
    path.clone()
}

#[test]
fn each_fault_takes_one_promise_away() {
    /// What two calls with one key come to, the second after a restart where it says so.
    #[derive(Debug, PartialEq)]
    enum Second {
        Same,
        OtherReceipt,
        OtherBody,
        Refused,
    }
    use Second::{OtherBody, OtherReceipt, Refused, Same};
    // The fault; cents of the second call; a restart comes between; without the fault, with it.
    let rows = [
        (Fault::NoKeySupport, 1200, false, Same, OtherReceipt),
        (Fault::MemoryLedger, 1200, false, Same, Same),
        (Fault::MemoryLedger, 1200, true, Same, OtherReceipt),
        (Fault::AliasResults, 1200, false, Same, OtherBody),
        (Fault::NoFingerprint, 700, false, Refused, Same),
        (Fault::NoFingerprint, 1200, false, Same, Same),
    ];
    for (fault, cents, has_restart, without, with) in rows {
        for (on, expected) in [(&[][..], without), (&[fault][..], with)] {
            let files = files();
            let mut book = open(&files.place, on);
            let first = record(&mut book, &charge(Some("k"), 1200)).unwrap();
            if has_restart {
                book = open(&files.place, on);
            }
            let second = match record(&mut book, &charge(Some("k"), cents)) {
                Err(LedgerError::Conflict(_)) => Refused,
                Err(other) => panic!("{other}"),
                Ok(second) if second.receipt != first.receipt => OtherReceipt,
                Ok(second) if second.result != first.result => OtherBody,
                Ok(_) => Same,
            };
            assert_eq!(second, expected, "{on:?}, restart: {has_restart}");
        }
    }
}

#[test]
fn a_file_of_another_layout_is_left_alone() {
    let files = files();
    open(&files.place, &[]).db.pragma_update(None, "user_version", 7).unwrap();
    let refused = Book::open(&files.place, faults(&[]));
    assert!(matches!(refused, Err(LedgerError::Layout { found: 7, known: 2 })));
    let text = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(text.path(), "no database, but text of the user ".repeat(40)).unwrap();
    let refused = Book::open(&LedgerPlace::File(text.path().to_owned()), faults(&[]));
    assert!(matches!(refused, Err(LedgerError::Store(_))), "{refused:?}");
}

#[test]
fn the_file_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let files = files();
    let mut book = open(&files.place, &[]);
    record(&mut book, &charge(Some("k"), 1)).unwrap();
    let path = path(&files.place);
    for file in ["ledger.sqlite3", "ledger.sqlite3-wal"] {
        let mode = std::fs::metadata(path.with_file_name(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

#[test]
fn a_draft_is_for_its_principal_until_it_expires_on_every_replica() {
    let files = files();
    let mut replicas = [open(&files.place, &[]), open(&files.place, &[])];
    let handle = "draft-6f1c";
    replicas[0].create_draft(handle, "ann", 0, 1000).unwrap();
    // Replica, principal, time; the text, or none.
    let rows = [
        (0, "ann", 1, Some("a")),
        (1, "ann", 999, Some("aa")),
        (1, "bob", 999, None),
        (0, "ann", 999, Some("aaa")),
        (0, "ann", 1000, None),
        (1, "ann", 1, None),
    ];
    for (replica, principal, now, expected) in rows {
        let text = match replicas[replica].append_draft(handle, principal, "a", now) {
            Ok(text) => Some(text),
            Err(LedgerError::NoDraft) => None,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(text.as_deref(), expected, "replica {replica}, {principal}, {now}");
    }
    let guess = replicas[0].append_draft("draft-1", "ann", "a", 1);
    assert!(matches!(guess, Err(LedgerError::NoDraft)));
    let long = "draft-77aa";
    replicas[0].create_draft(long, "ann", 0, 5000).unwrap();
    let refused = replicas[1].append_draft(long, "ann", &"x".repeat(70_000), 1);
    assert!(matches!(refused, Err(LedgerError::LongDraft(_))));
    assert_eq!(replicas[0].append_draft(long, "ann", "x", 1).unwrap(), "x");
}

#[test]
fn there_is_a_most_of_drafts_until_some_have_expired() {
    let mut book = open(&LedgerPlace::Memory, &[]);
    let fill = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 9999)
        INSERT INTO draft SELECT 'draft-' || k, 'ann', '', 1000 FROM n";
    book.db.execute(fill, []).unwrap();
    book.create_draft("draft-last", "ann", 0, 1000).unwrap();
    let refused = book.create_draft("draft-more", "ann", 999, 1000);
    assert!(matches!(refused, Err(LedgerError::ManyDrafts(_))));
    book.create_draft("draft-more", "ann", 1000, 1000).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_ledger_serves_calls_that_overlap() {
    for (on, count) in [(&[][..], 1), (&[Fault::CheckThenAct][..], 2), (&[Fault::NoKeySupport][..], 2)] {
        let files = files();
        let ledger = Ledger::new(files.place.clone(), faults(on));
        let intent = || charge(Some("checkout-7"), 1200);
        let (one, two) = tokio::join!(ledger.record(intent()), ledger.record(intent()));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.receipt == two.receipt, count == 1, "{on:?}");
        assert_eq!(receipts(&mut open(&files.place, &[])).len(), count, "{on:?}");
        assert_eq!(ledger.stock().await.unwrap().len(), 3);
    }
}

#[tokio::test]
async fn an_effect_that_has_begun_ends_without_its_caller() {
    let files = files();
    let ledger = Ledger::new(files.place.clone(), faults(&[]));
    {
        let mut call = std::pin::pin!(ledger.record(charge(Some("k"), 1)));
        // Begun, and nobody waits any more.
        let _ = futures_util::poll!(&mut call);
    }
    ledger.workers.close();
    tokio::time::timeout(Ms(10_000).into(), ledger.workers.wait()).await.unwrap();
    assert_eq!(ledger.lookup("demo", "k").await.unwrap().unwrap().receipt, "charge-001");
}

#[tokio::test]
async fn a_queue_that_is_full_turns_calls_away() {
    let ledger = Ledger::new(LedgerPlace::Memory, faults(&[]));
    let all = ledger.queue.acquire_many(u32::try_from(QUEUE).unwrap()).await.unwrap();
    assert!(matches!(ledger.stock().await, Err(LedgerError::Full)));
    drop(all);
    assert!(ledger.stock().await.is_ok());
}
