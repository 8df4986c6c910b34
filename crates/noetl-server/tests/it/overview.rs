//! Dashboards, the machine, the database below.

use std::sync::Arc;

use insta::assert_snapshot;
use noetl_store_sqlite::{Options, SqliteStore};
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{finished, get, post, started};

#[tokio::test]
async fn activity_is_counted_by_when_executions_started() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    started(&app).await;
    let cancel = format!("/api/executions/{id}/cancel");
    assert_eq!(post(&app, &cancel, "").answer().await.0, 200);
    for (query, number, seconds) in [
        ("", 60, 60),
        ("?seconds=600&stretches=7", 7, 86),
        ("?seconds=0&stretches=0", 1, 60),
        ("?seconds=99999999999&stretches=99999", 500, 5357),
    ] {
        let (status, body) = get(&app, &format!("/api/dashboard/activity{query}")).answer().await;
        assert_eq!((status, &body["stretch_seconds"]), (200, &json!(seconds)), "{query}");
        let stretches = body["stretches"].as_array().expect("stretches");
        let sum = |name: &str| stretches.iter().filter_map(|one| one[name].as_u64()).sum::<u64>();
        let seen = (stretches.len(), sum("running"), sum("cancelled"), sum("failed"));
        assert_eq!(seen, (number, 1, 1, 0), "{query}");
    }
    let (status, _) = get(&app, "/api/dashboard/activity?seconds=-1").answer().await;
    assert_eq!(status, 400);
    app.close().await;
}

