//! The log as appends: beside rows of earlier versions in one log, in views, and in a few rows per import.

use std::sync::Arc;

use noetl_model::event::ImportedEvent;
use noetl_model::row::EventRow;
use noetl_model::{Event, EventId, ExecutionId, Fact, Seq, Tenant, Timestamp};
use noetl_store::conformance::story::{
    Story, commit, done, every_fact, issued, log, said, said_as, said_with_columns, write,
};
use noetl_store::retention::{RetentionPolicy, RetentionStore, RetentionWindow};
use noetl_store::tail::{LogTail, TailRow};
use noetl_store::{
    Append, Committed, EventLog, Import, ImportOutcome, ImportStore, ReadBound, StoreError,
};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;
use serde_json::{Value, json};

const LANE: u16 = 3;

async fn open(database: &TestDatabase) -> PostgresStore {
    let options = Options::new(&database.url()).expect("a URL").lane(LANE);
    PostgresStore::open(options).await.expect("a store")
}

/// Makes every append of an execution rows of the old table, as the upgrade finds them.
fn make_rows(database: &TestDatabase, execution: ExecutionId) {
    database.psql(&format!(
        "insert into noetl.event_row select * from noetl.event where execution_id = {execution};
         delete from noetl.event_append where execution_id = {execution};
         delete from noetl.event_lookup where execution_id = {execution};
         update noetl.execution set newest_event_id = null where execution_id = {execution}"
    ));
}

/// Assigns another ID to the only event of an append.
fn with_id(mut append: Append, id: EventId) -> Append {
    append.events = vec![Arc::new(Event { id, ..Event::clone(&append.events[0]) })];
    append
}

/// Creates a log with rows up to event 6 and appends after them. An early ID is among both, and a key of a
/// report as well.
async fn mixed(database: &TestDatabase, store: &PostgresStore) -> (Story, Vec<Event>) {
    let mut story = Story::new(10);
    write(store, story.start()).await;
    write(store, with_id(story.then(vec![said("early row")]), EventId::new(7))).await;
    let next = story.then(vec![said_as(70), said("a row")]);
    write(store, Append { after: Some(EventId::new(7)), ..next }).await;
    make_rows(database, story.id());
    write(store, story.then(vec![said("an append"), issued("b"), said_as(71)])).await;
    write(store, with_id(story.then(vec![said("early append")]), EventId::new(5))).await;
    let next = story.then(vec![said_as(70), said("the newest")]);
    write(store, Append { after: Some(EventId::new(5)), ..next }).await;
    let events = log(store, story.id()).await;
    assert_eq!(events.len(), 12);
    (story, events)
}

#[tokio::test]
async fn rows_and_appends_of_one_log_are_read_as_one() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let (story, events) = mixed(&database, &store).await;
    assert_eq!(database.psql("select count(*) from noetl.event_row"), "6");
    assert_eq!(database.psql("select count(*) from noetl.event_append"), "3");
    for after in 0..=12 {
        for limit in [0, 1, 2, 3, 5, 100] {
            let read = store.read(story.id(), Seq(after), limit).await.expect("a read");
            let expected = events.iter().skip(usize::try_from(after).expect("a few")).take(limit);
            assert_eq!(read, expected.cloned().collect::<Vec<_>>(), "after {after}, {limit}");
        }
    }
    let mut held = store.hold(story.id()).await.expect("a lock");
    assert_eq!(held.read(Seq(4), 100).await.expect("a read"), events[4..]);
}

