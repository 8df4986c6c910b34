//! What the database adds: several callers at once, constraints, schemas made by others.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use noetl_model::{
    CatalogId, EventId, ExecutionId, RuntimeId, SubscriptionId, Tenant, TimerId, Timestamp,
};
use noetl_store::conformance::outbox_on;
use noetl_store::conformance::story::{Story, said, write};
use noetl_store::{
    Append, CursorStore, CursorUpdate, DedupOutcome, EventLog, EventStamp, LeaseStore, NewRuntime,
    NewSubscription, NewTimer, OutboxStore, RuntimeFilter, RuntimeKind, RuntimeStore,
    ScheduleStore, Snapshot, SnapshotStore, SubscriptionAction, SubscriptionState,
    SubscriptionStore, TimerStore,
};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;
use serde_json::json;

const LONG: Duration = Duration::from_secs(3600);

async fn open(database: &TestDatabase) -> Arc<PostgresStore> {
    let options = Options::new(&database.url()).expect("a URL").outbox(outbox_on());
    Arc::new(PostgresStore::open(options).await.expect("a store"))
}

fn due(id: i64, target: ExecutionId) -> NewTimer {
    NewTimer {
        id: TimerId::new(id),
        kind: "wake".into(),
        target,
        at: Timestamp::from_micros(id),
        payload: json!({"n": id}),
    }
}

#[tokio::test]
async fn nothing_is_published_unless_requested() {
    let database = crate::migrated_database();
    let options = Options::new(&database.url()).expect("a URL");
    let store = PostgresStore::open(options).await.expect("a store");
    write(&store, Story::new(10).start()).await;
    assert_eq!(store.pending().await.expect("a count"), 0);
}

#[tokio::test]
async fn rows_appended_while_an_execution_is_locked_are_published() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10).of("acme");
    write(&*store, story.start()).await;
    let held = store.hold(story.id()).await.expect("a hold");
    let append = Append { due: vec![due(1, story.id())], ..story.then(vec![said("x")]) };
    held.commit(append).await.expect("a commit");
    let rows = store.claim(9).await.expect("a claim");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.tenant == story.tenant));
    assert_eq!(store.timers_of(story.id()).await.expect("a list").len(), 1);
}

#[tokio::test]
async fn a_start_and_its_following_events_in_one_batch_are_published() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10).of("acme");
    let batch = vec![story.start(), story.then(vec![said("x")]), story.then(vec![said("y")])];
    store.commit(batch).await.expect("a commit");
    let rows = store.claim(9).await.expect("a claim");
    let events: Vec<_> = rows.iter().map(|row| row.event).collect();
    assert_eq!(events, [1, 2, 3, 4, 5].map(|place| story.event_at(place)));
    assert!(rows.iter().all(|row| row.tenant == story.tenant));
}

#[tokio::test]
async fn a_character_that_jsonb_rejects_is_published() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10);
    write(&*store, story.start()).await;
    write(&*store, story.then(vec![said("a\0b")])).await;
    let rows = store.claim(9).await.expect("a claim");
    assert!(rows[3].payload.contains("a\\u0000b"), "{}", rows[3].payload);
}

