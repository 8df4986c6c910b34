//! The embedded store, from outside.

mod appends;
mod conformance;
mod durability;
mod opening;
mod retention;
#[cfg(target_os = "linux")]
mod syncs;
mod traffic;

use noetl_store_sqlite::{Options, SqliteStore};
use tempfile::TempDir;

/// A store in a fresh directory, which goes away with the second value.
fn temporary() -> (SqliteStore, TempDir) {
    temporary_with(|options| options)
}

/// The same with changed options.
fn temporary_with(change: impl FnOnce(Options) -> Options) -> (SqliteStore, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    let options = Options::file(directory.path().join("noetl.db"));
    let store = SqliteStore::open(change(options));
    (store.expect("a new store"), directory)
}
