//! A database that another NoETL made is taken over with everything in it.

use noetl_model::{EventId, ExecutionId, Fact, Seq, Tenant};
use noetl_store::conformance::{Subject, outbox_on, seeds, twin};
use noetl_store::{
    CredentialStore, CursorStore, EventLog, EventStamp, ExecutionFilter, ExecutionStatus,
    ExecutionStore, MemoryStore, SubscriptionAction, SubscriptionState, SubscriptionStore,
};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;

const ENDED: i64 = 280_000_000_000_000_001;
const ENDED_TWICE: i64 = 280_000_000_000_000_002;
const UNFINISHED: i64 = 570_000_000_000_000_003;

fn old_database() -> TestDatabase {
    let database = TestDatabase::new();
    database.psql(include_str!("old_schema.sql"));
    database
}

async fn adopt(database: &TestDatabase) -> PostgresStore {
    let options = Options::new(&database.url()).expect("a URL");
    PostgresStore::open(options).await.expect("an adopted store")
}

#[tokio::test]
async fn its_executions_are_listed_and_their_logs_read() {
    let database = old_database();
    let store = adopt(&database).await;
    let tenant = Tenant::default();
    let all = ExecutionFilter { limit: 100, ..ExecutionFilter::default() };
    let listed = store.executions(&tenant, &all).await.expect("a list");
    let found: Vec<_> = listed.iter().map(|row| (row.id.get(), row.status)).collect();
    assert_eq!(
        found,
        [
            (470_000_000_000_000_005, ExecutionStatus::Running),
            (UNFINISHED, ExecutionStatus::Running),
            (ENDED_TWICE, ExecutionStatus::Failed),
            (ENDED, ExecutionStatus::Completed),
        ],
        "the life of a subscription is no execution"
    );
    assert!(listed.iter().all(|row| &*row.path == "old/etl"));
    assert_eq!(listed[2].error.as_deref(), Some("too late"), "of two ends the last counts");

    let log = store.read(ExecutionId::new(ENDED), Seq::START, 100).await.expect("a log");
    assert_eq!(log.iter().map(|event| event.seq.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let Fact::Imported(answer) = &log[2].fact else { panic!("{:?}", log[2]) };
    assert_eq!(answer.duration, Some(1.5));
    assert_eq!(answer.result.as_ref().expect("a result")["context"]["rows"], 3);

    let log = store.read(ExecutionId::new(ENDED_TWICE), Seq::START, 100).await.expect("a log");
    let Fact::Imported(bare) = &log[1].fact else { panic!("{:?}", log[1]) };
    assert_eq!((&bare.event_type, &bare.status, &bare.node_name), (&None, &None, &None));

    let log = store.read(ExecutionId::new(UNFINISHED), Seq::START, 100).await.expect("a log");
    let ids: Vec<_> = log.iter().map(|event| event.id.get()).collect();
    let in_order_of_time =
        [570_000_000_000_000_200, 285_000_000_000_000_300, 570_000_000_000_000_210];
    assert_eq!(ids, in_order_of_time, "ids of two families are not compared");
    let tail = store.read(ExecutionId::new(UNFINISHED), Seq(2), 100).await.expect("a tail");
    assert_eq!(tail.len(), 1, "places stay once they are given");
    let found = store.find_event(ExecutionId::new(UNFINISHED), EventId::new(ids[1])).await;
    assert_eq!(found.expect("a read"), Some(Seq(2)));
}

#[tokio::test]
async fn an_interrupted_adoption_resumes() {
    let database = old_database();
    drop(adopt(&database).await);
    // As if the process had ended after the first batch.
    database.psql(&format!(
        "update noetl.adoption set after_execution = {ENDED}, is_done = false;
         delete from noetl.execution where execution_id > {ENDED}"
    ));
    drop(adopt(&database).await);
    assert_eq!(database.psql("select count(*) from noetl.execution"), "4");
    drop(adopt(&database).await);
    assert_eq!(database.psql("select count(*) from noetl.execution"), "4", "and is done once");
}

#[tokio::test]
async fn its_other_tables_are_kept_and_gain_a_tenant() {
    let database = old_database();
    let store = adopt(&database).await;
    let credential = store.credential_named(&Tenant::default(), "pg").await.expect("a read");
    assert!(credential.is_some());
    let other = store.credential_named(&Tenant::new("acme"), "pg").await.expect("a read");
    assert!(other.is_none());
    let legacy = database.psql("select count(*) from noetl.execution_before_adoption");
    assert_eq!(legacy, "0", "the old list is kept beside ours");
}

/// Its tailer noted an event id where ours notes a position: our first lane would wait for ever.
#[tokio::test]
async fn its_tailer_s_cursor_is_where_adopted_rows_go_on() {
    let database = old_database();
    database.psql(
        "create table if not exists noetl.stream_cursor (
             name text primary key, position bigint not null,
             updated_at timestamptz not null default now());
         insert into noetl.stream_cursor (name, position)
         values ('event_stream_tailer', 280000000000000000)",
    );
    let store = adopt(&database).await;
    assert_eq!(store.cursor("event_stream_tailer").await.expect("a read"), None);
    let adopted = store.cursor("event_stream_tailer:adopted").await.expect("a read");
    assert_eq!(adopted, Some(280_000_000_000_000_000));
    // Ours stays where it is.
    store.advance("event_stream_tailer", 3, None).await.expect("an answer");
    drop(store);
    let store = adopt(&database).await;
    assert_eq!(store.cursor("event_stream_tailer").await.expect("a read"), Some(3));
}

/// The same random work as on memory, on a schema that was made by others.
#[tokio::test]
async fn random_histories_read_the_same_as_in_memory() {
    for seed in seeds(100, 3) {
        let database = old_database();
        let options = Options::new(&database.url()).expect("a URL").outbox(outbox_on());
        let store = PostgresStore::open(options).await.expect("a store");
        database.psql(
            "truncate noetl.event_row, noetl.execution, noetl.catalog, noetl.credential, \
             noetl.runtime, noetl.transient, noetl.command, noetl.keychain",
        );
        let adopted = Subject::keeping(store, database);
        let memory = Subject::new(MemoryStore::new().with_outbox(outbox_on()));
        twin::compare(seed, 60, memory.store(), adopted.store()).await;
    }
}

#[tokio::test]
async fn its_subscriptions_go_on_where_they_were() {
    let database = old_database();
    database.psql(
        "insert into noetl.event (execution_id, catalog_id, event_id, created_at, event_type, \
         node_name, status) values
         (281000000000000004, 1000, 281000000000000401, '2026-01-22 12:00:00',
          'subscription.activated', 'sub', 'ACTIVE'),
         (281000000000000004, 1000, 281000000000000402, '2026-01-22 13:00:00',
          'subscription.message.deduplicated', 'ingress', 'DEDUPLICATED'),
         (281000000000000006, 1000, 281000000000000600, '2026-01-22 11:00:00',
          'subscription.registered', 'sub', 'REGISTERED'),
         (281000000000000007, 1000, 281000000000000700, '2026-01-22 11:00:00',
          'subscription.registered', 'over', 'REGISTERED'),
         (281000000000000007, 1000, 281000000000000701, '2026-01-22 11:30:00',
          'subscription.deactivated', 'over', 'DEACTIVATED')",
    );
    let store = adopt(&database).await;
    let tenant = Tenant::default();
    let rows = store.subscriptions(&tenant).await.expect("a list");
    let found: Vec<_> = rows.iter().map(|row| (row.id.get(), &*row.path, row.state)).collect();
    let (one, rival) = (281_000_000_000_000_004, 281_000_000_000_000_006);
    let expected = [
        (one, "sub", SubscriptionState::Active),
        (rival, "sub", SubscriptionState::Deactivated),
        (281_000_000_000_000_007, "over", SubscriptionState::Deactivated),
    ];
    assert_eq!(found, expected);
    assert_eq!(rows[0].created_at.to_string(), "2026-01-22T10:00:00Z");
    assert_eq!(rows[0].updated_at.to_string(), "2026-01-22T12:00:00Z");
    // What comes now comes after what was there.
    let stamp = EventStamp { event: EventId::new(900), at: rows[0].updated_at };
    let (from, action) = (SubscriptionState::Active, SubscriptionAction::Pause);
    let moved = store.transition(&tenant, rows[0].id, from, action, stamp).await;
    assert!(moved.expect("an answer").is_some());
    let log = store.read(ExecutionId::new(one), Seq::START, 10).await.expect("a log");
    assert_eq!(log.iter().map(|event| event.seq.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(log[3].id, stamp.event);
    assert!(matches!(log[3].fact, Fact::SubscriptionMoved(_)));
}
