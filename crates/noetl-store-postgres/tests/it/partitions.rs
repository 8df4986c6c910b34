//! The log's partitions: made ahead, and dropped when nothing is left in them.

use noetl_store::retention::{Policy, Retention, Window};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;

async fn open(database: &TestDatabase) -> PostgresStore {
    let options = Options::new(&database.url()).expect("a URL");
    PostgresStore::open(options).await.expect("a store")
}

fn parts(database: &TestDatabase) -> Vec<String> {
    let sql = "select partition from noetl.event_bounds_1() order by upper_bound";
    database.psql(sql).lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn this_quarter_and_four_more_have_their_partitions() {
    let database = TestDatabase::new();
    drop(open(&database).await);
    let made = parts(&database);
    assert_eq!(made.len(), 6, "{made:?}");
    assert!(made[0].starts_with("event_before_"), "{made:?}");
    drop(open(&database).await);
    assert_eq!(parts(&database), made, "once");
    let sql = "select count(*) from noetl.event_partitions_ahead_1(now() + interval '3 months')";
    assert_eq!(database.psql(sql), "1", "one more a quarter later");
}

#[tokio::test]
async fn rows_that_came_before_their_partition_move_into_it() {
    let database = TestDatabase::new();
    drop(open(&database).await);
    let end = "(select max(upper_bound) from noetl.event_bounds_1())";
    let stray = format!(
        "insert into noetl.event (execution_id, event_id, seq, event_type)
         select {end} + 7, {end} + 7 + n, n, 'told' from generate_series(1, 5) n"
    );
    database.psql(&stray);
    let places = "select tableoid::regclass || ' ' || count(*) from noetl.event group by tableoid";
    assert_eq!(database.psql(places), "event_default 5");
    let ahead = "select noetl.event_partitions_ahead_1(now() + interval '3 months')";
    let made = database.psql(ahead);
    assert_eq!(database.psql(places), format!("{made} 5"));
    assert_eq!(database.psql(ahead), "", "once");
    let rows = "select string_agg(seq || event_type, ' ' order by seq) from noetl.event";
    assert_eq!(database.psql(rows), "1told 2told 3told 4told 5told");
}

#[tokio::test]
async fn an_old_partition_goes_when_it_is_empty_and_not_before() {
    let database = TestDatabase::new();
    let store = open(&database).await;
    // An execution of 2024 that is unfinished, in the partition of everything before.
    database.psql(
        "insert into noetl.event (execution_id, event_id, event_type, node_name, status)
         values (7, 8, 'subscription.registered', 'sub', 'REGISTERED')",
    );
    let policy =
        Policy { executions: Window::days("days", 1).expect("a number of days"), ..Policy::KEEP };
    store.purge(&policy, false).await.expect("a purge");
    assert_eq!(parts(&database).len(), 6, "what is no execution keeps its partition");
    database.psql("delete from noetl.event");
    store.purge(&policy, true).await.expect("a purge");
    assert_eq!(parts(&database).len(), 6, "a dry run drops nothing");
    store.purge(&policy, false).await.expect("a purge");
    let left = parts(&database);
    assert_eq!(left.len(), 5, "{left:?}");
    assert!(left.iter().all(|name| !name.starts_with("event_before_")), "{left:?}");
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
    let policy =
        Policy { commands: Window::days("days", 7).expect("a number of days"), ..Policy::KEEP };
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
    let minutes = Window::minutes("minutes", 30).expect("a number of minutes");
    let policy = Policy { runtimes: minutes, ..Policy::KEEP };
    for dry_run in [true, false] {
        let report = store.purge(&policy, dry_run).await.expect("a purge");
        assert_eq!(report.removed.runtimes, 1, "dry run: {dry_run}");
    }
    assert_eq!(
        database.psql("select string_agg(kind, ' ' order by runtime_id) from noetl.runtime"),
        "server_api broker worker_pool"
    );
}
