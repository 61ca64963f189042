//! One connection to the ledger, and its one transaction.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior};
use serde_json::{Value, json};

use super::carrier::Carrier;
use super::{Effect, Intent, LedgerError, Recorded, Via, outbox, schema};
use crate::peer::faults::{Fault, Faults};
use crate::peer::server::LedgerPlace;

/// Entries of one answer. ours.
const ENTRIES: i64 = 100;

/// A place in the work at which something can be made to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point {
    /// The key was looked up and is new.
    Checked,
    /// The effect is written; its key is not.
    Effected,
    /// All is on the disk.
    Committed,
    /// What waited in the outbox is done elsewhere; the outbox does not know.
    Delivered,
}

/// What is known under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::peer) struct Entry {
    pub(in crate::peer) key: String,
    pub(in crate::peer) operation: String,
    pub(in crate::peer) fingerprint: String,
    pub(in crate::peer) receipt: String,
    /// The number of the effect among all of the ledger, from 1.
    pub(in crate::peer) execution: i64,
    /// The id of the request that was first, as it was written.
    pub(in crate::peer) request: String,
    /// How often its result was given out again.
    pub(in crate::peer) replays: i64,
    tenant: String,
    /// The text of the first result.
    result: String,
}

impl Entry {
    /// The first result, parsed afresh.
    pub(in crate::peer) fn result(&self) -> Result<Value, LedgerError> {
        parse(&self.result)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Entry> {
        Ok(Entry {
            key: row.get("key")?,
            operation: row.get("operation")?,
            fingerprint: row.get("fingerprint")?,
            receipt: row.get("receipt")?,
            execution: row.get("execution")?,
            request: row.get("request")?,
            replays: row.get("replays")?,
            tenant: row.get("tenant")?,
            result: row.get("result")?,
        })
    }
}

/// How many of an article can still be reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::peer) struct Stock {
    pub(in crate::peer) sku: String,
    pub(in crate::peer) available: i64,
}

/// One connection. The maps are what the faults `memory_ledger` and `alias_results` keep where it
/// does not belong.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) db: Connection,
    pub(super) place: LedgerPlace,
    /// Open once it was needed.
    pub(super) carrier: Option<Carrier>,
    faults: Arc<Faults>,
    in_memory: HashMap<String, Entry>,
    aliased: HashMap<String, Value>,
}

impl Book {
    pub(super) fn open(place: &LedgerPlace, faults: Arc<Faults>) -> Result<Book, LedgerError> {
        let (in_memory, aliased) = (HashMap::new(), HashMap::new());
        let (db, place) = (schema::open(place)?, place.clone());
        Ok(Book { db, place, carrier: None, faults, in_memory, aliased })
    }

    /// Check, effect and memory in one transaction. `at` is called at each point that is passed.
    pub(super) fn record(
        &mut self,
        intent: &Intent,
        mut at: impl FnMut(Point),
    ) -> Result<Recorded, LedgerError> {
        let is_in_memory = self.faults.is_on(Fault::MemoryLedger);
        self.call_carrier(intent)?;
        let whole = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let key = intent.key.as_ref().filter(|_| !self.faults.is_on(Fault::NoKeySupport));
        if let Some(key) = key {
            let found = if is_in_memory { self.in_memory.get(key).cloned() } else { find(&whole, key)? };
            if let Some(entry) = found {
                check(intent, &entry, &self.faults)?;
                count_replay(&whole, key)?;
                whole.commit()?;
                return self.replay(entry);
            }
        }
        at(Point::Checked);
        let entry = take_effect(&whole, intent, self.carrier.as_mut())?;
        at(Point::Effected);
        if key.is_some() && !is_in_memory {
            keep(&whole, &entry, "INSERT")?;
        }
        whole.commit()?;
        at(Point::Committed);
        if key.is_some() && is_in_memory {
            self.in_memory.insert(entry.key.clone(), entry.clone());
        }
        self.deliver(&mut at);
        first(entry)
    }

    /// Sees that the carrier is there where the effect needs it at once.
    fn call_carrier(&mut self, intent: &Intent) -> Result<(), LedgerError> {
        if matches!(intent.effect, Effect::Ship { via: Via::Direct | Via::Keyed, .. }) {
            self.carrier()?;
        }
        Ok(())
    }

