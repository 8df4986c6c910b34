//! The calls of system playbooks and of the published subscription runtime.

use std::sync::Arc;

use noetl_server::{InternalToken, Options};
use noetl_store::OutboxOptions;
use noetl_store_sqlite::SqliteStore;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{GREET, TOKEN, ask, get, get_as_system, post, post_as_system, register};
use crate::published::{As, begun, open_app, reads};
use crate::subscriptions::document;

/// An app on SQLite whose outbox is on.
async fn app() -> TestApp {
    let outbox = OutboxOptions { is_on: true, ..OutboxOptions::default() };
    let store = noetl_store_sqlite::Options { outbox, ..noetl_store_sqlite::Options::memory() };
    let store = Arc::new(SqliteStore::open(store).expect("a store"));
    let internal_token = InternalToken::read_by(|| Some(TOKEN.to_owned()));
    let options = Options { internal_token, ..Options::default() };
    TestApp::builder().slots(0).over(store).options(options).start().await
}

async fn ordered(app: &TestApp, path: &str, body: Value) -> Value {
    let path = format!("/api/internal/{path}");
    let (status, body) = post_as_system(app, &path, body.to_string()).answer().await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

#[tokio::test]
async fn a_publisher_empties_the_outbox() {
    let app = app().await;
    register(&app, GREET).await;
    begun(&app, "tests/greet").await;
    let count = async || get_as_system(&app, "/api/internal/outbox/pending-count").answer().await.1;
    reads(&count().await, &[("pending", As::Count)]);
    let claimed = ordered(&app, "outbox/claim", json!({"limit": 100})).await;
    assert_eq!(claimed["claimed"], 3, "{claimed}");
    let row = [
        ("outbox_id", As::NumberId),
        ("event_id", As::NumberId),
        ("execution_id", As::NumberId),
        ("subject", As::Text),
        ("payload", As::Map),
        ("payload_codec", As::Text),
        ("attempts", As::Count),
    ];
    let ids: Vec<&Value> = claimed["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|one| {
            reads(one, &row);
            &one["outbox_id"]
        })
        .collect();
    let marked = ordered(&app, "outbox/mark-published", json!({"outbox_ids": &ids[..2]})).await;
    assert_eq!(marked, json!({"marked": 2}));
    let failed =
        json!({"outbox_id": ids[2], "error": "no", "attempts": 5, "max_delay_seconds": 10});
    let failed = ordered(&app, "outbox/mark-failed", failed).await;
    assert_eq!(failed, json!({"marked": true, "available_at_in": 10}));
    assert_eq!(count().await, json!({"pending": 0}), "it waits");
    app.close().await;
}

#[tokio::test]
async fn a_projector_stores_rows_and_a_materializer_stores_events() {
    let app = app().await;
    register(&app, GREET).await;
    let id: i64 = begun(&app, "tests/greet").await.parse().expect("digits");
    let row = json!({
        "event_id": 71, "execution_id": 70, "event_type": "playbook_started", "status": "STARTED",
        "node_name": "elsewhere", "timestamp": "2026-01-01 00:00:00.5", "catalog_id": "0",
    });
    let rows =
        json!({"events": [row, row, {"event_id": 72, "execution_id": 70, "timestamp": "soon"}]});
    let projected = ordered(&app, "events/project", rows).await;
    assert_eq!(
        (&projected["projected"], &projected["duplicates"]),
        (&1.into(), &1.into()),
        "{projected}"
    );
    reads(
        &projected["rejected"][0],
        &[("index", As::Count), ("event_id", As::NumberId), ("error", As::Text)],
    );
    let materialized =
        json!([{"execution_id": id, "event_id": 990, "step": "start", "event_type": "note"}]);
    let response = ordered(&app, "events/materialize", materialized.clone()).await;
    assert_eq!(response, json!({"materialized": 1, "duplicates": 0}));
    let again = ordered(&app, "events/materialize", materialized).await;
    assert_eq!(again, json!({"materialized": 0, "duplicates": 1}));
    let advanced = ordered(&app, "projection/advance", json!({"execution_ids": [id, 31337]})).await;
    let one = [("execution_id", As::NumberId), ("version", As::NumberId), ("events", As::Count)];
    reads(&advanced["advanced"][0], &one);
    reads(&advanced["failed"][0], &[("execution_id", As::NumberId), ("error", As::Text)]);
    let path = format!("/api/replay/state?execution_id={id}");
    let (status, state) = get(&app, &path).answer().await;
    assert_eq!(status, 200, "{state}");
    reads(&state, &[("execution_id", As::NumberId), ("event_count", As::Count)]);
    app.close().await;
}

