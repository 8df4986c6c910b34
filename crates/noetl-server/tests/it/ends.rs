//! Completions from workers that name their leases, and their large results.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use noetl_model::ExecutionId;
use noetl_store::{Digest, MemoryStore, StoreClock};
use noetl_test_app::{FaultyStore, SimClock, TestApp};
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{TOKEN, ask, get, open_command, post, started};

async fn app() -> (TestApp, Arc<SimClock>, Arc<FaultyStore>) {
    let clock = Arc::new(SimClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
    let store = Arc::new(FaultyStore::over(Arc::new(store)));
    let app = TestApp::builder().slots(0).store(store.clone()).internal_token(TOKEN);
    (app.start().await, clock, store)
}

/// Takes a command for the worker `w`.
async fn lease(app: &TestApp) -> Value {
    let body = json!({"worker_id": "w", "max": 1}).to_string();
    let (status, answer) = post(app, "/api/worker/lease", body).answer().await;
    assert_eq!(status, 200, "{answer}");
    answer["commands"][0].clone()
}

async fn report(app: &TestApp, ends: Value) -> Value {
    let body = json!({"worker_id": "w", "ends": ends}).to_string();
    let (status, answer) = post(app, "/api/worker/report", body).answer().await;
    assert_eq!(status, 200, "{answer}");
    answer["ends"].clone()
}

async fn event_lines(app: &TestApp, id: i64) -> String {
    let rows = app.read_log(ExecutionId::new(id)).await;
    let lines = rows.iter().map(|row| {
        let kind = row.event_type.as_deref().unwrap_or_default();
        format!("{kind} {}", row.node_name.as_deref().unwrap_or_default())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_repeated_completion_changes_nothing() {
    let (app, _, _) = app().await;
    let id = started(&app).await;
    let leased = lease(&app).await;
    assert_eq!(leased["tenant_id"], "default");
    let end = json!({
        "execution_id": id, "event_id": leased["event_id"], "data": {"message": "hi\u{0}"},
        "ctx": {"a.b": 1},
    });
    assert_eq!(report(&app, json!([end])).await, json!([{"status": "taken"}]));
    assert_eq!(report(&app, json!([end])).await, json!([{"status": "late"}]));
    let next = lease(&app).await;
    let failure = json!({"kind": "tool_error", "message": "no"});
    let end = json!({"execution_id": id, "event_id": next["event_id"], "failure": failure});
    assert_eq!(report(&app, json!([end])).await, json!([{"status": "taken"}]));
    assert_snapshot!(event_lines(&app, id).await, @r"
    playbook_started tests/greet
    step.enter start
    command.issued start
    command.claimed start
    call.done start
    ctx.updated start
    command.completed start
    step.exit start
    step.enter end
    command.issued end
    command.claimed end
    command.failed end
    step.exit end
    playbook.failed playbook
    ");
}

#[tokio::test]
async fn an_invalid_completion_does_not_reject_others() {
    let (app, _, _) = app().await;
    let id = started(&app).await;
    let command = lease(&app).await["event_id"].clone();
    let missing = Digest::of_bytes(b"nobody put this").to_string();
    let mut deep = json!(1);
    for _ in 0..110 {
        deep = json!([deep]);
    }
    let ends = report(
        &app,
        json!([
            {"execution_id": id},
            7,
            {"execution_id": 1, "event_id": 2},
            {"execution_id": id, "event_id": 3},
            {"execution_id": id, "event_id": command, "content": {"digest": missing, "bytes": 9}},
            {"execution_id": id, "event_id": command, "content": {"digest": "x", "bytes": 9}},
            {"execution_id": id, "event_id": command, "data": deep},
            {"execution_id": id, "event_id": command, "data": {"message": "hi"}},
        ]),
    )
    .await;
    let statuses: Vec<String> = ends
        .as_array()
        .unwrap()
        .iter()
        .map(|end| format!("{}: {}", end["status"], end["error"]).replace(&missing, "[digest]"))
        .collect();
    assert_snapshot!(statuses.join("\n"), @r#"
    "refused": "Failed to deserialize the JSON body into the target type: missing field `event_id` at line 1 column 35"
    "refused": "Failed to deserialize the JSON body into the target type: invalid type: integer `7`, expected struct CompletionItem at line 1 column 1"
    "late": null
    "late": null
    "refused": "blob [digest] not found; upload the blob with 'PUT /api/worker/content/[digest]' first"
    "refused": "blob x not found; upload the blob with 'PUT /api/worker/content/x' first"
    "refused": "the payload or meta nests more than 100 levels deep"
    "taken": null
    "#);
    let (status, _) = post(&app, "/api/worker/report", r#"{"worker_id":"w"}"#).answer().await;
    assert_eq!(status, 422);
}

#[tokio::test]
async fn completions_after_the_lease_are_recorded_once_and_change_nothing() {
    let (app, clock, _) = app().await;
    let id = started(&app).await;
    let first = lease(&app).await["event_id"].clone();
    clock.advance(Duration::from_secs(46));
    assert_eq!(app.control.remote.leasing.expire_overdue().await.unwrap(), 1);
    let second = open_command(&app, id).await;
    let end = json!({"execution_id": id, "event_id": first, "data": {"message": "late"}});
    for _ in 0..3 {
        assert_eq!(report(&app, json!([end])).await, json!([{"status": "late"}]));
    }
    assert_eq!(open_command(&app, id).await, second, "nothing went on");
    assert_snapshot!(event_lines(&app, id).await, @r"
    playbook_started tests/greet
    step.enter start
    command.issued start
    command.claimed start
    command.expired start
    command.issued start
    command.completed start
    ");
}

#[tokio::test]
async fn a_completion_during_a_store_outage_has_status_again() {
    let (app, _, store) = app().await;
    let id = started(&app).await;
    let command = lease(&app).await["event_id"].clone();
    let end = json!({"execution_id": id, "event_id": command, "data": {"message": "hi"}});
    store.set_down(true);
    assert_eq!(report(&app, json!([end])).await[0]["status"], "again");
    store.set_down(false);
    assert_eq!(report(&app, json!([end])).await[0]["status"], "taken");
}

#[tokio::test]
async fn a_worker_that_deregisters_releases_its_commands() {
    let (app, _, _) = app().await;
    let id = started(&app).await;
    let first = lease(&app).await["event_id"].clone();
    let bye = json!({"name": "w", "release": true}).to_string();
    let (status, _) = post(&app, "/api/worker/pool/deregister", bye).answer().await;
    assert_eq!(status, 200);
    assert_eq!(
        app.control.remote.leasing.expire_overdue().await.unwrap(),
        1,
        "its lease has ended"
    );
    assert_ne!(json!(open_command(&app, id).await), first);
}

async fn put(app: &TestApp, digest: &str, body: String) -> (u16, Value) {
    ask(app, Method::PUT, &format!("/api/worker/content/{digest}")).body(body).answer().await
}

#[tokio::test]
async fn a_large_result_is_stored_as_a_blob_and_read() {
    let (app, _, store) = app().await;
    let id = started(&app).await;
    let command = lease(&app).await["event_id"].clone();
    let text = json!({"message": "hi", "text": "x".repeat(3_000_000)}).to_string();
    let digest = Digest::of_bytes(text.as_bytes()).to_string();
    let bytes = text.len();
    let (status, stored) = put(&app, &digest, text.clone()).await;
    assert_eq!((status, stored), (200, json!({"digest": digest, "bytes": bytes})));
    let end = json!({
        "execution_id": id, "event_id": command, "data": {"message": "hi"},
        "content": {"digest": digest, "bytes": bytes},
    });
    assert_eq!(report(&app, json!([end])).await, json!([{"status": "taken"}]));
    let path = format!("/api/worker/content/{digest}?bytes={bytes}");
    let read = get(&app, &path).send().await;
    assert_eq!(read.content_length(), Some(bytes as u64));
    assert!(read.text().await.unwrap() == text);
    let reference = format!("noetl://execution/{id}/result/start/{digest}-{bytes}");
    let (status, value) = get(&app, &format!("/api/result/resolve?ref={reference}")).answer().await;
    assert_eq!((status, value["text"].as_str().map(str::len)), (200, Some(3_000_000)));
    store.set_down(true);
    assert_eq!(get(&app, &path).answer().await.0, 503);
}

#[tokio::test]
async fn content_with_a_wrong_digest_is_not_stored() {
    let (app, _, store) = app().await;
    let digest = Digest::of_bytes(b"one thing").to_string();
    let (status, body) = put(&app, &digest, "another".to_owned()).await;
    assert_eq!((status, &body["code"]), (422, &json!("other_content")), "{body}");
    for name in ["x", "..", &digest.to_uppercase()] {
        let (status, body) = put(&app, name, "one thing".to_owned()).await;
        assert!(status == 422 || status == 404, "{name}: {body}");
    }
    let (status, body) = get(&app, &format!("/api/worker/content/{digest}?bytes=9")).answer().await;
    assert_eq!((status, &body["code"]), (404, &json!("content_not_found")), "{body}");
    assert_eq!(get(&app, &format!("/api/worker/content/{digest}")).answer().await.0, 400);
    store.set_down(true);
    assert_eq!(put(&app, &digest, "one thing".to_owned()).await.0, 503);
    store.set_down(false);
    assert_eq!(put(&app, &digest, "one thing".to_owned()).await.0, 200);
    let (status, _) = get(&app, &format!("/api/worker/content/{digest}?bytes=8")).answer().await;
    assert_eq!(status, 500, "another length");
}
