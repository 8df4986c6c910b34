//! The embedded store, from outside.

mod conformance;
mod durability;
mod opening;
mod traffic;

use noetl_store_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// A store in a fresh directory, which goes away with the second value.
fn temporary() -> (SqliteStore, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    let store = SqliteStore::open(Options::file(directory.path().join("noetl.db")));
    (store.expect("a new store"), directory)
}
