//! Processes whose clock is wrong.

use std::path::PathBuf;

use noetl_api::events::EventView;
use noetl_test_services::postgres::TestDatabase;

use crate::dev_process::DevProcess;
use crate::replicas::{ended_whole, fan, start, until_claimed, workers};

/// Returns the path of libfaketime, or `None` and records the skip if it is not installed.
fn other_time() -> Option<String> {
    let below = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let places = below.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"));
    let candidates = places.chain([PathBuf::from("/usr/lib/faketime/libfaketimeMT.so.1")]);
    let candidates = candidates.into_iter().find(|path| path.exists());
    if candidates.is_none() {
        noetl_test_services::missing("libfaketime", "scripts/setup.sh");
    }
    candidates.map(|path| path.display().to_string())
}

/// The settings of a process that is an hour behind.
fn behind(library: &str) -> [(&str, &str); 3] {
    [("LD_PRELOAD", library), ("FAKETIME", "-1h"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]
}

/// Fails when an id was given twice.
fn check_ids(logs: &[Vec<EventView>]) {
    let mut ids: Vec<i64> = logs.iter().flatten().map(|event| event.event_id.get()).collect();
    let events = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), events, "ids given twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_finish_after_the_clock_is_set_back_between_starts() {
    let Some(library) = other_time() else { return };
    let database = TestDatabase::new();
    let process = DevProcess::start_on(&database.url(), 2, &[]);
    let mut started = start(&process.client, &fan(10), 3).await;
    until_claimed(&process.client, &started, 1).await;
    process.kill();
    let process = DevProcess::start_on(&database.url(), 8, &behind(&library));
    started.extend(start(&process.client, &fan(10), 3).await);
    let mut logs = Vec::new();
    for id in started {
        logs.push(ended_whole(&process.client, id, 12).await);
    }
    let times: Vec<_> = logs.iter().flatten().map(|event| event.created_at).collect();
    let apart = times.iter().max().unwrap().as_millis() - times.iter().min().unwrap().as_millis();
    assert!(apart > 3_500_000, "the clock was set back");
    check_ids(&logs);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_with_clocks_an_hour_apart_share_executions() {
    let Some(library) = other_time() else { return };
    let database = TestDatabase::new();
    let right = DevProcess::start_on(&database.url(), 3, &[]);
    let wrong = DevProcess::start_on(&database.url(), 3, &behind(&library));
    let mut started = start(&right.client, &fan(10), 3).await;
    started.extend(start(&wrong.client, &fan(10), 3).await);
    let mut logs = Vec::new();
    for id in started {
        logs.push(ended_whole(&right.client, id, 12).await);
    }
    let shared = logs.iter().filter(|log| workers(log).len() == 2).count();
    assert!(shared > 0, "no execution was moved by both, so nothing was shown");
    check_ids(&logs);
}
