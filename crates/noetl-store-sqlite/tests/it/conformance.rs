//! The suite every store has to pass, and the same random histories for this store and memory.

use std::sync::Arc;

use noetl_store::conformance::clock::HandClock;
use noetl_store::conformance::{Subject, twin, twin_keeping};
use noetl_store::{MemoryStore, conformance_suite};
use noetl_store_sqlite::{Options, SqliteStore};

use crate::{temporary, temporary_with};

conformance_suite!(file, async || {
    let (store, directory) = temporary();
    Subject::keeping(store, directory)
});

conformance_suite!(memory, async || {
    Subject::new(SqliteStore::open(Options::memory()).expect("a new store"))
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

#[tokio::test]
async fn random_keeping_reads_the_same_as_in_memory() {
    for seed in 0..12 {
        let clock = Arc::new(HandClock::default());
        // Most run without a file: what they are about is not the disk, and it would wait for it.
        let options = |options| Options { clock: clock.clone(), ..options };
        let sqlite = match seed {
            0 => {
                let (store, directory) = temporary_with(options);
                Subject::keeping(store, directory)
            }
            _ => {
                let store = SqliteStore::open(options(Options::memory()));
                Subject::new(store.expect("a new store"))
            }
        };
        let memory = Subject::new(MemoryStore::with_clock(clock.clone()));
        twin_keeping::compare(seed, 30, &clock, memory.store(), sqlite.store()).await;
    }
}
