//! Behind a proxy that pools by transaction: no two statements meet the same connection.

use noetl_store::conformance::{Subject, outbox_on, seeds, twin};
use noetl_store::{MemoryStore, conformance_suite};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;

/// `None` where there is no such proxy.
fn options(database: &TestDatabase) -> Option<Options> {
    let url = database.pooled_url()?;
    Some(Options::new(&url).expect("a URL").statement_cache(0))
}

/// Without the proxy the suite runs as it does elsewhere.
async fn subject() -> Subject {
    let database = TestDatabase::new();
    let options = options(&database);
    let options = options.unwrap_or_else(|| Options::new(&database.url()).expect("a URL"));
    let store = PostgresStore::open(options.outbox(outbox_on())).await.expect("a new store");
    Subject::keeping(store, database)
}

conformance_suite!(postgres, async || subject().await);

#[tokio::test]
async fn random_histories_read_the_same_as_in_memory() {
    // One seed: the suite without the proxy compares ten.
    for seed in seeds(200, 1) {
        let pooled = subject().await;
        let memory = Subject::new(MemoryStore::new().with_outbox(outbox_on()));
        twin::compare(seed, 60, memory.store(), pooled.store()).await;
    }
}
