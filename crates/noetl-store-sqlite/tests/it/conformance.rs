//! The suite every store has to pass, and the same random histories for this store and memory.

use noetl_store::conformance::{Subject, twin};
use noetl_store::{MemoryStore, conformance_suite, lapse_suite};
use noetl_store_sqlite::{Options, SqliteStore};

use crate::temporary;

conformance_suite!(file, async || {
    let (store, directory) = temporary();
    Subject::keeping(store, directory)
});

conformance_suite!(memory, async || {
    Subject::new(SqliteStore::open(Options::memory()).expect("a new store"))
});

lapse_suite!(lapse, async |clock| {
    let options = Options { clock, ..Options::memory() };
    Subject::new(SqliteStore::open(options).expect("a new store"))
});

#[tokio::test]
async fn random_histories_read_the_same_as_in_memory() {
    for seed in 0..20 {
        let (store, directory) = temporary();
        let sqlite = Subject::keeping(store, directory);
        let memory = Subject::new(MemoryStore::new());
        twin::compare(seed, 60, memory.store(), sqlite.store()).await;
    }
}