#[tokio::test]
async fn rows_and_appends_of_one_log_are_read_in_the_order_of_ids() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let (story, mut events) = mixed(&database, &store).await;
    events.sort_by_key(|event| event.id);
    let bare = |event: &Event| EventRow { context: None, ..EventRow::from(event) };
    let expected: Vec<EventRow> = events.iter().map(bare).collect();
    for limit in [1, 2, 5, 11, 100] {
        let mut read: Vec<EventRow> = Vec::new();
        loop {
            let after = read.last().map(|row| row.event_id);
            let page = store.read_rows(story.id(), after, ReadBound::End, limit).await;
            let page = page.expect("a read");
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        assert_eq!(read, expected, "{limit}");
    }
    let until = ReadBound::Time(events[4].at);
    let read = store.read_rows(story.id(), None, until, 100).await.expect("a read");
    let until = expected.iter().filter(|row| row.created_at <= events[4].at);
    assert_eq!(read, until.cloned().collect::<Vec<_>>());
    for (after, least) in [(0, Some(5)), (3, Some(5)), (9, Some(5)), (10, Some(10_000_011))] {
        let found = store.least_id_since(story.id(), Seq(after)).await.expect("a read");
        assert_eq!(found, least.map(EventId::new), "after {after}");
    }
}

#[tokio::test]
async fn events_of_rows_and_appends_are_found_and_not_repeated() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let (story, events) = mixed(&database, &store).await;
    for event in &events {
        let found = store.find_event(story.id(), event.id).await.expect("a read");
        assert_eq!(found, Some(event.seq));
    }
    for (key, seq) in [(70, Some(5)), (71, Some(9)), (72, None)] {
        let found = store.find_event(story.id(), EventId::new(key)).await.expect("a read");
        assert_eq!(found, seq.map(Seq), "{key}");
    }
    let ids: Vec<EventId> = events.iter().map(|event| event.id).collect();
    let asked = [&ids[..], &[70, 71, 72, 6, i64::MAX].map(EventId::new)].concat();
    let found = store.find_events(story.id(), &asked).await.expect("a read");
    assert_eq!(found, ids.iter().copied().chain([70, 71].map(EventId::new)).collect());
    for taken in ids {
        let append = with_id(story.clone().then(vec![said("again")]), taken);
        let refused = store.commit(vec![append]).await;
        assert!(matches!(refused, Err(StoreError::EventTaken(_))), "{taken}: {refused:?}");
    }
    let known = database.psql("select newest_event_id from noetl.execution");
    assert_eq!(known, story.event_at(12).to_string());
}

async fn follow(store: &PostgresStore, mut after: i64, limit: usize) -> Vec<TailRow> {
    let mut rows: Vec<TailRow> = Vec::new();
    loop {
        let page = store.tail(LANE, after, limit).await.expect("rows");
        let Some(last) = page.last() else { return rows };
        after = last.position;
        rows.extend(page);
    }
}

#[tokio::test]
async fn rows_and_appends_are_followed_from_every_position() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let (_, events) = mixed(&database, &store).await;
    for limit in [1, 2, 4, 100] {
        for after in 0..=12 {
            let rows = follow(&store, after, limit).await;
            let positions: Vec<i64> = rows.iter().map(|row| row.position).collect();
            assert_eq!(positions, (after + 1..=12).collect::<Vec<_>>(), "{limit}");
            for row in rows {
                let index = usize::try_from(row.position - 1).expect("a place");
                assert_eq!(row.row, EventRow::from(&events[index]));
                let previous = index.checked_sub(1).map(|before| events[before].id);
                assert_eq!(row.previous, previous);
                assert_eq!(row.catalog.map(|catalog| catalog.get()), Some(7));
            }
        }
    }
}

#[tokio::test]
async fn rows_and_appends_of_one_log_are_purged_together() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let (mut story, _) = mixed(&database, &store).await;
    write(&store, story.then(vec![done()])).await;
    let again = commit(&store, story.clone().then(vec![said("late")])).await;
    assert_eq!(again, Committed::Appended);
    let policy = RetentionPolicy {
        executions: RetentionWindow::days("days", 1).expect("a number of days"),
        ..RetentionPolicy::KEEP
    };
    for dry_run in [true, false] {
        let report = store.purge(&policy, dry_run).await.expect("a purge");
        assert_eq!((report.removed.executions, report.removed.events), (1, 14), "{dry_run}");
    }
    for table in ["event_row", "event_append", "event_lookup", "event"] {
        assert_eq!(database.psql(&format!("select count(*) from noetl.{table}")), "0", "{table}");
    }
}

