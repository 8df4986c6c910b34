//! Control planes on a SQLite file.

mod audit;
mod edit;
mod replay;
mod upgrade;
mod verify;

use noetl_store_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// Opens a store in a new directory, which is removed with the second value.
fn temporary() -> (SqliteStore, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    let store = SqliteStore::open(Options::file(directory.path().join("noetl.db")));
    (store.expect("a new store"), directory)
}
