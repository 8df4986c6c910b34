use std::collections::HashSet;
use std::time::Duration;

use noetl_model::{ExecutionId, SubscriptionId, Tenant, Timestamp};
use noetl_store::{DedupOutcome, ExecutionFilter, SubscriptionStore};
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{GREET, post, register};

async fn execute(app: &TestApp, body: Value) -> (u16, Value) {
    post(app, "/api/execute", body.to_string()).answer().await
}

#[tokio::test]
async fn the_same_key_starts_one_execution() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    let request = json!({"path": "tests/greet", "dedup": {"key": "order-7"}});
    let (status, first) = execute(&app, request.clone()).await;
    assert_eq!((status, &first["status"]), (200, &json!("started")));
    let (status, again) = execute(&app, request).await;
    assert_eq!(status, 200);
    let expected = json!({
        "execution_id": first["execution_id"], "status": "duplicate", "commands_generated": 0,
    });
    assert_eq!(again, expected);
    // Another scope and another key are other messages.
    for other in [
        json!({"path": "tests/greet", "dedup": {"key": "order-8"}}),
        json!({"path": "tests/greet", "parent_execution_id": 5, "dedup": {"key": "order-7"}}),
    ] {
        assert_eq!(execute(&app, other).await.1["status"], "started");
    }
    app.close().await;
}

#[tokio::test]
async fn concurrent_starts_with_one_key_start_one_execution() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    let request = json!({"path": "tests/greet", "dedup": {"key": "k", "window_secs": 60}});
    let asked = (0..50).map(|_| execute(&app, request.clone()));
    let answers = futures::future::join_all(asked).await;
    let ids: HashSet<_> =
        answers.iter().map(|(_, body)| body["execution_id"].to_string()).collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
    let started = answers.iter().filter(|(_, body)| body["status"] == "started").count();
    assert_eq!(started, 1);
    app.close().await;
}

#[tokio::test]
async fn a_failed_start_does_not_consume_its_key() {
    let app = TestApp::start(0).await;
    let request = json!({"path": "tests/greet", "dedup": {"key": "k"}});
    assert_eq!(execute(&app, request.clone()).await.0, 404);
    register(&app, GREET).await;
    assert_eq!(execute(&app, request).await.1["status"], "started");
    app.close().await;
}

#[tokio::test]
async fn a_dedup_record_without_its_execution_is_repaired() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    // One second ago, so that requests made now get another ID.
    let before = Timestamp::from_micros(app.control.now().as_micros() - 1_000_000);
    let lost = ExecutionId::new(noetl_model::Snowflakes::first_at(before));
    let scope = SubscriptionId::new(0);
    let window = Duration::from_secs(60);
    let noted = app.store.reserve(&Tenant::default(), scope, "k", lost, window).await;
    assert_eq!(noted.expect("a note"), DedupOutcome::New);
    let request = json!({"path": "tests/greet", "dedup": {"key": "k"}});
    let (status, body) = execute(&app, request.clone()).await;
    let expected = json!({
        "execution_id": lost.to_string(), "status": "duplicate", "commands_generated": 0,
    });
    assert_eq!((status, body), (200, expected), "noted before, so not new");
    let started = app.control.journal.executions.events(lost, noetl_model::Seq(1), 1).await;
    assert_eq!(started.expect("a log").len(), 1, "and yet it runs now");
    assert_eq!(execute(&app, request).await.1["status"], "duplicate");
    app.close().await;
}

#[tokio::test]
async fn an_invalid_dedup_key_or_window_is_refused() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    for dedup in [
        json!({"key": ""}),
        json!({"key": "k", "window_secs": 0}),
        json!({"key": "k", "window_secs": 604_801}),
        json!({"key": "k", "window_secs": -1}),
        json!({"window_secs": 5}),
        json!("k"),
    ] {
        let (status, body) = execute(&app, json!({"path": "tests/greet", "dedup": dedup})).await;
        assert_eq!(status, 422, "{dedup}: {body}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_dedup_key_has_at_most_500_characters() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    // Characters, not bytes.
    let longest = "é".repeat(500);
    let start = |key: String| execute(&app, json!({"path": "tests/greet", "dedup": {"key": key}}));
    let (status, first) = start(longest.clone()).await;
    assert_eq!((status, &first["status"]), (200, &json!("started")));
    let (_, again) = start(longest.clone()).await;
    assert_eq!(
        (&again["status"], &again["execution_id"]),
        (&json!("duplicate"), &first["execution_id"])
    );
    let (status, body) = start(longest + "x").await;
    assert_eq!(status, 422, "{body}");
    let message = body["error"].as_str().unwrap();
    assert!(message.contains("dedup.key has at most 500 characters"), "{message}");
    let filter = ExecutionFilter { limit: 10, ..ExecutionFilter::default() };
    let all = app.control.journal.executions.list(&Tenant::default(), &filter).await;
    assert_eq!(all.unwrap().len(), 1, "what was refused started nothing");
    app.close().await;
}

#[tokio::test]
async fn a_dedup_record_of_a_purged_execution_prevents_another_start() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    let yesterday = app.control.now().minus(Duration::from_secs(24 * 3600));
    let gone = ExecutionId::new(noetl_model::Snowflakes::first_at(yesterday));
    let (scope, window) = (SubscriptionId::new(0), Duration::from_secs(60));
    let noted = app.store.reserve(&Tenant::default(), scope, "k", gone, window).await;
    assert_eq!(noted.expect("a note"), DedupOutcome::New);
    let request = json!({"path": "tests/greet", "dedup": {"key": "k"}});
    let (status, body) = execute(&app, request).await;
    assert_eq!((status, &body["status"]), (200, &json!("duplicate")));
    assert_eq!(body["execution_id"], gone.to_string());
    app.close().await;
}

#[tokio::test]
async fn a_duplicate_is_recorded_in_the_subscriptions_log() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    let document = "\
apiVersion: noetl.io/v1
kind: Subscription
metadata: {path: tests/orders}
spec: {source: nats, mode: pull, dispatch: {playbook: tests/greet}}
";
    assert_eq!(register(&app, document).await.0, 200);
    let (_, row) = post(&app, "/api/subscriptions", r#"{"path":"tests/orders"}"#).answer().await;
    let id = row["subscription_id"].as_str().expect("an id");
    let request =
        json!({"path": "tests/greet", "parent_execution_id": id, "dedup": {"key": "m-1"}});
    let (_, first) = execute(&app, request.clone()).await;
    assert_eq!(first["status"], "started", "{first}");
    assert_eq!(execute(&app, request).await.1["status"], "duplicate");
    let log = app.control.journal.executions.events(
        ExecutionId::new(id.parse().expect("a number")),
        noetl_model::Seq(1),
        10,
    );
    let log = log.await.expect("a log");
    let [note] = &log[..] else { panic!("{log:?}") };
    let row = noetl_model::row::EventRow::from(note);
    assert_eq!(row.event_type.as_deref(), Some("subscription.message.deduplicated"));
    let result: Value =
        serde_json::from_str(row.result.as_deref().unwrap_or("null")).expect("JSON");
    assert_eq!(result["context"]["original_execution_id"], first["execution_id"]);
    assert_eq!(result["context"]["dedup_key"], "m-1");
    app.close().await;
}
