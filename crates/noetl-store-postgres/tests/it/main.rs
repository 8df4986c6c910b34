//! The Postgres store on a real server.

mod adoption;
mod appends;
mod conformance;
mod console;
mod keeping;
mod partitions;
mod plans;
mod pooled;
mod tail;
mod traffic;
mod upgrade;

use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::{Template, TestDatabase};

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");

/// Creates a database with the current schema and no rows.
fn migrated_database() -> TestDatabase {
    TestDatabase::from_template(Template::new(MIGRATIONS, async |url: String| {
        let options = Options::new(&url).expect("a URL");
        PostgresStore::open(options).await.expect("a store").close().await;
    }))
}
