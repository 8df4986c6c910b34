use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::json;

use crate::api::{finished, get, post, register, report, started};

#[tokio::test]
async fn an_unclaimed_command_is_explained() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let why = || get(&app, &format!("/api/executions/{id}/why"));
    assert_snapshot!(why().shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "status": "RUNNING",
      "summary": "step 'start' waits for a worker of pool 'shared' with tool 'python'",
      "waits": [
        {
          "kind": "worker",
          "step": "start",
          "command_id": "[id]",
          "item": null,
          "since": "[time]",
          "until": null,
          "what": "step 'start' waits for a worker of pool 'shared' with tool 'python'",
          "would_move_it": "no worker of pool 'shared' with tool 'python' is registered: start one, or the command stays",
          "pool": "shared",
          "workers": [],
          "worker": null,
          "lease_until": null,
          "child_execution_id": null,
          "child_status": null
        }
      ],
      "more": 0,
      "ended": null
    }
    "#);
    report(&app, id, "start", "command.started").await;
    let (_, body) = why().answer().await;
    assert_eq!(
        (&body["waits"][0]["kind"], &body["waits"][0]["worker"]),
        (&"report".into(), &"w".into())
    );
    app.close().await;
}

const WAITING: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waiting, path: tests/waiting}
workflow:
  - step: start
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: pause}, {step: ask}, {step: call}]}
  - step: pause
    tool: {kind: wait, seconds: 3600}
  - step: ask
    tool: {kind: approval}
  - step: call
    tool: {kind: playbook, path: tests/greet, return_step: end}
";

#[tokio::test]
async fn every_pending_wait_is_explained() {
    let app = TestApp::start(0).await;
    started(&app).await;
    let (status, body) = register(&app, WAITING).await;
    assert_eq!(status, 200, "{body}");
    let (_, body) = post(&app, "/api/execute", r#"{"path":"tests/waiting"}"#).answer().await;
    let id: i64 = body["execution_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    for event in ["command.started", "call.done", "command.completed"] {
        report(&app, id, "start", event).await;
    }
    let (_, body) = get(&app, &format!("/api/executions/{id}/why")).answer().await;
    let waits = body["waits"].as_array().expect("waits");
    let of = |kind: &str| {
        let matching = waits.iter().find(|wait| wait["kind"] == kind);
        matching.unwrap_or_else(|| panic!("no {kind} in {body}"))
    };
    assert!(of("time")["until"].is_string() && of("time")["since"].is_string());
    let how = of("answer")["would_move_it"].as_str().expect("text");
    let command = of("answer")["command_id"].as_str().expect("text");
    assert!(how.starts_with(&format!("POST /api/executions/{id}/answers/{command}")), "{how}");
    assert!(of("child")["child_execution_id"].is_number(), "{body}");
    assert_eq!(waits.len(), 3);
    app.close().await;
}

#[tokio::test]
async fn a_failed_execution_is_explained_by_its_failure() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    report(&app, id, "start", "command.failed").await;
    assert_snapshot!(get(&app, &format!("/api/executions/{id}/why")).shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "status": "FAILED",
      "summary": "step 'start' failed and nothing handled it: tool_error: no",
      "waits": [],
      "more": 0,
      "ended": {
        "what": "step 'start' failed and nothing handled it: tool_error: no",
        "step": "start",
        "kind": "tool_error",
        "message": "no",
        "event_id": "[id number]",
        "seq": 5
      }
    }
    "#);
    app.close().await;

    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let (_, body) = get(&app, &format!("/api/executions/{id}/why")).answer().await;
    assert_eq!(body["summary"], "it completed: nothing was left to do");
    assert_eq!(body["waits"], json!([]));
    let (status, _) = get(&app, "/api/executions/7/why").answer().await;
    assert_eq!(status, 404);
    app.close().await;
}
