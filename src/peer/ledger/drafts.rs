//! Drafts: state between calls, under a handle that is given out and passed back. Whoever has the
//! file can serve it, so it does not matter which replica is asked.

use rusqlite::{OptionalExtension as _, TransactionBehavior};

use super::LedgerError;
use super::book::Book;

/// Drafts that are kept at once. ours: anybody can make them, and each lives for a day at most.
const MOST: i64 = 10_000;

/// Most that a draft holds, bytes. ours.
const LONGEST: usize = 64 << 10;

impl Book {
    /// See [`super::Ledger::create_draft`].
    pub(super) fn create_draft(
        &mut self,
        handle: &str,
        principal: &str,
        now: i64,
        life: i64,
    ) -> Result<(), LedgerError> {
        let change = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute("DELETE FROM draft WHERE expires_at <= ?1", [now])?;
        let drafts: i64 = change.query_row("SELECT count(*) FROM draft", [], |row| row.get(0))?;
        if drafts >= MOST {
            return Err(LedgerError::ManyDrafts(MOST));
        }
        let values = (handle, principal, now.saturating_add(life));
        change.execute("INSERT INTO draft VALUES (?1, ?2, '', ?3)", values)?;
        Ok(change.commit()?)
    }

    /// See [`super::Ledger::append_draft`].
    pub(super) fn append_draft(
        &mut self,
        handle: &str,
        principal: &str,
        text: &str,
        now: i64,
    ) -> Result<String, LedgerError> {
        let change = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute("DELETE FROM draft WHERE expires_at <= ?1", [now])?;
        let found: Option<String> = change
            .query_row(
                "UPDATE draft SET text = text || ?3 WHERE handle = ?1 AND principal = ?2 RETURNING text",
                (handle, principal, text),
                |row| row.get(0),
            )
            .optional()?;
        match found {
            Some(text) if text.len() > LONGEST => Err(LedgerError::LongDraft(LONGEST)),
            Some(text) => {
                change.commit()?;
                Ok(text)
            }
            None => {
                // The sweep stays.
                change.commit()?;
                Err(LedgerError::NoDraft)
            }
        }
    }
}