#[tokio::test]
async fn a_log_that_ended_in_rows_does_not_end_again() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    write(&store, story.then(vec![done()])).await;
    make_rows(&database, story.id());
    assert!(store.commit(vec![story.clone().then(vec![done()])]).await.is_err());
    write(&store, story.then(vec![said("late")])).await;
}

/// Columns of `EventRow`, as the view has them.
const COLUMNS: &str = "select json_build_array(
        execution_id, seq, event_id, (extract(epoch from created_at) * 1000000)::bigint, origin,
        event_type, node_name, node_type, status, command_id, parent_execution_id, worker_id,
        context::text, result::text, meta::text, error, duration, idempotency_key, more::text
    ) from noetl.event order by execution_id, seq";

fn columns(row: &EventRow) -> Value {
    json!([
        row.execution_id.get(),
        row.seq.0,
        row.event_id.get(),
        row.created_at.as_micros(),
        row.origin.as_str(),
        row.event_type,
        row.node_name,
        row.node_type,
        row.status,
        row.command_id.map(|id| id.get()),
        row.parent_execution_id.map(|id| id.get()),
        row.worker_id,
        row.context,
        row.result,
        row.meta,
        row.error,
        row.duration,
        row.idempotency_key.map(|key| key.to_string()),
        row.more,
    ])
}

#[tokio::test]
async fn the_view_shows_every_column_of_every_event() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10).of("acme");
    write(&store, story.start()).await;
    write(&store, story.then(every_fact(story.command_at(3)))).await;
    let mut nul = said("a\0b \\u0000");
    if let Fact::Reported(reported) = &mut nul {
        reported.meta = Some(json!({"a\0b": ["\0", "\\u0000", "\u{fdd0}"]}));
    }
    write(&store, story.then(vec![said_with_columns(), nul, said("\"quoted\" \\ ä\n")])).await;
    write(&store, with_id(story.then(vec![said("early")]), EventId::new(-7))).await;
    let end = story.then(vec![done()]);
    write(&store, Append { after: Some(EventId::new(-7)), ..end }).await;
    let expected: Vec<Value> =
        log(&store, story.id()).await.iter().map(|event| columns(&EventRow::from(event))).collect();
    let shown = || -> Vec<Value> {
        let lines = database.psql(COLUMNS);
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    assert_eq!(shown(), expected);
    let whose = "select distinct tenant_id, catalog_id, organization_id from noetl.event_log";
    assert_eq!(database.psql(whose), "acme|7|default");
    let own = "select stage_id, frame_id, stack_trace, event_time from noetl.event \
               where stage_id is not null";
    assert_eq!(database.psql(own), "5|6|at line 1|2026-01-31 12:00:00.5+00");
    let places = "select bool_and(lane = 3 and position = seq) from noetl.event";
    assert_eq!(database.psql(places), "t");
    make_rows(&database, story.id());
    assert_eq!(shown(), expected, "as rows");
}

#[tokio::test]
async fn the_view_and_the_encoder_omit_the_same_statuses() {
    let database = crate::migrated_database();
    for (event_type, status) in noetl_model::row::body::DECIDED {
        let shown = database.psql(&format!("select noetl.event_status_1('{event_type}')"));
        assert_eq!(shown, status, "{event_type}");
    }
}

fn import(number: i64) -> Import {
    Import {
        tenant: Tenant::default(),
        execution: ExecutionId::new(5),
        event: EventId::new(1000 + number),
        at: Timestamp::from_millis(1_790_000_000_000 + number),
        row: ImportedEvent { event_type: Some("told".to_owned()), ..ImportedEvent::default() },
    }
}

