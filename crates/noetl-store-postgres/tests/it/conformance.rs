//! The suite every store has to pass, and the same random histories for this store and memory.

use noetl_store::conformance::{Subject, outbox_on, seeds, twin};
use noetl_store::{MemoryStore, conformance_suite};
use noetl_store_postgres::{Options, PostgresStore};

async fn subject() -> Subject {
    let database = crate::migrated_database();
    let options = Options::new(&database.url()).expect("a URL").outbox(outbox_on());
    let store = PostgresStore::open(options).await.expect("a new store");
    Subject::keeping(store, database)
}

conformance_suite!(postgres, async || subject().await);

#[tokio::test]
async fn random_histories_read_the_same_as_in_memory() {
    for seed in seeds(0, 10) {
        let postgres = subject().await;
        let memory = Subject::new(MemoryStore::new().with_outbox(outbox_on()));
        twin::compare(seed, 60, memory.store(), postgres.store()).await;
    }
}

#[tokio::test]
async fn a_finished_execution_is_purged_completely() {
    let subject = subject().await;
    let store = subject.store();
    noetl_store::conformance::retention::a_finished_execution_is_purged_completely(store).await;
}
