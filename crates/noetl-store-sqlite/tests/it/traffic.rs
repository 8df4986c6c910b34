//! What only a file can show: older schemas, other connections, reopening.

use std::path::{Path, PathBuf};
use std::time::Duration;

use noetl_model::{EventId, ExecutionId, ScheduleId, Seq, Tenant, TimerId, Timestamp};
use noetl_store::conformance::outbox_on;
use noetl_store::conformance::story::{Story, log, said, write};
use noetl_store::{
    Append, CursorStore, EventLog, LeaseStore, NewSchedule, NewTimer, OutboxStore, ScheduleStore,
    SubscriptionStore, TimerStore,
};
use noetl_store::{EventStamp, NewSubscription, SubscriptionState};
use noetl_store_sqlite::{Options, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(3600);

fn place() -> (PathBuf, TempDir) {
    let directory = TempDir::new().expect("a temporary directory");
    (directory.path().join("noetl.db"), directory)
}

fn open(path: &Path) -> SqliteStore {
    let options = Options { outbox: outbox_on(), ..Options::file(path) };
    SqliteStore::open(options).expect("a store")
}

fn due(id: i64, target: ExecutionId) -> NewTimer {
    NewTimer {
        id: TimerId::new(id),
        kind: "wake".into(),
        target,
        at: Timestamp::from_micros(id),
        payload: serde_json::json!({"n": id}),
    }
}

#[tokio::test]
async fn a_file_of_the_first_schema_gains_missing_columns() {
    let (path, _directory) = place();
    let first = Connection::open(&path).expect("a database");
    first.execute_batch(include_str!("../../migrations/0001_store.sql")).expect("a schema");
    first
        .execute_batch(
            "insert into execution values (10, 'acme', 1, 7, 'demo/a', 1, null, 'RUNNING', 3, 5, 5, \
             null, null, 0, 0, 0, 0, null);
             insert into event (position, execution_id, seq, event_id, created_at, origin, \
             event_type, node_name, status, result) values
             (1, 10, 1, 10000001, 5, 'reported', 'progress', 'a', 'RUNNING', '{\"status\":\"\"}'),
             (2, 10, 2, 77, 5, 'reported', 'progress', 'a', 'RUNNING', '{\"status\":\"\"}'),
             (3, 10, 3, 77, 5, 'reported', 'progress', 'a', 'RUNNING', '{\"status\":\"\"}')",
        )
        .expect("an execution with a report that was kept twice");
    first.pragma_update(None, "application_id", 0x4e6f_544c).expect("a mark");
    first.pragma_update(None, "user_version", 1).expect("a version");
    first.close().expect("a closed database");

    let store = open(&path);
    let mut story = Story::new(10).of("acme");
    story.row.version = Seq(3);
    let append = story.then(vec![said("x")]);
    let renamed = log(&store, story.id()).await[2].id;
    assert_ne!(renamed, EventId::new(77), "an id is in a log once");
    let found = store.find_event(story.id(), EventId::new(77)).await.expect("a read");
    assert_eq!(found, Some(Seq(2)), "the first is the one that was answered");
    write(&store, Append { after: Some(renamed), due: vec![due(1, story.id())], ..append }).await;
    let rows = store.timers_of(story.id()).await.expect("a list");
    assert_eq!(rows[0].tenant, Tenant::new("acme"));
    assert_eq!(store.pending().await.expect("a count"), 1, "what is written from now on goes out");
    assert_eq!(log(&store, story.id()).await.len(), 4);
}

#[tokio::test]
async fn all_data_exists_after_reopening() {
    let (path, _directory) = place();
    let tenant = Tenant::default();
    let store = open(&path);
    let mut story = Story::new(10);
    let append = story.start();
    write(&store, Append { due: vec![due(1, story.id())], ..append }).await;
    let lease = store.acquire("tailer", "a", LONG).await.expect("an answer").expect("a lease");
    store.advance("tailer", 7, Some(&lease)).await.expect("an answer");
    let new = NewSubscription {
        id: noetl_model::SubscriptionId::new(1),
        path: "sub/a".into(),
        catalog: story.row.catalog,
        stamp: EventStamp { event: EventId::new(900), at: story.row.started_at },
    };
    store.register_subscription(&tenant, new).await.expect("a subscription");
    let schedule = NewSchedule {
        id: ScheduleId::new(1),
        path: "demo/a".into(),
        version: None,
        cron: None,
        interval_seconds: Some(60),
        is_enabled: true,
        timezone: None,
        payload: None,
        meta: None,
        next_run_at: Some(Timestamp::from_micros(1)),
    };
    store.put_schedule(&tenant, schedule).await.expect("a schedule");
    let claimed = store.claim(1).await.expect("a claim");
    store.close().await;

    let store = open(&path);
    let next = store.acquire("tailer", "b", LONG).await.expect("an answer");
    assert_eq!(next.map(|next| next.epoch), Some(lease.epoch + 1), "the one owner was another");
    assert_eq!(store.cursor("tailer").await.expect("a read"), Some(7));
    assert_eq!(store.claim_due(9, LONG).await.expect("an answer").len(), 1);
    assert_eq!(store.pending().await.expect("a count"), 3, "the claim lasts");
    assert_eq!(store.mark_published(&[claimed[0].id]).await.expect("a count"), 1);
    let listed = store.subscriptions(&tenant).await.expect("a list");
    assert_eq!(listed[0].state, SubscriptionState::Registered);
    assert_eq!(store.ready_schedules(9).await.expect("a list").len(), 1);
}

#[tokio::test]
async fn operators_see_timers_in_a_view() {
    let (path, _directory) = place();
    let store = open(&path);
    let mut story = Story::new(10);
    let append = story.start();
    let sent = vec![due(1, story.id()), due(2, ExecutionId::new(99))];
    write(&store, Append { due: sent, ..append }).await;
    let operator = Connection::open(&path).expect("the database");
    let sql = "select id, execution_id, kind from timer";
    let timer: (i64, i64, String) = operator
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .expect("a timer");
    assert_eq!(timer, (1, 10, "wake".into()));
    let count: i64 =
        operator.query_row("select count(*) from timer", [], |row| row.get(0)).expect("a count");
    assert_eq!(count, 1, "a message to another execution is none");
}