#[tokio::test]
async fn a_dashboard_counts_executions() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    started(&app).await;
    let cancel = format!("/api/executions/{id}/cancel");
    assert_eq!(post(&app, &cancel, "").answer().await.0, 200);
    let beat = post(&app, "/api/worker/pool/heartbeat", r#"{"name":"w"}"#);
    assert_eq!(beat.answer().await.0, 200);
    assert_snapshot!(get(&app, "/api/dashboard/stats").shown().await, @r#"
    200
    {
      "status": "ok",
      "stats": {
        "total_executions": 2,
        "successful_executions": 0,
        "failed_executions": 0,
        "cancelled_executions": 1,
        "running_executions": 1,
        "total_playbooks": 1,
        "total_workers": 1
      },
      "total_playbooks": 1,
      "total_executions": 2,
      "active_executions": 1,
      "success_rate": 0.0,
      "recent_executions": [
        {
          "execution_id": "[id number]",
          "catalog_id": "[id number]",
          "path": "tests/greet",
          "version": 2,
          "status": "RUNNING",
          "started_at": "[time]",
          "completed_at": null,
          "start_time": "[time]",
          "end_time": null,
          "duration_seconds": null,
          "duration_human": null,
          "progress": 0,
          "event_count": 3,
          "parent_execution_id": null,
          "error": null
        },
        {
          "execution_id": "[id number]",
          "catalog_id": "[id number]",
          "path": "tests/greet",
          "version": 1,
          "status": "CANCELLED",
          "started_at": "[time]",
          "completed_at": "[time]",
          "start_time": "[time]",
          "end_time": "[time]",
          "duration_seconds": "[seconds]",
          "duration_human": "[length]",
          "progress": 100,
          "event_count": 5,
          "parent_execution_id": null,
          "error": null
        }
      ]
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn dashboard_widgets_count_executions() {
    let app = TestApp::start(2).await;
    finished(&app).await;
    let (status, body) = get(&app, "/api/dashboard/widgets").answer().await;
    assert_eq!(status, 200, "{body}");
    let widgets = body["widgets"].as_array().expect("a list");
    let ids: Vec<&Value> = widgets.iter().map(|widget| &widget["id"]).collect();
    assert_eq!(ids, ["execution-trend", "recent-executions"]);
    let ended = json!({"status": "COMPLETED", "count": 1});
    assert!(widgets[0]["data"].as_array().is_some_and(|data| data.contains(&ended)), "{body}");
    assert_eq!(widgets[1]["data"][0]["path"], "tests/greet");
    let (_, stats) = get(&app, "/api/dashboard/stats").answer().await;
    assert_eq!(stats["success_rate"], 100.0);
    app.close().await;
}

#[tokio::test]
async fn the_status_reports_system_and_process_usage() {
    let app = TestApp::start(0).await;
    let (status, body) = get(&app, "/api/status").answer().await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["process"]["pid"], std::process::id());
    for (part, field) in [
        ("system", "total_memory_mb"),
        ("system", "used_memory_mb"),
        ("process", "memory_rss_mb"),
        ("process", "memory_vms_mb"),
        ("process", "num_threads"),
        ("process", "start_time"),
    ] {
        assert!(body[part][field].as_f64().is_some_and(|number| number > 0.0), "{field}: {body}");
    }
    let (_, threads) = get(&app, "/api/threads").answer().await;
    assert!(threads[0]["count"].as_u64().is_some_and(|count| count > 0), "{threads}");
    app.close().await;
}

#[tokio::test]
async fn the_missing_profiler_is_reported() {
    let app = TestApp::start(0).await;
    assert_snapshot!(get(&app, "/api/profiler/status").shown().await, @r#"
    200
    {
      "status": "ok",
      "enabled": false,
      "message": "there is no profiler in the server; use one of the system, as heaptrack or perf"
    }
    "#);
    for path in ["start", "stop"] {
        let path = format!("/api/profiler/memory/{path}");
        assert_eq!(post(&app, &path, "").answer().await.0, 200);
    }
    app.close().await;
}

#[tokio::test]
async fn a_store_without_connections_has_an_empty_pool() {
    let app = TestApp::builder().slots(0).store(Arc::default()).start().await;
    assert_snapshot!(get(&app, "/api/pool/status").shown().await, @r#"
    200
    {
      "pool_min": 0,
      "pool_max": 0,
      "pool_size": 0,
      "pool_available": 0,
      "requests_waiting": 0,
      "utilization": 0.0,
      "slots_available": 0,
      "status": "ok"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn sqlite_executes_no_statements_and_validates_its_schema() {
    let store = Arc::new(SqliteStore::open(Options::memory()).expect("a store"));
    let app = TestApp::builder().slots(0).over(store).start().await;
    let ask = post(&app, "/api/postgres/execute", r#"{"query":"select 1"}"#);
    assert_snapshot!(ask.shown().await, @r#"
    501
    {
      "error": "this server keeps its data in SQLite, which runs no SQL of others; stop it and open the file with sqlite3, or use a Postgres store",
      "status": 501,
      "code": "not_postgres",
      "detail": "this server keeps its data in SQLite, which runs no SQL of others; stop it and open the file with sqlite3, or use a Postgres store",
      "message": "this server keeps its data in SQLite, which runs no SQL of others; stop it and open the file with sqlite3, or use a Postgres store"
    }
    "#);
    let ask = post(&app, "/api/postgres/execute", "{}");
    assert_snapshot!(ask.shown().await, @r#"
    422
    {
      "error": "say what to run: query, query_base64 or procedure",
      "status": 422,
      "code": "no_statement",
      "detail": "say what to run: query, query_base64 or procedure",
      "message": "say what to run: query, query_base64 or procedure"
    }
    "#);
    assert_snapshot!(post(&app, "/api/db/init", "").shown().await, @r#"
    200
    {
      "status": "ok",
      "message": "the schema is there and up to date",
      "valid": true
    }
    "#);
    let (status, body) = get(&app, "/api/db/validate").answer().await;
    assert_eq!((status, &body["valid"], &body["missing"]), (200, &json!(true), &json!([])));
    let tables = body["tables"].as_array().expect("a list");
    assert!(tables.contains(&"event".into()) && tables.contains(&"command".into()), "{body}");
    app.close().await;
}
