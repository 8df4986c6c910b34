//! The log's partitions: made ahead, and dropped when nothing is left in them.

use noetl_store::retention::{PurgeReport, RetentionPolicy, RetentionStore, RetentionWindow};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;

async fn open(database: &TestDatabase) -> PostgresStore {
    let options = Options::new(&database.url()).expect("a URL");
    PostgresStore::open(options).await.expect("a store")
}

fn parts(database: &TestDatabase) -> Vec<String> {
    let sql = "select partition from noetl.event_bounds_2() order by upper_bound";
    database.psql(sql).lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn this_quarter_and_four_more_have_their_partitions() {
    let database = TestDatabase::new();
    drop(open(&database).await);
    let made = parts(&database);
    assert_eq!(made.len(), 6, "{made:?}");
    assert!(made[0].starts_with("event_append_before_"), "{made:?}");
    drop(open(&database).await);
    assert_eq!(parts(&database), made, "once");
    let sql = "select count(*) from noetl.event_partitions_ahead_2(now() + interval '3 months')";
    assert_eq!(database.psql(sql), "1", "one more a quarter later");
}

#[tokio::test]
async fn rows_that_came_before_their_partition_move_into_it() {
    let database = TestDatabase::new();
    drop(open(&database).await);
    let end = "(select max(upper_bound) from noetl.event_bounds_2())";
    let stray = format!(
        "insert into noetl.event_append (
             execution_id, first_seq, last_seq, last_event_id, created_at, lane, position, body
         )
         select {end} + 7, n, n, {end} + 7 + n, now(), 0, n, '[[\"told\"]]' from generate_series(1, 5) n"
    );
    database.psql(&stray);
    let places = "select tableoid::regclass || ' ' || count(*) from noetl.event_append \
                  group by tableoid";
    assert_eq!(database.psql(places), "event_append_default 5");
    let ahead = "select noetl.event_partitions_ahead_2(now() + interval '3 months')";
    let made = database.psql(ahead);
    assert_eq!(database.psql(places), format!("{made} 5"));
    assert_eq!(database.psql(ahead), "", "once");
    let rows = "select string_agg(seq || event_type, ' ' order by seq) from noetl.event";
    assert_eq!(database.psql(rows), "1told 2told 3told 4told 5told");
}

fn days_of_executions() -> RetentionPolicy {
    RetentionPolicy {
        executions: RetentionWindow::days("days", 1).expect("a number of days"),
        ..RetentionPolicy::KEEP
    }
}

/// Adds a row of a log that is no execution's.
fn add_row(database: &TestDatabase, execution: &str) {
    database.psql(&format!(
        "insert into noetl.event_append (
             execution_id, first_seq, last_seq, last_event_id, created_at, lane, position, body
         )
         values ({execution}, 1, 1, 8, now(), 0, 1, '[[\"subscription.registered\", \"sub\"]]')"
    ));
}

/// Returns the partition that a row is in.
fn home(database: &TestDatabase, execution: &str) -> String {
    let sql = format!(
        "select tableoid::regclass from noetl.event_append where execution_id = {execution}"
    );
    database.psql(&sql)
}

/// Purges, dry and not, and returns what both reported.
async fn purged(store: &PostgresStore) -> PurgeReport {
    let dry = store.purge(&days_of_executions(), true).await.expect("a dry run");
    let report = store.purge(&days_of_executions(), false).await.expect("a purge");
    assert_eq!(dry, report, "a dry run says the same");
    report
}

#[tokio::test]
async fn a_purge_of_a_fresh_database_drops_nothing() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let before = parts(&database);
    assert_eq!(purged(&store).await, PurgeReport::default());
    assert_eq!(parts(&database), before);
    add_row(&database, "7");
    assert_eq!(home(&database, "7"), before[0]);
}

/// Returns the name of a partition in reports, which does not depend on its table.
fn reported(part: &str) -> String {
    part.replace("event_append_", "event_")
}

#[tokio::test]
async fn an_old_partition_is_dropped_when_it_is_empty_and_not_before() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let before = parts(&database);
    add_row(&database, "7");
    assert_eq!(purged(&store).await.dropped, [] as [&str; 0], "it holds a row");
    database.psql("delete from noetl.event_append");
    assert_eq!(purged(&store).await.dropped, [reported(&before[0])]);
    assert_eq!(parts(&database), before, "it was made again");
    assert_eq!(purged(&store).await.dropped, [] as [&str; 0], "once");
    add_row(&database, "7");
    assert_eq!(home(&database, "7"), before[0]);
}

#[tokio::test]
async fn a_partition_of_this_quarter_is_not_dropped() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let before = parts(&database);
    database.psql(
        "insert into noetl.execution (execution_id, status, updated_at)
         select min(lower_bound), 'COMPLETED', now() - interval '9 days'
         from noetl.event_bounds_2();
         insert into noetl.event_append (
             execution_id, first_seq, last_seq, last_event_id, created_at, lane, position, body
         )
         select min(lower_bound), 1, 1, 1, now(), 0, 1, '[[\"told\"]]' from noetl.event_bounds_2()",
    );
    let report = purged(&store).await;
    assert_eq!((report.removed.executions, report.removed.events), (1, 1));
    assert_eq!((report.dropped, report.kept), (Vec::new(), Vec::new()));
    assert_eq!(parts(&database), before);
}