#[tokio::test]
async fn imported_rows_of_one_call_are_one_append() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let rows: Vec<Import> = (0..2050).map(import).collect();
    let outcomes = store.import(rows.clone()).await.expect("an import");
    assert!(outcomes.iter().all(|outcome| *outcome == ImportOutcome::Kept), "{outcomes:?}");
    assert_eq!(database.psql("select count(*) from noetl.event_append"), "1");
    assert_eq!(database.psql("select count(*) from noetl.event_lookup"), "0", "they ascend");
    // A row that is new among some that are not, and two with early IDs.
    let more: Vec<Import> = [7, 2050, -3, 2049, -5, -3].map(import).to_vec();
    use ImportOutcome::{Duplicate, Kept};
    let outcomes = store.import(more).await.expect("an import");
    assert_eq!(outcomes, [Duplicate, Kept, Kept, Duplicate, Kept, Duplicate]);
    let again = store.import(rows).await.expect("an import");
    assert!(again.iter().all(|outcome| *outcome == Duplicate), "{again:?}");
    let stored = "select string_agg(first_seq || '-' || last_seq || ' ' || last_event_id || ' ' || \
                  coalesce(newest_event_id::text, '') || ' ' || position, ', ' order by first_seq) \
                  from noetl.event_append";
    assert_eq!(database.psql(stored), "1-2050 3049  2050, 2051-2053 995 3050 2053");
    let found = store.find_event(ExecutionId::new(5), EventId::new(997)).await.expect("a read");
    assert_eq!(found, Some(Seq(2052)));
    let rows = follow(&store, 0, 500).await;
    let positions: Vec<i64> = rows.iter().map(|row| row.position).collect();
    assert_eq!(positions, (1..=2053).collect::<Vec<_>>());
    let read = store.read_rows(ExecutionId::new(5), None, ReadBound::End, 5000).await;
    let ids: Vec<i64> = read.expect("rows").iter().map(|row| row.event_id.get()).collect();
    let expected = [995, 997].into_iter().chain(1000..=3050);
    assert_eq!(ids, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_large_append_is_split() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10);
    write(&store, story.start()).await;
    let text = "0123456789abcdef".repeat(40 * 1024);
    let facts: Vec<Fact> = (0..5).map(|n| said(&format!("{n}{text}"))).chain([said("x")]).collect();
    let append = story.then(facts);
    let told: Vec<Event> = append.events.iter().map(|event| Event::clone(event)).collect();
    write(&store, append).await;
    write(&store, story.then(vec![said("after it")])).await;
    let parts = "select string_agg(first_seq || '-' || last_seq || ' ' || position, ', ' \
                 order by first_seq) from noetl.event_append";
    assert_eq!(database.psql(parts), "1-3 3, 4-4 4, 5-5 5, 6-6 6, 7-7 7, 8-9 9, 10-10 10");
    assert_eq!(log(&store, story.id()).await[3..9], told);
    let rows = follow(&store, 4, 100).await;
    let positions: Vec<i64> = rows.iter().map(|row| row.position).collect();
    assert_eq!(positions, [5, 6, 7, 8, 9, 10]);
    assert_eq!(rows[0].previous, Some(told[0].id));
    assert_eq!(database.psql("select count(*) from noetl.event"), "10");
}

#[tokio::test]
async fn an_older_program_cannot_append_to_a_newer_schema() {
    let database = crate::migrated_database();
    let functions = "select string_agg(proname, ' ') from pg_proc \
                     where pronamespace = 'noetl'::regnamespace \
                     and proname ~ '^(journal_append|event_find|event_find_many)_'";
    let functions = database.psql(functions);
    assert!(functions.contains("journal_append_6"), "{functions}");
    for gone in ["journal_append_5", "event_find_1", "event_find_many_1"] {
        assert!(!functions.contains(gone), "{functions}");
    }
    let pool = sqlx::postgres::PgPool::connect(&database.url()).await.expect("a connection");
    let insert = "insert into noetl.event (execution_id, event_id) values (1, 1)";
    let refused = sqlx::query(insert).execute(&pool).await.expect_err("a refusal");
    assert!(refused.to_string().contains("cannot insert into view"), "{refused}");
}
