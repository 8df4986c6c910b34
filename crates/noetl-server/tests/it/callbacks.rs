//! Containers that a worker started and did not wait for.

use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{get, open_command, post, post_as_system, started, system_app};

async fn say(app: &TestApp, id: i64, event_type: &str, command: i64, status: &str) {
    let body = json!({
        "execution_id": id, "event_type": event_type, "step": "start", "worker_id": "w",
        "context": {"command_id": command, "status": status},
    });
    let (code, answer) = post(app, "/api/events", body.to_string()).answer().await;
    assert_eq!(code, 200, "{answer}");
}

/// An execution whose first command a worker has begun.
async fn begun(app: &TestApp) -> (i64, i64) {
    let id = started(app).await;
    let command = open_command(app, id).await;
    let claim = format!("/api/commands/{command}/claim");
    assert_eq!(post(app, &claim, r#"{"worker_id":"w"}"#).answer().await.0, 200);
    say(app, id, "command.started", command, "").await;
    (id, command)
}

fn callback(id: i64, step: &str) -> String {
    format!("/api/internal/container-callback/{id}/{step}")
}

fn body(state: &str) -> String {
    json!({"state": state, "job_name": "job-1", "exit_code": 3, "reason": "why"}).to_string()
}

async fn current(app: &TestApp, id: i64) -> Value {
    get(app, &format!("/api/executions/{id}/status")).answer().await.1
}

#[tokio::test]
async fn a_container_callback_completes_the_waiting_step() {
    let app = system_app().await;
    let (id, command) = begun(&app).await;
    say(&app, id, "command.completed", command, "success").await;
    assert_eq!(current(&app, id).await["current_step"], "start", "it waits");
    let answer = post_as_system(&app, &callback(id, "start"), body("succeeded"));
    assert_snapshot!(answer.shown().await, @r#"
    202
    {
      "status": "accepted_in_flight",
      "event_id": "[id]"
    }
    "#);
    assert_eq!(current(&app, id).await["current_step"], "end");
    let again = post_as_system(&app, &callback(id, "start"), body("succeeded"));
    assert_snapshot!(again.shown().await, @r#"
    202
    {
      "status": "accepted_stale"
    }
    "#);
    let page = get(&app, "/metrics").send().await.text().await.expect("a page");
    for line in [
        "noetl_container_callback_total{state=\"succeeded\"} 2",
        "noetl_container_callback_stale_total{state=\"succeeded\"} 1",
    ] {
        assert!(page.lines().any(|rendered| rendered == line), "{line}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_container_callback_before_the_worker_report_is_not_lost() {
    let app = system_app().await;
    let (id, command) = begun(&app).await;
    let (code, answer) =
        post_as_system(&app, &callback(id, "start"), body("succeeded")).answer().await;
    assert_eq!((code, &answer["status"]), (202, &"accepted_in_flight".into()));
    say(&app, id, "command.completed", command, "success").await;
    assert_eq!(current(&app, id).await["current_step"], "end");
    app.close().await;
}

#[tokio::test]
async fn a_failed_container_fails_its_step() {
    let app = system_app().await;
    let (id, command) = begun(&app).await;
    say(&app, id, "command.completed", command, "success").await;
    let answer = post_as_system(&app, &callback(id, "start"), body("failed_oom")).answer().await;
    assert_eq!(answer.0, 202);
    let status = current(&app, id).await;
    assert_eq!(status["status"], "FAILED");
    let error = status["error"].as_str().unwrap_or_default();
    assert!(error.contains("'job-1' ended as failed_oom with exit code 3: why"), "{error}");
    app.close().await;
}

#[tokio::test]
async fn unexpected_callbacks_are_stale_and_invalid_ones_are_rejected() {
    let app = system_app().await;
    let id = started(&app).await;
    for (path, expected) in [
        (callback(id, "start"), "nobody has begun it"),
        (callback(id, "nowhere"), "no such step"),
        (callback(7, "start"), "no such execution"),
    ] {
        let (code, answer) = post_as_system(&app, &path, body("failed")).answer().await;
        assert_eq!((code, answer), (202, json!({"status": "accepted_stale"})), "{expected}");
    }
    let path = "/api/internal/container-callback/x/start";
    assert_snapshot!(post_as_system(&app, path, body("failed")).shown().await, @r#"
    422
    {
      "error": "Invalid execution_id: 'x' is no decimal id",
      "status": 422,
      "code": "invalid_execution_id",
      "detail": "Invalid execution_id: 'x' is no decimal id",
      "message": "Invalid execution_id: 'x' is no decimal id"
    }
    "#);
    let wrong = post_as_system(&app, &callback(id, "start"), body("exploded"));
    assert_eq!(wrong.answer().await.0, 422);
    assert_eq!(post(&app, &callback(id, "start"), body("failed")).answer().await.0, 403);
    app.close().await;
}