#[tokio::test]
async fn neighbors_that_are_dropped_leave_one_partition_for_their_rows() {
    let database = TestDatabase::new();
    drop(open(&database).await);
    database.psql(&format!("drop table noetl.{}", parts(&database).join(", noetl.")));
    for months in [18, 3] {
        let at = format!("now() - interval '{months} months'");
        database.psql(&format!("select noetl.event_partitions_ahead_2({at})"));
    }
    let store = open(&database).await;
    // One for everything before, six for quarters that are over, and those from now on.
    let before = parts(&database);
    assert_eq!(before.len(), 1 + 6 + 5, "{before:?}");
    let first_id = |part: &str| {
        let sql = "select lower_bound from noetl.event_bounds_2() where partition";
        database.psql(&format!("{sql} = '{part}'"))
    };
    let (live, stray) = (first_id(&before[3]), first_id(&before[6]));
    let (dropped, late) = (first_id(&before[2]), first_id(&before[5]));
    database.psql(&format!(
        "insert into noetl.execution (
             execution_id, status, updated_at, origin, version, last_event_id, start_key,
             catalog_id, path, start_time
         ) values (
             {live}, 'RUNNING', now() - interval '9 days', 'own', 1, 8, 1, 1, 'a', now()
         )"
    ));
    add_row(&database, &live);
    add_row(&database, &stray);
    let report = purged(&store).await;
    let kept: Vec<_> = report.kept.iter().map(|kept| kept.partition.clone()).collect();
    assert_eq!(kept, [reported(&before[3])]);
    assert_eq!(report.dropped, [0, 1, 2, 4, 5].map(|part| reported(&before[part])));
    let ahead_of = |part: &str| part.replace("event_append_", "event_append_before_");
    let mut after = vec![ahead_of(&before[3]), before[3].clone(), ahead_of(&before[6])];
    after.extend_from_slice(&before[6..]);
    assert_eq!(parts(&database), after);
    for (id, part) in [("7", &after[0]), (&dropped, &after[0]), (&late, &after[2])] {
        add_row(&database, id);
        assert_eq!(home(&database, id), *part);
    }
}

/// Earlier versions dropped the partition of everything before, so its rows were in the default one.
#[tokio::test]
async fn a_missing_first_partition_is_made_again_when_the_store_opens() {
    let database = TestDatabase::new();
    drop(open(&database).await);
    let before = parts(&database);
    database.psql(&format!("drop table noetl.{}", before[0]));
    add_row(&database, "7");
    assert_eq!(home(&database, "7"), "event_append_default");
    drop(open(&database).await);
    assert_eq!(parts(&database), before);
    assert_eq!(home(&database, "7"), before[0]);
}

/// The table of rows from before appends gets no partition, and loses those that are empty.
#[tokio::test]
async fn old_partitions_of_rows_are_dropped_when_they_are_empty() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    let before = parts(&database);
    database.psql(
        "create table noetl.event_2024_q1 partition of noetl.event_row for values from (5) to (9);
         create table noetl.event_2024_q2 partition of noetl.event_row for values from (9) to (99);
         insert into noetl.event_row (execution_id, event_id) values (7, 7)",
    );
    assert_eq!(purged(&store).await.dropped, ["event_2024_q2"], "the other one holds a row");
    database.psql("delete from noetl.event_row");
    assert_eq!(purged(&store).await.dropped, ["event_2024_q1"]);
    let left = "select count(*) from noetl.event_bounds_2('noetl.event_row')";
    assert_eq!(database.psql(left), "0");
    assert_eq!(parts(&database), before);
}

/// In an adopted database commands are in several tables, whose rows have places of their own.
#[tokio::test]
async fn old_commands_go_from_a_table_that_is_made_of_several() {
    let database = TestDatabase::new();
    database.psql(include_str!("old_schema.sql"));
    let store = open(&database).await;
    database.psql(
        "insert into noetl.command (command_id, event_id, execution_id, step_name, status, completed_at)
         select n, n, n, 'a', 'COMPLETED', case when n % 2 = 0 then now() - interval '9 days' end
         from generate_series(1, 100) n",
    );
    let policy = RetentionPolicy {
        commands: RetentionWindow::days("days", 7).expect("a number of days"),
        ..RetentionPolicy::KEEP
    };
    let report = store.purge(&policy, false).await.expect("a purge");
    assert_eq!(report.removed.commands, 50);
    let left = database.psql("select count(*), bool_and(completed_at is null) from noetl.command");
    assert_eq!(left, "51|t");
}

#[tokio::test]
async fn a_purge_removes_stale_worker_pools_and_no_other_runtime() {
    let database = crate::migrated_database();
    let store = open(&database).await;
    database.psql(
        "insert into noetl.runtime (runtime_id, name, kind, status, heartbeat)
         select id, 'a', kind, 'active', now() - interval '1 hour'
         from (values (1, 'worker_pool'), (2, 'server_api'), (3, 'broker')) r (id, kind);
         insert into noetl.runtime (runtime_id, name, kind, status)
         values (4, 'b', 'worker_pool', 'active')",
    );
    let minutes = RetentionWindow::minutes("minutes", 30).expect("a number of minutes");
    let policy = RetentionPolicy { runtimes: minutes, ..RetentionPolicy::KEEP };
    for dry_run in [true, false] {
        let report = store.purge(&policy, dry_run).await.expect("a purge");
        assert_eq!(report.removed.runtimes, 1, "dry run: {dry_run}");
    }
    assert_eq!(
        database.psql("select string_agg(kind, ' ' order by runtime_id) from noetl.runtime"),
        "server_api broker worker_pool"
    );
}
