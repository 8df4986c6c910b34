use std::sync::Arc;

use noetl_store::conformance::story::{Story, log, said, write};
use noetl_store::{CatalogStore, CommandChange, Committed, EventLog, NewEntry, StoreError};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::SqliteStore;
use crate::Options;
use crate::error::store_error;

fn temporary() -> (SqliteStore, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    let store = SqliteStore::open(Options::file(directory.path().join("noetl.db")));
    (store.expect("a new store"), directory)
}

/// Lets the file grow to so many pages, or to what it has when that is more.
async fn room(store: &SqliteStore, pages: u32) {
    let limited = store.writer().run(move |connection| {
        let sql = format!("pragma max_page_count = {pages}");
        let set = connection.query_row(&sql, [], |_| Ok(()));
        set.map_err(|error| store_error("limit the file", error))
    });
    limited.await.expect("a limit");
}

#[tokio::test]
async fn a_store_opened_with_the_default_options_writes_with_full_syncs() {
    let (store, _directory) = temporary();
    let found = store.writer().run(|connection| {
        let level = connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0));
        let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get(0));
        Ok((level, mode))
    });
    let (level, mode) = found.await.expect("settings");
    assert_eq!((level, mode), (Ok(2), Ok("wal".to_owned())));
}

fn large(id: i64) -> NewEntry {
    NewEntry {
        id: noetl_model::CatalogId::new(id),
        path: "demo/large".into(),
        kind: "playbook".into(),
        content: "x".repeat(100_000),
        layout: None,
        payload: None,
        meta: None,
        at: noetl_model::Timestamp::from_micros(id),
    }
}

#[tokio::test]
async fn a_full_store_rejects_writes_and_recovers_with_free_space() {
    let (store, _directory) = temporary();
    let tenant = noetl_model::Tenant::default();
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    room(&store, 1).await;

    let text = "x".repeat(100_000);
    let refused = store.commit(vec![story.clone().then(vec![said(&text)])]).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    let refused = store.register(&tenant, large(1)).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    assert_eq!(log(&store, story.id()).await.len(), 3);

    room(&store, 1_000_000).await;
    write(&store, story.then(vec![said(&text)])).await;
    let entry = store.register(&tenant, large(1)).await.expect("room for it");
    assert_eq!(entry.version, 1);
    assert_eq!(log(&store, story.id()).await.len(), 4);
}

/// Callers that share a transaction share its price, never each other's errors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_batch_fails_no_other_caller_of_its_group() {
    let (store, _directory) = temporary();
    let store = Arc::new(store);
    let mut taken = Story::new(1);
    write(&*store, taken.start()).await;
    let mut tasks = JoinSet::new();
    for id in 0..64 {
        let store = store.clone();
        let mut append = Story::new(10 + id).start();
        let is_bad = id % 8 == 0;
        if is_bad {
            let mut event = noetl_model::Event::clone(&append.events[2]);
            event.id = taken.event_at(3);
            append.events[2] = Arc::new(event);
            append.commands = CommandChange::of_all(append.events.iter().map(AsRef::as_ref));
        }
        tasks.spawn(async move { (is_bad, store.commit(vec![append]).await) });
    }
    for (is_bad, outcome) in tasks.join_all().await {
        match outcome {
            Ok(outcomes) => assert!(!is_bad && outcomes == [Committed::Appended]),
            Err(error) => assert!(is_bad, "{error:?}"),
        }
    }
}
