//! The outbox: what is still to be done elsewhere. A row is written in the transaction of its
//! effect, and carried out afterwards, under a key of its own: as often as it takes, and once for
//! the other side.

use rusqlite::Transaction;

use super::LedgerError;
use super::book::{Book, Point};
use super::carrier::{Carrier, Parcel};

/// Rows that are carried out in one go. ours: what is left comes with the next.
const BATCH: i64 = 100;

/// Writes a row for the parcel of this receipt.
pub(super) fn put(db: &Transaction<'_>, receipt: &str, sku: &str, quantity: i64) -> Result<(), LedgerError> {
    db.execute("INSERT INTO outbox (receipt, sku, quantity) VALUES (?1, ?2, ?3)", (receipt, sku, quantity))?;
    Ok(())
}

impl Book {
    /// Carries out what waits. What fails, or is killed in the middle, is done again by whoever
    /// comes next: the effect itself stands.
    pub(super) fn deliver(&mut self, at: &mut impl FnMut(Point)) {
        if let Err(error) = self.carry_out(at) {
            tracing::warn!(%error, "something waits in the outbox");
        }
    }

    fn carry_out(&mut self, at: &mut impl FnMut(Point)) -> Result<(), LedgerError> {
        for (receipt, sku, quantity) in self.waiting()? {
            // A receipt is never given twice, so that it can be the key.
            self.carrier()?.send(Some(&receipt), &sku, quantity)?;
            at(Point::Delivered);
            self.db.execute("DELETE FROM outbox WHERE receipt = ?1", [&receipt])?;
        }
        Ok(())
    }

    /// The parcels of the carrier.
    pub(super) fn parcels(&mut self) -> Result<Vec<Parcel>, LedgerError> {
        self.carrier()?.parcels()
    }

    fn waiting(&self) -> Result<Vec<(String, String, i64)>, LedgerError> {
        let mut read =
            self.db.prepare("SELECT receipt, sku, quantity FROM outbox ORDER BY receipt LIMIT ?1")?;
        let rows = read.query_map([BATCH], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The carrier, which is opened when it is needed.
    pub(super) fn carrier(&mut self) -> Result<&mut Carrier, LedgerError> {
        match &mut self.carrier {
            Some(carrier) => Ok(carrier),
            none => Ok(none.insert(Carrier::open(&self.place)?)),
        }
    }
}