    /// The first half of the fault `check_then_act`: looks a key up, and lets go of the file.
    pub(super) fn check(&mut self, intent: &Intent) -> Result<Option<Recorded>, LedgerError> {
        let Some(key) = &intent.key else { return Ok(None) };
        let asked = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found = if self.faults.is_on(Fault::MemoryLedger) {
            self.in_memory.get(key).cloned()
        } else {
            find(&asked, key)?
        };
        let Some(entry) = found else { return Ok(None) };
        check(intent, &entry, &self.faults)?;
        count_replay(&asked, key)?;
        asked.commit()?;
        self.replay(entry).map(Some)
    }

    /// The other half: takes effect, whatever has happened since, and then keeps the key, in two
    /// transactions.
    pub(super) fn act(
        &mut self,
        intent: &Intent,
        mut at: impl FnMut(Point),
    ) -> Result<Recorded, LedgerError> {
        at(Point::Checked);
        self.call_carrier(intent)?;
        let acted = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let entry = take_effect(&acted, intent, self.carrier.as_mut())?;
        acted.commit()?;
        at(Point::Effected);
        if self.faults.is_on(Fault::MemoryLedger) {
            self.in_memory.insert(entry.key.clone(), entry.clone());
        } else {
            let kept = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            keep(&kept, &entry, "INSERT OR REPLACE")?;
            kept.commit()?;
        }
        at(Point::Committed);
        self.deliver(&mut at);
        first(entry)
    }

    /// See [`super::Ledger::lookup`].
    pub(super) fn lookup(&mut self, tenant: &str, key: &str) -> Result<Option<Entry>, LedgerError> {
        let found = if self.faults.is_on(Fault::MemoryLedger) {
            self.in_memory.get(key).cloned()
        } else {
            let read = self.db.transaction()?;
            find(&read, key)?
        };
        Ok(found.filter(|entry| entry.tenant == tenant))
    }

