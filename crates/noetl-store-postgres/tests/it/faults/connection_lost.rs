//! The server ends the writer's connection while it works.

use std::time::Duration;

use noetl_testkit::postgres::TestDatabase;
use sqlx::Row;
use sqlx::postgres::PgPool;

use crate::faults::plane::Plane;

/// Connections to end.
const ENDED: i64 = 10;

/// Ends every connection of the store in this database that appends.
const END_WRITERS: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
     where datname = current_database() and application_name = 'noetl' \
     and query like '-- Appends a batch%' and state = $1";

/// Working ones are hit in the middle of a batch, idle ones are found dead by the next.
#[tokio::test(flavor = "multi_thread")]
async fn the_writer_s_connection_is_ended_again_and_again() {
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

/// Readers find their connections gone as well, and take others.
#[tokio::test(flavor = "multi_thread")]
async fn every_connection_is_ended_at_once() {
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
