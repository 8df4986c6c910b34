//! The server terminates connections of the store.

use std::time::Duration;

use noetl_test_services::postgres::TestDatabase;
use sqlx::Row;
use sqlx::postgres::PgPool;

use crate::postgres::faults::plane::Plane;

/// Number of connections to terminate.
const ENDED: i64 = 10;

/// Terminates the connections of the store in this database that append.
const END_WRITERS: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
     where datname = current_database() and application_name = 'noetl' \
     and query like '-- Appends a batch%' and state = $1";

/// Active connections fail in the middle of a batch, idle ones at the next batch.
#[tokio::test(flavor = "multi_thread")]
async fn executions_survive_repeated_loss_of_the_writer_connection() {
    let database = TestDatabase::new();
    let plane = Plane::open(&database.url()).await;
    let load = plane.load(20).await;
    let pool = PgPool::connect(&database.url()).await.expect("a connection");
    for state in ["active", "idle"] {
        let mut ended = 0;
        while ended < ENDED {
            let row = sqlx::query(END_WRITERS).bind(state).fetch_one(&pool).await;
            ended += row.expect("an answer").get::<i64, _>(0);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    load.ends_whole(&plane, &database).await;
    plane.close().await;
}

/// Readers lose their connections too, and open new ones.
#[tokio::test(flavor = "multi_thread")]
async fn executions_survive_the_loss_of_every_connection() {
    let database = TestDatabase::new();
    let plane = Plane::open(&database.url()).await;
    let load = plane.load(20).await;
    let sql = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
               where datname = current_database() and application_name = 'noetl'";
    let mut ended = 0;
    while ended < 4 * ENDED {
        ended += database.psql(sql).parse::<i64>().expect("a number");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    load.ends_whole(&plane, &database).await;
    plane.close().await;
}
