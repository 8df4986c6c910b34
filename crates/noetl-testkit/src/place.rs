//! Where an app of a test keeps what it has: in memory, or on the store that the environment names.
//!
//! What the routes answer must not depend on the store, so the tests of the routes are run on each of
//! them: `NOETL_TEST_STORE=sqlite` and `NOETL_TEST_STORE=postgres`.

use std::any::Any;
use std::sync::Arc;

use noetl_store::{MemoryStore, OutboxOptions, Store};
use noetl_store_postgres::PostgresStore;
use noetl_store_sqlite::SqliteStore;

use crate::postgres::TestDatabase;

const VARIABLE: &str = "NOETL_TEST_STORE";

/// A store, and what has to live as long as it.
pub(crate) struct Place {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) holds: Option<Box<dyn Any + Send + Sync>>,
}

/// An empty store of the kind that is asked for.
pub(crate) async fn place(outbox: OutboxOptions) -> Place {
    let named = std::env::var_os(VARIABLE).map(|name| name.to_string_lossy().into_owned());
    match named.as_deref() {
        None | Some("memory") => {
            Place { store: Arc::new(MemoryStore::new().with_outbox(outbox)), holds: None }
        }
        Some("sqlite") => {
            let directory = tempfile::TempDir::new().expect("a directory");
            let file = noetl_store_sqlite::Options::file(directory.path().join("noetl.db"));
            let options = noetl_store_sqlite::Options { outbox, ..file };
            let store = Arc::new(SqliteStore::open(options).expect("a store"));
            Place { store, holds: Some(Box::new(directory)) }
        }
        Some("postgres") => {
            let database = TestDatabase::migrated();
            let options = noetl_store_postgres::Options::new(&database.url()).expect("a URL");
            let store = PostgresStore::open(options.outbox(outbox)).await.expect("a store");
            Place { store: Arc::new(store), holds: Some(Box::new(database)) }
        }
        Some(other) => panic!("{VARIABLE} is memory, sqlite or postgres, not '{other}'"),
    }
}
