//! Opens stores, in memory and on databases.

use std::sync::Arc;

use noetl_store::{MemoryStore, OutboxOptions};
use noetl_store_postgres::PostgresStore;
use noetl_store_sqlite::SqliteStore;
use noetl_test_services::postgres::{Template, TestDatabase};

use super::Backend;

const VARIABLE: &str = "NOETL_TEST_STORE";

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../noetl-store-postgres/migrations");

impl Backend {
    /// Opens an empty store of the kind that `NOETL_TEST_STORE` names.
    pub(crate) async fn open(outbox: OutboxOptions) -> Self {
        let named = std::env::var_os(VARIABLE).map(|name| name.to_string_lossy().into_owned());
        match named.as_deref() {
            None | Some("memory") => {
                Self { store: Arc::new(MemoryStore::new().with_outbox(outbox)), resource: None }
            }
            Some("sqlite") => {
                let directory = tempfile::TempDir::new().expect("a directory");
                let file = noetl_store_sqlite::Options::file(directory.path().join("noetl.db"));
                let options = noetl_store_sqlite::Options { outbox, ..file };
                let store = Arc::new(SqliteStore::open(options).expect("a store"));
                Self { store, resource: Some(Box::new(directory)) }
            }
            Some("postgres") => {
                let database = migrated_database();
                let options = noetl_store_postgres::Options::new(&database.url()).expect("a URL");
                let store = PostgresStore::open(options.outbox(outbox)).await.expect("a store");
                Self { store: Arc::new(store), resource: Some(Box::new(database)) }
            }
            Some(other) => panic!("{VARIABLE} is memory, sqlite, or postgres, not '{other}'"),
        }
    }
}

/// Creates a Postgres database with the current schema and no rows. Blocks while it copies the
/// template.
pub fn migrated_database() -> TestDatabase {
    TestDatabase::from_template(Template::new(MIGRATIONS, async |url: String| {
        let options = noetl_store_postgres::Options::new(&url).expect("a URL");
        PostgresStore::open(options).await.expect("a store").close().await;
    }))
}
