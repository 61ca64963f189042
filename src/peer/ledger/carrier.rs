//! Somebody else's system, which takes parcels: another file, that no transaction of the ledger
//! reaches. A parcel that is sent is on its way, whatever becomes of the ledger.
//!
//! It honours a key that is sent along, as good systems do. That, and not the transaction, is what
//! makes an effect elsewhere happen once.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::{LedgerError, schema};
use crate::peer::server::LedgerPlace;

/// Parcels of one answer. ours.
const PARCELS: i64 = 100;

/// Added to the name of the ledger's file.
const ENDING: &str = ".carrier";

const TABLES: &str = "
CREATE TABLE parcel (
    number INTEGER PRIMARY KEY, key TEXT UNIQUE, sku TEXT NOT NULL, quantity INTEGER NOT NULL) STRICT;
";

/// One connection to it.
#[derive(Debug)]
pub(super) struct Carrier {
    db: Connection,
}

/// A parcel on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::peer) struct Parcel {
    pub(in crate::peer) number: i64,
    /// The key that was sent along.
    pub(in crate::peer) key: Option<String>,
    pub(in crate::peer) sku: String,
    pub(in crate::peer) quantity: i64,
}

impl Carrier {
    /// Opens it beside the ledger.
    pub(super) fn open(ledger: &LedgerPlace) -> Result<Carrier, LedgerError> {
        let place = match ledger {
            LedgerPlace::Memory => LedgerPlace::Memory,
            LedgerPlace::File(file) => {
                let mut name = file.as_os_str().to_owned();
                name.push(ENDING);
                LedgerPlace::File(name.into())
            }
        };
        let db = schema::open_file(&place)?;
        let mut carrier = Carrier { db };
        let lay = carrier.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if lay.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? == 0 {
            lay.execute_batch(TABLES)?;
            lay.pragma_update(None, "user_version", 1)?;
        }
        lay.commit()?;
        Ok(carrier)
    }

    /// Sends a parcel, unless its key says that it was sent: its number. Done when this returns.
    pub(super) fn send(&mut self, key: Option<&str>, sku: &str, quantity: i64) -> Result<i64, LedgerError> {
        let sent = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let known: Option<i64> = match key {
            None => None,
            Some(key) => sent
                .query_row("SELECT number FROM parcel WHERE key = ?1", [key], |row| row.get(0))
                .optional()?,
        };
        let number = match known {
            Some(number) => number,
            None => sent.query_row(
                "INSERT INTO parcel (key, sku, quantity) VALUES (?1, ?2, ?3) RETURNING number",
                (key, sku, quantity),
                |row| row.get(0),
            )?,
        };
        sent.commit()?;
        Ok(number)
    }

    /// The newest parcels, newest first.
    pub(super) fn parcels(&self) -> Result<Vec<Parcel>, LedgerError> {
        let sql = "SELECT number, key, sku, quantity FROM parcel ORDER BY number DESC LIMIT ?1";
        let mut read = self.db.prepare(sql)?;
        let rows = read.query_map([PARCELS], |row| {
            Ok(Parcel { number: row.get(0)?, key: row.get(1)?, sku: row.get(2)?, quantity: row.get(3)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
