//! The file: how it is opened and laid out.

use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::LedgerError;
use crate::peer::server::LedgerPlace;
use crate::time::Ms;

/// How long a connection waits for another one's transaction. ours: far above what one takes, and
/// far below what people wait for a call.
const BUSY: Ms = Ms(5000);

/// How long until it is tried again where `SQLite` does not wait by itself.
const AGAIN: Ms = Ms(10);

/// Tells the new files of this process apart.
static NEW_FILES: AtomicU64 = AtomicU64::new(0);

/// The layout below. A file with a higher number is left alone.
const LAYOUT: i64 = 2;

/// What a new ledger has in stock.
pub(in crate::peer) const ARTICLES: [(&str, i64); 3] = [("SKU-1", 10), ("SKU-2", 3), ("SKU-3", 0)];

const TABLES: &str = "
CREATE TABLE counter (operation TEXT PRIMARY KEY, effects INTEGER NOT NULL) STRICT;
CREATE TABLE effect (
    execution INTEGER PRIMARY KEY, receipt TEXT NOT NULL UNIQUE, operation TEXT NOT NULL,
    tenant TEXT NOT NULL, subject TEXT NOT NULL, amount INTEGER NOT NULL) STRICT;
CREATE TABLE kept (
    key TEXT PRIMARY KEY, tenant TEXT NOT NULL, operation TEXT NOT NULL, fingerprint TEXT NOT NULL,
    receipt TEXT NOT NULL, execution INTEGER NOT NULL, result TEXT NOT NULL, request TEXT NOT NULL,
    replays INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE stock (sku TEXT PRIMARY KEY, available INTEGER NOT NULL CHECK (available >= 0)) STRICT;
CREATE TABLE draft (
    handle TEXT PRIMARY KEY, principal TEXT NOT NULL, text TEXT NOT NULL,
    expires_at INTEGER NOT NULL) STRICT;
";

/// What layout 2 has more than layout 1.
const OUTBOX: &str = "
CREATE TABLE outbox (receipt TEXT PRIMARY KEY, sku TEXT NOT NULL, quantity INTEGER NOT NULL) STRICT;
";

/// Opens the ledger, and lays it out if it is new. The file is for its owner's eyes only.
pub(super) fn open(place: &LedgerPlace) -> Result<Connection, LedgerError> {
    let mut db = open_file(place)?;
    let lay = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match lay.pragma_query_value(None, "user_version", |row| row.get(0))? {
        LAYOUT => {}
        0 => {
            lay.execute_batch(TABLES)?;
            for (sku, available) in ARTICLES {
                lay.execute("INSERT INTO stock VALUES (?1, ?2)", (sku, available))?;
            }
            lay.execute_batch(OUTBOX)?;
        }
        1 => lay.execute_batch(OUTBOX)?,
        found => return Err(LedgerError::Layout { found, known: LAYOUT }),
    }
    lay.pragma_update(None, "user_version", LAYOUT)?;
    lay.commit()?;
    Ok(db)
}

/// Opens a file of ours as it is, or makes it.
pub(super) fn open_file(place: &LedgerPlace) -> Result<Connection, LedgerError> {
    let db = match place {
        LedgerPlace::Memory => Connection::open_in_memory()?,
        LedgerPlace::File(file) => {
            make(file).map_err(|source| LedgerError::Open { file: file.clone(), source })?;
            Connection::open(file)?
        }
    };
    db.busy_timeout(Duration::from(BUSY))?;
    // Readers do not wait for the writer; a commit is on the disk when it returns.
    write_ahead(&db)?;
    db.pragma_update(None, "synchronous", "full")?;
    Ok(db)
}

/// Switches to the write-ahead log. `SQLite` does not wait by itself for another connection that does
/// the same to a new file.
fn write_ahead(db: &Connection) -> Result<(), LedgerError> {
    let mut patience = BUSY.0 / AGAIN.0;
    loop {
        match db.pragma_update(None, "journal_mode", "wal").map_err(LedgerError::from) {
            Err(LedgerError::Busy) if patience > 0 => {
                patience -= 1;
                std::thread::sleep(AGAIN.into());
            }
            done => return done,
        }
    }
}

/// Makes the file and its folder, where they are missing, readable by nobody else. An existing file
/// is not opened: closing it again would release the locks that `SQLite` holds on it in this process.
fn make(file: &Path) -> std::io::Result<()> {
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    if file.try_exists()? {
        return Ok(());
    }
    // Made under another name, and closed before it has its own.
    let mut new = file.as_os_str().to_owned();
    new.push(format!(".new-{}-{}", std::process::id(), NEW_FILES.fetch_add(1, Ordering::Relaxed)));
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let linked = fs::hard_link(&new, file);
    fs::remove_file(&new)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