#[tokio::test]
async fn operators_see_timers_in_a_view() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10);
    let sent = vec![due(1, story.id()), due(2, ExecutionId::new(99))];
    write(&*store, Append { due: sent, ..story.start() }).await;
    let timers = database.psql("select id, execution_id, kind from noetl.timer");
    assert_eq!(timers, "1|10|wake", "a message to another execution is none");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_takers_of_two_stores_never_get_one_row_twice() {
    let database = crate::migrated_database();
    let (one, other) = (open(&database).await, open(&database).await);
    let mut story = Story::new(10);
    let rows = (0..400).map(|number| due(number, story.id())).collect();
    write(&*one, Append { due: rows, ..story.start() }).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = if number % 2 == 0 { one.clone() } else { other.clone() };
        tasks.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let taken = store.claim_due(7, LONG).await.expect("rows");
                if taken.is_empty() {
                    return mine;
                }
                mine.extend(taken.iter().map(|row| row.id.get()));
            }
        });
    }
    let mut all = tasks.join_all().await.concat();
    all.sort_unstable();
    assert_eq!(all, Vec::from_iter(0..400));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_publishers_of_two_stores_never_claim_one_row_twice() {
    let database = crate::migrated_database();
    let (one, other) = (open(&database).await, open(&database).await);
    let starts = (0..100).map(|id| Story::new(10 + id).start()).collect();
    one.commit(starts).await.expect("a commit");
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = if number % 2 == 0 { one.clone() } else { other.clone() };
        tasks.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = store.claim(7).await.expect("rows");
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(claimed.iter().map(|row| row.id));
            }
        });
    }
    let all = tasks.join_all().await.concat();
    assert_eq!(all.len(), 300);
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), 300);
}