#[tokio::test]
async fn cleanup_accepts_requests_with_and_without_a_body() {
    let app = app().await;
    let days = json!({"command_retention_days": 7, "runtime_stale_minutes": 60, "event_retention_days": 0});
    let cleaned = ordered(&app, "cleanup/purge", days).await;
    let counts = [
        ("commands_purged", As::Count),
        ("runtime_purged", As::Count),
        ("events_purged", As::Count),
    ];
    reads(&cleaned, &counts);
    let bare = ask(&app, Method::POST, "/api/internal/cleanup/purge");
    let (status, cleaned) = bare.header("authorization", &format!("Bearer {TOKEN}")).answer().await;
    assert_eq!(status, 200, "{cleaned}");
    reads(&cleaned, &counts);
    app.close().await;
}

#[tokio::test]
async fn a_subscription_runs_from_registration_to_deactivation() {
    let app = open_app(0).await;
    register(&app, GREET).await;
    register(&app, &document("sub/a")).await;
    let path = json!({"path": "sub/a", "version": "latest"}).to_string();
    let (_, spec) = post(&app, "/api/catalog/resource", path).answer().await;
    assert_eq!(spec["content"], document("sub/a"));
    let view = [
        ("subscription_id", As::TextId),
        ("path", As::Text),
        ("state", As::Text),
        ("catalog_id", As::TextId),
    ];
    let (status, known) =
        post(&app, "/api/subscriptions/register", r#"{"path":"sub/a"}"#).answer().await;
    assert_eq!(status, 200, "{known}");
    reads(&known, &view);
    let id = known["subscription_id"].as_str().expect("text");
    let act = async |action: &str| {
        let path = format!("/api/subscriptions/{id}/{action}");
        let (status, body) = ask(&app, Method::POST, &path).answer().await;
        assert_eq!(status, 200, "{action}: {body}");
        reads(&body, &view);
        body["state"].as_str().expect("text").to_owned()
    };
    assert_eq!(act("activate").await, "ACTIVE");
    assert_eq!(act("pause").await, "PAUSED");
    assert_eq!(act("resume").await, "ACTIVE");
    let number: i64 = id.parse().expect("digits");
    let message = json!({
        "path": "tests/greet", "parent_execution_id": number, "execution_pool": "shared",
        "payload": {"message": {"id": "1"}, "subscription": "sub/a", "source": "nats"},
        "dedup": {"key": "1", "window_secs": 300}, "trace": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
    });
    let (status, first) = post(&app, "/api/execute", message.to_string()).answer().await;
    assert_eq!((status, &first["status"]), (200, &"started".into()), "{first}");
    let batch = json!({"executions": [message, {"path": "nope", "payload": {}}]}).to_string();
    let (status, batch) = post(&app, "/api/execute/batch", batch).answer().await;
    assert_eq!(status, 200, "{batch}");
    reads(
        &batch["results"][0],
        &[("index", As::Count), ("status", As::Text), ("execution_id", As::TextId)],
    );
    assert_eq!(batch["results"][0]["execution_id"], first["execution_id"], "a message once");
    assert_eq!(batch["results"][1]["status"], "error");
    reads(&batch["results"][1], &[("index", As::Count), ("error", As::Text)]);
    let (_, polled) = get(&app, &format!("/api/subscriptions/{id}")).answer().await;
    assert_eq!(polled["state"], "ACTIVE");
    assert_eq!(act("drain").await, "DRAINING");
    assert_eq!(act("deactivate").await, "DEACTIVATED");
    app.close().await;
}