    /// See [`super::Ledger::entries`].
    pub(super) fn entries(&mut self, tenant: &str) -> Result<Vec<Entry>, LedgerError> {
        let sql = "SELECT * FROM kept WHERE tenant = ?1 ORDER BY execution DESC LIMIT ?2";
        let mut read = self.db.prepare(sql)?;
        let rows = read.query_map((tenant, ENTRIES), Entry::read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// See [`super::Ledger::stock`].
    pub(super) fn stock(&mut self) -> Result<Vec<Stock>, LedgerError> {
        let mut read = self.db.prepare("SELECT sku, available FROM stock ORDER BY sku")?;
        let rows = read.query_map([], |row| Ok(Stock { sku: row.get(0)?, available: row.get(1)? }))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The first result again. With the fault `alias_results` it is the stored object itself that
    /// is given out, and the caller counts its replays in it.
    fn replay(&mut self, entry: Entry) -> Result<Recorded, LedgerError> {
        let mut result = entry.result()?;
        if self.faults.is_on(Fault::AliasResults) {
            let shared = self.aliased.entry(entry.key).or_insert(result);
            if let Some(content) = shared.get_mut("structuredContent").and_then(Value::as_object_mut) {
                let replays = content.get("replays").and_then(Value::as_i64).unwrap_or(0);
                content.insert("replays".to_owned(), json!(replays + 1));
            }
            result = shared.clone();
        }
        Ok(Recorded { result, receipt: entry.receipt, is_replay: true })
    }
}

/// The key stands for this intent and no other (REL-05).
fn check(intent: &Intent, entry: &Entry, faults: &Faults) -> Result<(), LedgerError> {
    if entry.fingerprint == intent.fingerprint || faults.is_on(Fault::NoFingerprint) {
        return Ok(());
    }
    Err(LedgerError::Conflict(entry.key.clone()))
}

fn first(entry: Entry) -> Result<Recorded, LedgerError> {
    Ok(Recorded { result: entry.result()?, receipt: entry.receipt, is_replay: false })
}

fn find(db: &Transaction<'_>, key: &str) -> Result<Option<Entry>, LedgerError> {
    Ok(db.query_row("SELECT * FROM kept WHERE key = ?1", [key], Entry::read).optional()?)
}

fn count_replay(db: &Transaction<'_>, key: &str) -> Result<(), LedgerError> {
    db.execute("UPDATE kept SET replays = replays + 1 WHERE key = ?1", [key])?;
    Ok(())
}

/// Writes the effect, counts it, and makes the receipt and the result of it.
fn take_effect(
    db: &Transaction<'_>,
    intent: &Intent,
    carrier: Option<&mut Carrier>,
) -> Result<Entry, LedgerError> {
    let operation = intent.effect.operation();
    let count: i64 = db.query_row(
        "INSERT INTO counter VALUES (?1, 1) ON CONFLICT DO UPDATE SET effects = effects + 1 RETURNING effects",
        [operation],
        |row| row.get(0),
    )?;
    let (receipt, subject, amount, text, mut content) = match &intent.effect {
        Effect::Charge { account, cents } => {
            let text = format!("{cents} cents charged to {account}");
            (
                format!("charge-{count:03}"),
                account,
                cents,
                text,
                json!({ "account": account, "cents": cents }),
            )
        }
        Effect::Reserve { sku, quantity } => {
            take_from_stock(db, sku, *quantity)?;
            let text = format!("{quantity} of {sku} reserved");
            (
                format!("reservation-{count:03}"),
                sku,
                quantity,
                text,
                json!({ "sku": sku, "quantity": quantity }),
            )
        }
        Effect::Ship { sku, quantity, via } => {
            let receipt = format!("shipment-{count:03}");
            let mut content = json!({ "sku": sku, "quantity": quantity });
            match (via, carrier) {
                (Via::Direct | Via::Keyed, Some(carrier)) => {
                    let key = intent.key.as_ref().filter(|_| *via == Via::Keyed);
                    let key = key.map(|key| format!("{}/{key}", intent.tenant));
                    content["parcel"] = json!(carrier.send(key.as_deref(), sku, *quantity)?);
                }
                _ => outbox::put(db, &receipt, sku, *quantity)?,
            }
            let text = format!("{quantity} of {sku} on the way");
            (receipt, sku, quantity, text, content)
        }
    };
    let execution: i64 = db.query_row(
        "INSERT INTO effect (receipt, operation, tenant, subject, amount) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING execution",
        (&receipt, operation, &intent.tenant, subject, amount),
        |row| row.get(0),
    )?;
    content["receipt"] = json!(receipt);
    let text = format!("{receipt}: {text}");
    let result = json!({ "content": [{ "type": "text", "text": text }], "structuredContent": content });
    Ok(Entry {
        key: intent.key.clone().unwrap_or_default(),
        operation: operation.to_owned(),
        fingerprint: intent.fingerprint.clone(),
        receipt,
        execution,
        request: intent.request.clone(),
        replays: 0,
        tenant: intent.tenant.clone(),
        result: result.to_string(),
    })
}

fn take_from_stock(db: &Transaction<'_>, sku: &str, quantity: i64) -> Result<(), LedgerError> {
    let available: Option<i64> =
        db.query_row("SELECT available FROM stock WHERE sku = ?1", [sku], |row| row.get(0)).optional()?;
    let left = available.ok_or_else(|| LedgerError::UnknownSku(sku.to_owned()))?;
    if left < quantity {
        return Err(LedgerError::OutOfStock { sku: sku.to_owned(), wanted: quantity, left });
    }
    db.execute("UPDATE stock SET available = available - ?2 WHERE sku = ?1", (sku, quantity))?;
    Ok(())
}

/// `insert`: what becomes of a key that is there.
fn keep(db: &Transaction<'_>, entry: &Entry, insert: &str) -> Result<(), LedgerError> {
    let sql = format!(
        "{insert} INTO kept (key, tenant, operation, fingerprint, receipt, execution, result, request)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    );
    let values = (
        &entry.key,
        &entry.tenant,
        &entry.operation,
        &entry.fingerprint,
        &entry.receipt,
        entry.execution,
        &entry.result,
        &entry.request,
    );
    db.execute(&sql, values)?;
    Ok(())
}

fn parse(text: &str) -> Result<Value, LedgerError> {
    // Only this program writes results; another text was put there by hand.
    serde_json::from_str(text).map_err(|_| LedgerError::Unreadable(crate::machine::fingerprint::Unreadable))
}
