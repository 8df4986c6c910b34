//! Faults on the wire that users of other engines reported, each under its own name: the run ends as
//! it does without the fault. Others are in the modules of this name in `noetl-control`, `noetl-cli`
//! and `noetl-store-postgres`.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::ExecutionId;
use noetl_store::{MemoryStore, StoreClock};
use noetl_test_app::{FaultyStore, SimClock, TestApp};
use serde_json::{Value, json};

use crate::api::{get, post, started};

/// An app without a worker of its own, and the clock of its store.
async fn app() -> (TestApp, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
    let store = Arc::new(FaultyStore::over(Arc::new(store)));
    (TestApp::builder().slots(0).store(store).start().await, clock)
}

async fn send(app: &TestApp, path: &str, body: Value) -> Value {
    let (status, answer) = post(app, path, body.to_string()).answer().await;
    assert_eq!(status, 200, "{path}: {answer}");
    answer
}

/// Leases one command and returns its ID.
async fn lease(app: &TestApp, worker: &str) -> Option<i64> {
    let body = json!({"worker_id": worker, "max": 1, "wait_seconds": 0});
    send(app, "/api/worker/lease", body).await["commands"][0]["event_id"].as_i64()
}

async fn beat(app: &TestApp, worker: &str, commands: &[i64]) -> Value {
    send(app, "/api/worker/heartbeat", json!({"worker_id": worker, "commands": commands})).await
}

/// Reports a completion and returns its status.
async fn done(app: &TestApp, worker: &str, id: i64, command: i64) -> Value {
    let end = json!({"execution_id": id, "event_id": command, "data": {"message": "hi"}});
    let ends = send(app, "/api/worker/report", json!({"worker_id": worker, "ends": [end]})).await;
    ends["ends"][0]["status"].clone()
}

/// Runs what is left of an execution; the status it ends with and the steps it left.
async fn ends(app: &TestApp, id: i64, worker: &str) -> (Value, Vec<String>) {
    while let Some(command) = lease(app, worker).await {
        assert_eq!(done(app, worker, id, command).await, "taken");
    }
    let (_, status) = get(app, &format!("/api/executions/{id}/status")).answer().await;
    let log = app.read_log(ExecutionId::new(id)).await;
    let left = log.iter().filter(|row| row.event_type.as_deref() == Some("step.exit"));
    let left = left.map(|row| row.node_name.as_deref().unwrap_or_default().to_owned());
    (status["status"].clone(), left.collect())
}

async fn undisturbed() -> (Value, Vec<String>) {
    let (app, _) = app().await;
    let id = started(&app).await;
    let end = ends(&app, id, "w").await;
    assert_eq!(end.0, "COMPLETED");
    app.close().await;
    end
}

async fn count(app: &TestApp, id: i64, event_type: &str) -> usize {
    let log = app.read_log(ExecutionId::new(id)).await;
    log.iter().filter(|row| row.event_type.as_deref() == Some(event_type)).count()
}

#[tokio::test]
async fn a_worker_that_heartbeats_and_receives_nothing() {
    let expected = undisturbed().await;
    let (app, clock) = app().await;
    let id = started(&app).await;
    // Commands are handed to it and the answer does not arrive, so that it names none of them.
    let lost = lease(&app, "deaf").await.expect("a command");
    let mut handed_on = None;
    for _ in 0..20 {
        clock.advance(Duration::from_secs(10));
        assert_eq!(beat(&app, "deaf", &[]).await["status"], "ok");
        app.control.remote.leasing.expire_overdue().await.expect("a store that answers");
        handed_on = lease(&app, "other").await;
        if handed_on.is_some() {
            break;
        }
    }
    let command = handed_on.expect("what nobody holds is handed to another");
    assert_ne!(command, lost);
    assert_eq!(done(&app, "other", id, command).await, "taken");
    assert_eq!(ends(&app, id, "other").await, expected);
    assert_eq!(count(&app, id, "command.expired").await, 1);
    app.close().await;
}

#[tokio::test]
async fn a_watchdog_does_not_kill_healthy_work_of_a_remote_worker() {
    let expected = undisturbed().await;
    let (app, clock) = app().await;
    let id = started(&app).await;
    let command = lease(&app, "busy").await.expect("a command");
    // A step of several hours, many leases long, whose worker sends heartbeats in time.
    for _ in 0..500 {
        clock.advance(Duration::from_secs(30));
        let heartbeat = beat(&app, "busy", &[command]).await;
        assert_eq!((&heartbeat["lost"], &heartbeat["cancel"]), (&json!([]), &json!([])));
        assert_eq!(app.control.remote.leasing.expire_overdue().await.expect("a store"), 0);
    }
    assert_eq!(lease(&app, "other").await, None, "nobody else is given it");
    assert_eq!(done(&app, "busy", id, command).await, "taken");
    assert_eq!(ends(&app, id, "busy").await, expected);
    assert_eq!(count(&app, id, "command.expired").await, 0);
    app.close().await;
}

#[tokio::test]
async fn a_client_that_repeats_a_state_change_after_a_lost_answer() {
    let expected = undisturbed().await;
    let (app, _) = app().await;
    let id = started(&app).await;
    let command = lease(&app, "w").await.expect("a command");
    assert_eq!(done(&app, "w", id, command).await, "taken");
    for _ in 0..3 {
        assert_eq!(done(&app, "w", id, command).await, "late");
    }
    assert_eq!(ends(&app, id, "w").await, expected);
    assert_eq!(count(&app, id, "command.completed").await, 2, "one for each step");
    app.close().await;
}