#[tokio::test]
async fn a_row_that_another_transaction_has_is_passed_over() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let mut story = Story::new(10);
    let rows = vec![due(1, story.id()), due(2, story.id())];
    write(&*store, Append { due: rows, ..story.start() }).await;
    // The answer that removes row 1 is not committed yet.
    let mut other = sqlx::postgres::PgPool::connect(&database.url())
        .await
        .expect("a connection")
        .begin()
        .await
        .expect("a transaction");
    sqlx::query("delete from noetl.due where id = 1").execute(&mut *other).await.expect("a delete");
    let taken = store.claim_due(9, LONG).await.expect("rows");
    assert_eq!(taken.iter().map(|row| row.id.get()).collect::<Vec<_>>(), [2]);
    other.rollback().await.expect("the end");
    assert_eq!(store.claim_due(9, LONG).await.expect("rows").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tailer_waits_during_a_lease_takeover_and_is_fenced() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let lease = store.acquire("t", "a", LONG).await.expect("an answer").expect("a lease");
    let pool = sqlx::postgres::PgPool::connect(&database.url()).await.expect("a connection");
    let mut other = pool.begin().await.expect("a transaction");
    let sql = "update noetl.leader set holder = 'b', epoch = epoch + 1 where name = 't'";
    sqlx::query(sql).execute(&mut *other).await.expect("an update");
    let reader = store.clone();
    let advance = tokio::spawn(async move { reader.advance("c", 1, Some(&lease)).await });
    let sql = "select exists (select from pg_stat_activity \
               where datname = current_database() and wait_event_type = 'Lock')";
    loop {
        let is_waiting: bool = sqlx::query_scalar(sql).fetch_one(&pool).await.expect("an answer");
        if is_waiting || advance.is_finished() {
            break;
        }
        tokio::task::yield_now().await;
    }
    other.commit().await.expect("the end");
    assert_eq!(advance.await.expect("a task").expect("an answer"), CursorUpdate::Fenced);
    assert_eq!(store.cursor("c").await.expect("a read"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_subscription_that_comes_back_and_its_successor_are_never_both_live() {
    let database = crate::migrated_database();
    let (one, other) = (open(&database).await, open(&database).await);
    let tenant = Tenant::default();
    let stamp =
        |event| EventStamp { event: EventId::new(event), at: Timestamp::from_micros(event) };
    let new = |id: i64, path: &str| NewSubscription {
        id: SubscriptionId::new(id),
        path: path.into(),
        catalog: CatalogId::new(7),
        stamp: stamp(id * 10),
    };
    for round in 0..20 {
        let (path, first) = (format!("sub/{round}"), SubscriptionId::new(round * 2 + 1));
        one.register_subscription(&tenant, new(first.get(), &path)).await.expect("a first");
        let (from, action) = (SubscriptionState::Registered, SubscriptionAction::Deactivate);
        let over = stamp(first.get() * 10 + 1);
        let over = one.transition(&tenant, first, from, action, over).await.expect("an answer");
        over.expect("over");
        let (from, action) = (SubscriptionState::Deactivated, SubscriptionAction::Activate);
        let (back, next) = tokio::join!(
            one.transition(&tenant, first, from, action, stamp(first.get() * 10 + 2)),
            other.register_subscription(&tenant, new(first.get() + 1, &path)),
        );
        let (back, next) = (back.expect("an answer"), next.expect("a subscription"));
        assert_eq!(back.is_some(), next.id == first, "{back:?} {next:?}");
    }
}

#[tokio::test]
async fn a_key_of_any_length_is_seen_once() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let (tenant, scope) = (Tenant::default(), SubscriptionId::new(1));
    let long: String = (0..20_000).map(|n| char::from(b'a' + (n * n % 23) as u8)).collect();
    let other = format!("{long}!");
    let (first, second) = (ExecutionId::new(1), ExecutionId::new(2));
    for (key, execution, expected) in [
        (&long, first, DedupOutcome::New),
        (&long, second, DedupOutcome::Known(first)),
        (&other, second, DedupOutcome::New),
    ] {
        let answer = store.reserve(&tenant, scope, key, execution, LONG).await;
        assert_eq!(answer.expect("an answer"), expected);
    }
    assert!(store.unreserve(&tenant, scope, &long, first).await.expect("an answer"));
}

#[tokio::test]
async fn times_without_end_are_cut_and_not_refused() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let lease = store.acquire("t", "a", Duration::MAX).await.expect("an answer").expect("a lease");
    assert!(store.renew(&lease, Duration::MAX).await.expect("an answer"));
    let mut story = Story::new(10);
    let early = NewTimer { at: Timestamp::from_micros(i64::MIN), ..due(1, story.id()) };
    let late = NewTimer { at: Timestamp::from_micros(i64::MAX), ..due(2, story.id()) };
    write(&*store, Append { due: vec![early, late], ..story.start() }).await;
    let taken = store.claim_due(9, Duration::MAX).await.expect("rows");
    assert_eq!(taken.iter().map(|row| row.id.get()).collect::<Vec<_>>(), [1]);
    assert!(
        store
            .reschedule(TimerId::new(1), Timestamp::from_micros(i64::MAX))
            .await
            .expect("an answer")
    );
    assert!(
        store
            .reschedule(TimerId::new(2), Timestamp::from_micros(i64::MIN))
            .await
            .expect("an answer")
    );
    assert_eq!(store.claim_due(9, LONG).await.expect("rows")[0].id.get(), 2);
    let claimed = store.claim(1).await.expect("rows");
    assert!(store.mark_failed(claimed[0].id, "a\0", Duration::MAX).await.expect("an answer"));
}

#[tokio::test]
async fn rows_that_make_no_sense_are_refused() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let pool = sqlx::postgres::PgPool::connect(&database.url()).await.expect("a connection");
    for (constraint, sql) in [
        (
            "leader_has_both_or_neither",
            "insert into noetl.leader (name, holder, epoch) values ('a', 'b', 1)",
        ),
        (
            "leader_has_both_or_neither",
            "insert into noetl.leader (name, epoch, until) values ('a', 1, now())",
        ),
        ("leader_epoch_counts", "insert into noetl.leader (name, epoch) values ('a', 0)"),
        (
            "outbox_status_is_known",
            "insert into noetl.outbox (event_id, body, status) values (1, '{}', 'SENT')",
        ),
        (
            "outbox_status_is_sound",
            "insert into noetl.outbox (event_id, body, status) values (1, '{}', 'IN_FLIGHT')",
        ),
        (
            "outbox_status_is_sound",
            "insert into noetl.outbox (event_id, body, status) values (1, '{}', 'PUBLISHED')",
        ),
        (
            "outbox_status_is_sound",
            "insert into noetl.outbox (event_id, body, published_at) values (1, '{}', now())",
        ),
        ("outbox_has_content", "insert into noetl.outbox (event_id) values (1)"),
        (
            "projection_snapshot_has_content",
            "insert into noetl.projection_snapshot (aggregate_id, aggregate_type, version, body) \
             values ('a', 'b', 1, '{}')",
        ),
        (
            "runtime_kind_is_known",
            "insert into noetl.runtime (runtime_id, name, kind, status) values (1, 'a', 'b', 'c')",
        ),
        (
            "subscription_state_is_known",
            "insert into noetl.subscription (id, tenant_id, path, catalog_id, state, \
             last_event_type) values (1, 'a', 'b', 1, 'active', 'x')",
        ),
        (
            "schedule_runs_when_due",
            "insert into noetl.schedule (schedule_id, playbook_path, run_execution_id) \
             values (1, 'a', 1)",
        ),
        (
            "due_attempts_count",
            "insert into noetl.due values (1, 'a', 1, 'k', 1, now(), '{}', -1, now())",
        ),
    ] {
        let refused = sqlx::query(sql).execute(&pool).await.expect_err(sql);
        let found = refused.as_database_error().and_then(|error| error.constraint());
        assert_eq!(found, Some(constraint), "{sql}: {refused}");
    }
    drop(store);
}

