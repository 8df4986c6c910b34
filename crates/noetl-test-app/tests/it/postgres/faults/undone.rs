//! The server rolls back transactions because of other clients.

use std::time::Duration;

use noetl_test_services::postgres::TestDatabase;
use sqlx::postgres::PgPool;

use crate::postgres::faults::plane::Plane;

/// Fails every third append with one of the error codes that ask for a retry. A sequence counts the
/// appends, because it is not rolled back with them.
const FAIL: &str = "create sequence noetl.appends; \
     create function noetl.fail() returns trigger language plpgsql as \
     $$ declare n bigint := nextval('noetl.appends'); begin \
     if n % 3 = 0 then \
       raise exception using message = 'undone', \
         errcode = (array['40001', '40P01', '55P03'])[n / 3 % 3 + 1]; \
     end if; return null; end $$; \
     create trigger fail after insert on noetl.event_append for each statement \
       execute function noetl.fail()";

#[tokio::test(flavor = "multi_thread")]
async fn rolled_back_appends_are_retried() {
    let database = TestDatabase::new();
    let plane = Plane::open(&database.url()).await;
    let mut trouble = plane.control.journal.watch.last_commit_error();
    trouble.mark_unchanged();
    database.psql(FAIL);
    let load = plane.load(20).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    load.ends_whole(&plane, &database).await;
    let appends: u64 =
        database.psql("select last_value from noetl.appends").parse().expect("a number");
    assert!(appends > 9, "every code was met");
    assert!(!trouble.has_changed().expect("a control plane"), "{:?}", trouble.borrow());
    plane.close().await;
}

/// Another program locks execution rows in the opposite order, and long enough to meet the writer.
#[tokio::test(flavor = "multi_thread")]
async fn deadlocks_with_another_program_only_delay_executions() {
    let database = TestDatabase::new();
    database.psql(&format!(
        "alter database {} set deadlock_timeout = '10ms'",
        database.url().rsplit('/').next().expect("a name")
    ));
    let plane = Plane::open(&database.url()).await;
    let mut trouble = plane.control.journal.watch.last_commit_error();
    trouble.mark_unchanged();
    let load = plane.load(20).await;
    let pool = PgPool::connect(&database.url()).await.expect("a connection");
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    for _ in 0..2000 {
        let count: i64 = sqlx::query_scalar(deadlocks).fetch_one(&pool).await.expect("a number");
        if count >= 5 {
            break;
        }
        let mut transaction = pool.begin().await.expect("a transaction");
        // The session that detects the deadlock is rolled back, and that has to be the writer.
        let patient = "set local deadlock_timeout = '10s'";
        sqlx::query(patient).execute(&mut *transaction).await.expect("a setting");
        let running: Vec<i64> = sqlx::query_scalar(
            "select execution_id from noetl.execution where status = 'RUNNING' \
             order by execution_id desc limit 8",
        )
        .fetch_all(&mut *transaction)
        .await
        .expect("ids");
        for id in running {
            let sql = "select 1 from noetl.execution where execution_id = $1 for update";
            if sqlx::query(sql).bind(id).execute(&mut *transaction).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        // The transaction changed nothing, so its outcome does not matter.
        let _ = transaction.rollback().await;
    }
    let count: i64 = sqlx::query_scalar(deadlocks).fetch_one(&pool).await.expect("a number");
    assert!(count >= 5, "{count} deadlocks");
    load.ends_whole(&plane, &database).await;
    assert!(!trouble.has_changed().expect("a control plane"), "{:?}", trouble.borrow());
    plane.close().await;
}
