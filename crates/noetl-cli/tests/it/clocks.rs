//! Processes whose clock is wrong.

use std::path::PathBuf;

use noetl_testkit::postgres::TestDatabase;

use crate::dev_process::DevProcess;
use crate::noetl::until;
use crate::replicas::{ended_whole, fan, hold_commands, start};

/// The library that shows a process another time; `None`, with a printed reason, when it is not
/// installed.
fn other_time() -> Option<String> {
    let below = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let places = below.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
    let found = places.chain([PathBuf::from("/usr/lib/faketime/libfaketimeMT.so.1")]);
    let found = found.into_iter().find(|path| path.exists());
    if found.is_none() {
        println!("skipped: the package faketime is not installed");
    }
    found.map(|path| path.display().to_string())
}

/// The settings of a process that is an hour behind.
fn behind(library: &str) -> [(&str, &str); 3] {
    [("LD_PRELOAD", library), ("FAKETIME", "-1h"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]
}

/// Ids are in the log's order within each log, and nowhere twice.
fn check_ids(database: &TestDatabase) {
    let falling = "select count(*) from (select event_id - lag(event_id) over \
         (partition by execution_id order by seq) as step from noetl.event) s where step <= 0";
    assert_eq!(database.psql(falling), "0", "ids that fall");
    let twice = "select count(*) - count(distinct event_id) from noetl.event";
    assert_eq!(database.psql(twice), "0", "ids given twice");
}

/// When this database's newest execution began, by the clock of its process, in hours from now.
fn hours_ago(database: &TestDatabase) -> f64 {
    let sql = "select extract(epoch from now() - max(created_at) at time zone 'utc') / 3600 \
               from noetl.event where execution_id = (select max(execution_id) from noetl.execution)";
    database.psql(sql).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_between_two_starts_stops_nothing() {
    let Some(library) = other_time() else { return };
    let database = TestDatabase::new();
    let process = DevProcess::start_on(&database.url(), 2, &[]);
    let mut started = start(&process.client, &fan(10), 3).await;
    until("it to run steps", async || hold_commands(&database, 1)).await;
    process.kill();
    let process = DevProcess::start_on(&database.url(), 8, &behind(&library));
    started.extend(start(&process.client, &fan(10), 3).await);
    for id in started {
        ended_whole(&process.client, id, 12).await;
    }
    assert!(hours_ago(&database) > 0.9, "the clock was set back");
    check_ids(&database);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_an_hour_behind_works_beside_one_that_is_not() {
    let Some(library) = other_time() else { return };
    let database = TestDatabase::new();
    let right = DevProcess::start_on(&database.url(), 3, &[]);
    let wrong = DevProcess::start_on(&database.url(), 3, &behind(&library));
    let mut started = start(&right.client, &fan(10), 3).await;
    started.extend(start(&wrong.client, &fan(10), 3).await);
    for id in started {
        ended_whole(&right.client, id, 12).await;
    }
    let sql = "select count(distinct worker_id) from noetl.event \
               where event_type = 'command.claimed'";
    assert_eq!(database.psql(sql), "2", "both ran steps");
    check_ids(&database);
}