/// The tables that other programs may have made, with what they leave in them.
const MADE_BY_OTHERS: &str = r#"
create schema noetl;
create table noetl.outbox (
    outbox_id bigserial primary key, execution_id bigint, event_id bigint not null, subject text,
    payload jsonb not null, payload_bytes bytea,
    payload_codec text not null default 'arrow-feather',
    status text not null default 'PENDING'
        check (status in ('PENDING', 'IN_FLIGHT', 'PUBLISHED', 'FAILED')),
    attempts integer not null default 0, available_at timestamptz not null default now(),
    locked_at timestamptz, published_at timestamptz, last_error text,
    created_at timestamptz not null default now(), updated_at timestamptz not null default now(),
    unique (execution_id, event_id)
);
insert into noetl.outbox (execution_id, event_id, subject, payload, status, locked_at, published_at)
values (1, 1, 's', '{"a": 1}', 'PENDING', null, null),
    (null, 2, null, '{"a": 2}', 'PENDING', null, null),
    (1, 3, 's', '{"a": 3}', 'IN_FLIGHT', null, null),
    (1, 4, 's', '{"a": 4}', 'FAILED', null, now()),
    (1, 5, 's', '{"a": 5}', 'PUBLISHED', null, now());
create table noetl.projection_snapshot (
    aggregate_id text, aggregate_type text, tenant_id text default 'default',
    organization_id text default 'default', version bigint not null, snapshot jsonb not null,
    checksum text not null, meta jsonb not null default '{}',
    created_at timestamptz default now(), updated_at timestamptz default now(),
    primary key (tenant_id, organization_id, aggregate_type, aggregate_id)
);
insert into noetl.projection_snapshot (aggregate_id, aggregate_type, version, snapshot, checksum)
values ('1', 'state', 99, '{}', 'x');
create table noetl.runtime (
    runtime_id bigint primary key, name text not null,
    kind text not null check (kind in ('worker_pool', 'server_api', 'broker')), uri text,
    status text not null, labels jsonb, capabilities jsonb, capacity integer, runtime jsonb,
    heartbeat timestamptz, created_at timestamptz, updated_at timestamptz
);
create unique index idx_runtime_kind_name on noetl.runtime (kind, name);
insert into noetl.runtime (runtime_id, name, kind, status, labels)
values (1, 'pool', 'worker_pool', 'ready', '{"b": 1}');
create table noetl.schedule (
    schedule_id bigint primary key, playbook_path text not null, playbook_version text,
    cron text, interval_seconds integer, enabled boolean, timezone text,
    next_run_at timestamptz, last_run_at timestamptz, last_status text, input_payload jsonb,
    created_at timestamptz default now(), updated_at timestamptz default now(), meta jsonb
);
insert into noetl.schedule (schedule_id, playbook_path, playbook_version, interval_seconds, enabled,
    next_run_at)
