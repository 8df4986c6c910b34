//! Commands that go out with the answer to a report.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::ExecutionId;
use noetl_store::{MemoryStore, StoreClock};
use noetl_test_app::{SimClock, TestApp};
use serde_json::{Value, json};

use crate::api::{open_command, post, started};

async fn app() -> (TestApp, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
    let app = TestApp::builder().slots(0).over(Arc::new(store)).clock(clock.clone());
    (app.start().await, clock)
}

async fn lease(app: &TestApp) -> Vec<Value> {
    let body = json!({"worker_id": "w", "max": 1}).to_string();
    let (status, answer) = post(app, "/api/worker/lease", body).answer().await;
    assert_eq!(status, 200, "{answer}");
    answer["commands"].as_array().expect("a list").clone()
}

/// Reports the completion of a command, and requests a handoff.
async fn done(app: &TestApp, id: i64, command: &Value, next: Value) -> Value {
    let end = json!({"execution_id": id, "event_id": command, "data": {"message": "hi"}});
    let body = json!({"worker_id": "w", "ends": [end], "next": next}).to_string();
    let (status, answer) = post(app, "/api/worker/report", body).answer().await;
    assert_eq!(status, 200, "{answer}");
    answer["ends"][0].clone()
}

async fn kinds(app: &TestApp, id: i64) -> Vec<String> {
    let rows = app.read_log(ExecutionId::new(id)).await;
    rows.iter().map(|row| row.event_type.as_deref().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn the_next_command_is_returned_with_the_completion_and_repeated_if_lost() {
    let (app, _) = app().await;
    let id = started(&app).await;
    let first = lease(&app).await[0]["event_id"].clone();
    let answer = done(&app, id, &first, json!({})).await;
    assert_eq!(answer["status"], "taken");
    let next = &answer["next"];
    assert_eq!((&next["node_name"], &next["tenant_id"]), (&json!("end"), &json!("default")));
    assert_eq!(next["execution_id"], id);
    assert!(next["issued"]["context"].is_object(), "{next}");
    assert_eq!(lease(&app).await, [] as [Value; 0], "it is held");
    let repeated = done(&app, id, &first, json!({})).await;
    assert_eq!((&repeated["status"], &repeated["next"]), (&json!("late"), next));
    let last = done(&app, id, &next["event_id"], json!({})).await;
    assert_eq!((&last["status"], &last["next"]), (&json!("taken"), &Value::Null));
    let repeated = done(&app, id, &first, json!({})).await;
    assert_eq!(repeated["next"], Value::Null, "it is over");
    let event_types = kinds(&app, id).await;
    assert_eq!(event_types.iter().filter(|kind| *kind == "command.claimed").count(), 2);
    assert_eq!(event_types.last().map(String::as_str), Some("playbook.completed"));
    app.close().await;
}

#[tokio::test]
async fn only_commands_that_the_worker_accepts_are_returned_with_the_completion() {
    let (app, _) = app().await;
    for next in [
        json!({"pool": "gpu"}),
        json!({"kinds": ["http"]}),
        json!({"pool": "shared", "kinds": []}),
        Value::Null,
    ] {
        let id = started(&app).await;
        let first = lease(&app).await[0]["event_id"].clone();
        let answer = done(&app, id, &first, next.clone()).await;
        assert_eq!((&answer["status"], &answer["next"]), (&json!("taken"), &Value::Null), "{next}");
        let left = lease(&app).await;
        assert_eq!(left[0]["execution_id"], id, "somebody else is given it");
    }
    app.close().await;
}

#[tokio::test]
async fn a_handed_off_command_has_the_same_lease_time_as_a_polled_one() {
    let (app, clock) = app().await;
    let id = started(&app).await;
    let first = lease(&app).await[0]["event_id"].clone();
    let next = done(&app, id, &first, json!({})).await["next"]["event_id"].clone();
    clock.advance(Duration::from_secs(44));
    let body = json!({"worker_id": "w", "commands": [next]}).to_string();
    let (status, renewed) = post(&app, "/api/worker/heartbeat", body).answer().await;
    assert_eq!((status, &renewed["lost"]), (200, &json!([])));
    clock.advance(Duration::from_secs(44));
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 0);
    clock.advance(Duration::from_secs(2));
    assert_eq!(
        app.control.remote.leasing.expire_overdue().await.unwrap(),
        1,
        "it was not named again"
    );
    assert_ne!(json!(open_command(&app, id).await), next);
    let answer = done(&app, id, &first, json!({})).await;
    assert_eq!(answer["next"], Value::Null, "it is not held any more");
    app.close().await;
}

#[tokio::test]
async fn a_long_waiting_command_is_not_bypassed() {
    let (app, clock) = app().await;
    let ids = [started(&app).await, started(&app).await];
    let first = lease(&app).await[0].clone();
    assert_eq!(first["execution_id"], ids[0]);
    clock.advance(Duration::from_secs(1));
    let answer = done(&app, ids[0], &first["event_id"], json!({})).await;
    assert_eq!((&answer["status"], &answer["next"]), (&json!("taken"), &Value::Null));
    let second = lease(&app).await[0].clone();
    assert_eq!(second["execution_id"], ids[1], "its turn");
    app.close().await;
}

#[tokio::test]
async fn a_handoff_to_an_invalid_worker_name_is_refused() {
    let (app, _) = app().await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let end = json!({"execution_id": id, "event_id": command, "data": 1});
    for name in ["local:x", "control-plane", ""] {
        let body = json!({"worker_id": name, "ends": [end], "next": {}}).to_string();
        let (status, answer) = post(&app, "/api/worker/report", body).answer().await;
        assert_eq!(status, 422, "{name}: {answer}");
    }
    assert!(!kinds(&app, id).await.contains(&"command.completed".to_owned()));
    app.close().await;
}
