//! What only a file can show of retention: positions, and a purge that was cut short.

use std::path::Path;

use noetl_store::conformance::story::{Story, done, log, said, started, write};
use noetl_store::retention::{PurgeCounts, RetentionPolicy, RetentionStore, RetentionWindow};
use noetl_store::{BlobRefs, CommandStore, EventLog};
use noetl_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;

use crate::temporary;

fn a_day_of_executions() -> RetentionPolicy {
    RetentionPolicy {
        executions: RetentionWindow::days("days", 1).expect("in range"),
        ..RetentionPolicy::KEEP
    }
}

fn number(path: &Path, sql: &str) -> i64 {
    let file = Connection::open(path).expect("the file");
    file.query_row(sql, [], |row| row.get(0)).expect("a number")
}

#[tokio::test]
async fn a_position_is_never_given_twice() {
    let (store, directory) = temporary();
    let path = directory.path().join("noetl.db");
    let (mut stays, mut goes) = (Story::new(10), Story::new(11));
    write(&store, stays.start()).await;
    write(&store, goes.start()).await;
    write(&store, goes.then(vec![done()])).await;
    let newest = number(&path, "select max(position) from event");
    assert_eq!(newest, 7);
    let report = store.purge(&a_day_of_executions(), false).await.expect("a report");
    assert_eq!(report.removed.events, 4);
    assert_eq!(number(&path, "select max(position) from event"), 3, "the newest rows are gone");
    drop(store);
    // Not even after a restart.
    let store = SqliteStore::open(Options::file(&path)).expect("the store again");
    write(&store, stays.then(vec![said("more")])).await;
    assert_eq!(number(&path, "select max(position) from event"), newest + 1);
    drop(store);
}

#[tokio::test]
async fn an_emptied_log_continues_above_its_last_position() {
    let (store, directory) = temporary();
    let path = directory.path().join("noetl.db");
    write(&store, Story::new(10).then(vec![started(), done()])).await;
    store.purge(&a_day_of_executions(), false).await.expect("a report");
    assert_eq!(number(&path, "select count(*) from event"), 0);
    write(&store, Story::new(11).start()).await;
    assert_eq!(number(&path, "select min(position) from event"), 3);
}

#[tokio::test]
async fn a_purge_that_was_cut_short_is_finished_by_the_next() {
    let (store, directory) = temporary();
    let path = directory.path().join("noetl.db");
    let (mut gone, mut stays) = (Story::new(10), Story::new(11));
    for story in [&mut gone, &mut stays] {
        write(&store, story.start()).await;
    }
    write(&store, gone.then(vec![done()])).await;
    drop(store);
    // What a process leaves that dies after the first step.
    let file = Connection::open(&path).expect("the file");
    file.execute_batch(
        "insert into purged_execution select id, tenant_id from execution where id = 10;
         delete from execution where id = 10;",
    )
    .expect("half a purge");
    file.close().expect("a closed file");

    let store = SqliteStore::open(Options::file(&path)).expect("the store again");
    let removed = PurgeCounts { events: 4, commands: 1, ..PurgeCounts::default() };
    for dry_run in [true, false] {
        // Even by a policy that keeps everything: it is gone already.
        let report = store.purge(&RetentionPolicy::KEEP, dry_run).await.expect("a report");
        assert_eq!(report.removed, removed, "dry: {dry_run}");
    }
    assert!(log(&store, gone.id()).await.is_empty());
    assert_eq!(store.command(gone.command_at(3)).await.expect("a read"), None);
    assert!(store.references(gone.id()).await.expect("a list").is_empty());
    assert_eq!(number(&path, "select count(*) from purged_execution"), 0);
    assert_eq!(log(&store, stays.id()).await.len(), 3);
    assert!(store.newest_id().await.expect("an id").is_some());
}