values (1, 'a', '3', 60, true, now()), (2, 'b', 'latest', null, null, now());
create table noetl.subscription_dedup (
    subscription_id bigint, dedup_key text, execution_id bigint not null,
    seen_at timestamptz not null default now(), primary key (subscription_id, dedup_key)
);
insert into noetl.subscription_dedup values (1, 'k', 10);
create table noetl.stream_cursor (
    name text primary key, position bigint not null, updated_at timestamptz not null default now()
);
insert into noetl.stream_cursor values ('tailer', 5);
"#;

#[tokio::test]
async fn adopted_tables_of_the_event_stream_gain_missing_columns() {
    let database = TestDatabase::new();
    database.psql(MADE_BY_OTHERS);
    let store = open(&database).await;
    let (mine, theirs) = (Tenant::default(), Tenant::new("acme"));

    let claimed = store.claim(9).await.expect("a claim");
    let payloads: Vec<&str> = claimed.iter().map(|row| &*row.payload).collect();
    assert_eq!(payloads, ["{\"a\": 1}", "{\"a\": 2}", "{\"a\": 3}", "{\"a\": 4}"]);
    let named =
        claimed.iter().map(|row| (row.execution.map(ExecutionId::get), row.subject.as_deref()));
    let whole = (Some(1), Some("s"));
    assert_eq!(Vec::from_iter(named), [whole, (None, None), whole, whole], "nothing is made up");
    write(&*store, Story::new(10).start()).await;
    assert_eq!(store.pending().await.expect("a count"), 3);

    assert_eq!(store.snapshot(&mine, "state", "1").await.expect("a read"), None);
    let snapshot = Snapshot::new(1, "{ }".into(), json!({"n": 1}));
    assert!(store.save(&mine, "state", "1", snapshot.clone()).await.expect("an answer"));
    assert_eq!(store.snapshot(&mine, "state", "1").await.expect("a read"), Some(snapshot));

    let listed = store.runtimes(&mine, &RuntimeFilter::default()).await.expect("a list");
    assert_eq!(listed[0].said.labels, Some(json!({"b": 1})));
    let kind = RuntimeKind::WorkerPool;
    let said = NewRuntime { id: RuntimeId::new(2), ..listed[0].said.clone() };
    let same = store.register_runtime(&mine, said.clone()).await.expect("a runtime");
    assert_eq!(same.said.id.get(), 1);
    store.register_runtime(&theirs, said).await.expect("one name, two tenants");
    assert!(store.heartbeat(&theirs, kind, "pool").await.expect("an answer").is_some());

    let ready = store.ready_schedules(9).await.expect("a list");
    let said: Vec<_> = ready.iter().map(|row| &row.schedule).collect();
    assert_eq!(said.len(), 1, "what never said that it is on is off");
    assert_eq!((said[0].version, said[0].interval_seconds), (Some(3), Some(60)));
    let listed = store.schedules(&mine).await.expect("a list");
    assert_eq!(listed[1].schedule.version, None);
    let wide = noetl_store::NewSchedule { interval_seconds: Some(u32::MAX), ..said[0].clone() };
    store.put_schedule(&mine, wide).await.expect("a schedule");

    let scope = SubscriptionId::new(1);
    let (known, new) = (ExecutionId::new(10), ExecutionId::new(11));
    let answer = store.reserve(&mine, scope, "k", new, LONG).await.expect("an answer");
    assert_eq!(answer, DedupOutcome::Known(known));
    let answer = store.reserve(&theirs, scope, "k", new, LONG).await.expect("an answer");
    assert_eq!(answer, DedupOutcome::New);

    assert_eq!(store.advance("tailer", 4, None).await.expect("an answer"), CursorUpdate::Kept);
    assert_eq!(store.cursor("tailer").await.expect("a read"), Some(5));
}
