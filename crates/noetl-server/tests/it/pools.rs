use insta::assert_snapshot;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::json;

use crate::api::{ask, get, post};

#[tokio::test]
async fn a_worker_registers_sends_heartbeats_and_deregisters() {
    let app = TestApp::start(0).await;
    let body = json!({
        "name": "w-1", "component_type": "worker_pool", "status": "ready", "hostname": "h",
        "runtime": {"kind": "rust", "worker_public_key": "k"}, "labels": {"pool_name": "gpu"},
    });
    let register = || post(&app, "/api/worker/pool/register", body.to_string());
    assert_snapshot!(register().shown().await, @r#"
    200
    {
      "runtime_id": "[id number]",
      "name": "w-1",
      "kind": "worker_pool",
      "uri": null,
      "status": "ready",
      "labels": {
        "pool_name": "gpu"
      },
      "capabilities": null,
      "capacity": null,
      "runtime": {
        "kind": "rust",
        "worker_public_key": "k"
      },
      "heartbeat": "[time]",
      "created_at": "[time]",
      "updated_at": "[time]"
    }
    "#);
    let (_, first) = register().answer().await;
    let other = body.to_string().replace("\"k\"", "\"other\"");
    let (_, again) = post(&app, "/api/worker/pool/register", other).answer().await;
    assert_eq!(first["runtime_id"], again["runtime_id"]);
    assert_eq!(again["runtime"]["worker_public_key"], "other");
    let beat = post(&app, "/api/worker/pool/heartbeat", r#"{"name":"w-1"}"#);
    assert_snapshot!(beat.shown().await, @r#"
    200
    {
      "status": "ok",
      "message": "Heartbeat recorded"
    }
    "#);
    let path = "/api/worker/pool/deregister";
    let gone = post(&app, path, r#"{"name":"w-1","component_type":"worker_pool"}"#);
    assert_snapshot!(gone.shown().await, @r#"
    200
    {
      "status": "ok",
      "message": "Runtime worker_pool w-1 deregistered"
    }
    "#);
    let gone = ask(&app, Method::DELETE, path)
        .header("content-type", "application/json")
        .body(r#"{"name":"w-1"}"#);
    assert_snapshot!(gone.shown().await, @r#"
    404
    {
      "error": "Runtime not found: worker_pool w-1",
      "status": 404,
      "code": "runtime_not_found",
      "detail": "Runtime not found: worker_pool w-1",
      "message": "Runtime not found: worker_pool w-1"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_heartbeat_registers_an_unknown_worker() {
    let app = TestApp::start(0).await;
    let beat = post(&app, "/api/worker/pool/heartbeat", r#"{"name":"lost"}"#);
    assert_eq!(beat.answer().await.0, 200);
    let (_, listed) = get(&app, "/api/worker/pools").answer().await;
    assert_eq!((&listed[0]["name"], &listed[0]["status"]), (&"lost".into(), &"ready".into()));
    app.close().await;
}

#[tokio::test]
async fn runtimes_are_filtered_by_kind_status_and_part_of_the_name() {
    let app = TestApp::start(0).await;
    for (name, kind, status) in [
        ("gpu-1", "worker_pool", "ready"),
        ("gpu-2", "worker_pool", "draining"),
        ("cpu-1", "worker_pool", "ready"),
        ("gpu-api", "server_api", "active"),
    ] {
        let body = json!({"name": name, "kind": kind, "status": status}).to_string();
        assert_eq!(post(&app, "/api/worker/pool/register", body).answer().await.0, 200);
    }
    let names = async |query: &str| {
        let (status, body) = get(&app, &format!("/api/worker/pools{query}")).answer().await;
        assert_eq!(status, 200, "{body}");
        let listed = body.as_array().expect("a list").clone();
        listed.iter().map(|row| row["name"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["cpu-1", "gpu-1", "gpu-2"]);
    assert_eq!(names("?name=gpu&status=ready").await, ["gpu-1"]);
    assert_eq!(names("?name=GPU").await, [""; 0]);
    assert_eq!(names("?kind=server_api").await, ["gpu-api"]);
    assert_snapshot!(get(&app, "/api/worker/pools?kind=x").shown().await, @r#"
    422
    {
      "error": "kind must be worker_pool, server_api or broker, not 'x'",
      "status": 422,
      "code": "invalid_kind",
      "detail": "kind must be worker_pool, server_api or broker, not 'x'",
      "message": "kind must be worker_pool, server_api or broker, not 'x'"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_runtime_requires_a_valid_kind_and_name() {
    let app = TestApp::start(0).await;
    let mut messages = Vec::new();
    for body in [
        json!({"name": "w", "kind": "toaster"}),
        json!({"name": "  "}),
        json!({"name": "local:machine/1:1"}),
        json!({"name": "w".repeat(201)}),
        json!({"kind": "worker_pool"}),
        json!({"name": "w", "capacity": "many"}),
    ] {
        for path in ["register", "heartbeat"] {
            let path = format!("/api/worker/pool/{path}");
            let (status, answer) = post(&app, &path, body.to_string()).answer().await;
            messages.push(format!("{status} {}", answer["code"]));
        }
    }
    assert_snapshot!(messages.join("\n"), @r#"
    422 "invalid_kind"
    422 "invalid_kind"
    422 "invalid_worker"
    422 "invalid_worker"
    422 "invalid_worker"
    422 "invalid_worker"
    422 "invalid_worker"
    422 "invalid_worker"
    422 "invalid_body"
    422 "invalid_body"
    422 "invalid_body"
    200 null
    "#);
    assert_eq!(get(&app, "/api/worker/pools").answer().await.1.as_array().map(Vec::len), Some(1));
    app.close().await;
}
