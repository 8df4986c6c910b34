//! The suite every store has to pass, and the same random histories for this store and memory.

use std::sync::Arc;

use noetl_store::conformance::clock::HandClock;
use noetl_store::conformance::story::{Story, write};
use noetl_store::conformance::{Subject, outbox_on, seeds, twin, twin_keeping};
use noetl_store::{
    MemoryStore, OutboxStore, Sharded, Store, StoreClock, conformance_suite, lapse_suite,
};
use noetl_store_sqlite::{Options, SqliteStore, Synchronous};
use tempfile::TempDir;

use crate::{temporary, temporary_with};

/// A store in a fresh directory with its outbox on.
fn in_a_file(synchronous: Synchronous) -> Subject {
    let directory = TempDir::new().expect("a temporary directory");
    let path = directory.path().join("noetl.db");
    let options = Options { synchronous, outbox: outbox_on(), ..Options::file(path) };
    Subject::keeping(SqliteStore::open(options).expect("a new store"), directory)
}

/// The same in memory, going by this clock.
fn in_memory(clock: StoreClock) -> Subject {
    let options = Options { clock, outbox: outbox_on(), ..Options::memory() };
    Subject::new(SqliteStore::open(options).expect("a new store"))
}

conformance_suite!(file, async || in_a_file(Synchronous::Full));

conformance_suite!(memory, async || in_memory(StoreClock::default()));

lapse_suite!(lapse, async |clock| in_memory(clock));

/// Executions spread over three files of one directory.
fn in_three_files() -> Subject {
    let directory = TempDir::new().expect("a temporary directory");
    let open = |number: usize| {
        let path = directory.path().join(format!("{number}.db"));
        // What survives a power cut is not what is asked here.
        let synchronous = Synchronous::Normal;
        let options = Options { synchronous, outbox: outbox_on(), ..Options::file(path) };
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(options).expect("a new store"));
        (format!("shard {number}"), store)
    };
    let shards: Vec<_> = (0..3).map(open).collect();
    Subject::keeping(Sharded::new(shards[0].1.clone(), shards), directory)
}

conformance_suite!(sharded, async || in_three_files());

#[tokio::test]
async fn nothing_is_published_unless_requested() {
    let (store, _directory) = temporary();
    write(&store, Story::new(10).start()).await;
    assert_eq!(store.pending().await.expect("a count"), 0);
}

#[tokio::test]
async fn random_histories_read_the_same_as_in_memory() {
    for seed in seeds(0, 20) {
        let memory = Subject::new(MemoryStore::new().with_outbox(outbox_on()));
        // What is compared is what is read, not what a power cut leaves; thousands of waits for
        // the disk would add nothing.
        let sqlite = in_a_file(Synchronous::Normal);
        twin::compare(seed, 60, memory.store(), sqlite.store()).await;
    }
}

#[tokio::test]
async fn random_keeping_reads_the_same_as_in_memory() {
    for (number, seed) in seeds(0, 12).enumerate() {
        let clock = Arc::new(HandClock::default());
        let shared = StoreClock::new(clock.clone());
        // Most run without a file: what they are about is not the disk, and it would wait for it.
        let options = |options| Options { clock: shared.clone(), ..options };
        let sqlite = match number {
            0 => {
                let (store, directory) = temporary_with(options);
                Subject::keeping(store, directory)
            }
            _ => {
                let store = SqliteStore::open(options(Options::memory()));
                Subject::new(store.expect("a new store"))
            }
        };
        let memory = Subject::new(MemoryStore::new().with_clock(shared.clone()));
        twin_keeping::compare(seed, 30, &clock, memory.store(), sqlite.store()).await;
    }
}

#[tokio::test]
async fn a_finished_execution_is_purged_completely() {
    let (store, _directory) = temporary();
    let store = std::sync::Arc::new(store);
    noetl_store::conformance::retention::a_finished_execution_is_purged_completely(store).await;
}
