use futures::future::join_all;
use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{get, open_command, post, started};

#[tokio::test]
async fn an_unknown_command_is_a_conflict_to_claim_and_not_found_to_read() {
    let app = TestApp::start(0).await;
    assert_snapshot!(get(&app, "/api/commands/7").shown().await, @r#"
    404
    {
      "error": "command not found: 7",
      "status": 404,
      "code": "command_not_found",
      "detail": "command not found: 7",
      "message": "command not found: 7"
    }
    "#);
    let claim = post(&app, "/api/commands/7/claim", r#"{"worker_id":"w"}"#);
    assert_snapshot!(claim.shown().await, @r#"
    409
    {
      "error": "command not found: 7",
      "status": 409,
      "code": "command_not_found",
      "detail": "command not found: 7",
      "message": "command not found: 7"
    }
    "#);
    assert_eq!(post(&app, "/api/commands/7/claim", r#"{"worker_id":""}"#).answer().await.0, 422);
    assert_eq!(post(&app, "/api/commands/7/claim", "{}").answer().await.0, 422);
    app.close().await;
}

#[tokio::test]
async fn a_command_is_claimed_by_one_worker() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let path = format!("/api/commands/{command}");
    let claim = |worker: &str| {
        post(&app, &format!("{path}/claim"), json!({ "worker_id": worker }).to_string())
    };
    assert_snapshot!(get(&app, &path).shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "node_id": "start",
      "node_name": "start",
      "action": "python",
      "context": {
        "tool_config": {
          "code": "result = message"
        },
        "args": {
          "message": "Hello, world!"
        },
        "render_context": {}
      },
      "meta": {
        "command_id": "[id]:start:[id]",
        "step": "start",
        "tool_kind": "python",
        "attempt": 1,
        "max_attempts": 3,
        "attempts": 3,
        "execution_id": "[id]",
        "catalog_id": "[id]",
        "actionable": true,
        "trace": {
          "traceparent": "[span]"
        }
      }
    }
    "#);
    assert_snapshot!(claim("one").shown().await, @r#"
    200
    {
      "status": "ok",
      "event_id": "[id number]",
      "execution_id": "[id number]",
      "node_id": "start",
      "node_name": "start",
      "action": "python",
      "context": {
        "tool_config": {
          "code": "result = message"
        },
        "args": {
          "message": "Hello, world!"
        },
        "render_context": {}
      },
      "meta": {
        "command_id": "[id]:start:[id]",
        "step": "start",
        "tool_kind": "python",
        "attempt": 1,
        "max_attempts": 3,
        "attempts": 3,
        "execution_id": "[id]",
        "catalog_id": "[id]",
        "actionable": true,
        "trace": {
          "traceparent": "[span]"
        }
      }
    }
    "#);
    assert_eq!(claim("one").answer().await.0, 200, "a repeat is harmless");
    assert_snapshot!(claim("two").shown().await, @r#"
    409
    {
      "error": "Command already claimed by one",
      "status": 409,
      "code": "command_claimed",
      "detail": "Command already claimed by one",
      "message": "Command already claimed by one"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_remote_worker_completes_an_execution() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let say = async |event_type: &str, status: &str, command: i64, mut context: Value| {
        context["command_id"] = json!(command);
        let body = json!({
            "execution_id": id, "event_type": event_type, "step": "start", "status": status,
            "context": context, "worker_id": "w", "meta": {"attempts": 0},
        });
        let (code, answer) = post(&app, "/api/events", body.to_string()).answer().await;
        assert_eq!(code, 200, "{event_type}: {answer}");
    };
    for _ in ["start", "end"] {
        let command = open_command(&app, id).await;
        let claim = format!("/api/commands/{command}/claim");
        assert_eq!(post(&app, &claim, r#"{"worker_id":"w"}"#).answer().await.0, 200);
        say("command.started", "STARTED", command, json!({})).await;
        let result = json!({"status": "success", "context": {"data": {"message": "hi"}}});
        say("call.done", "COMPLETED", command, json!({"call_index": 0, "result": result})).await;
        say("command.completed", "success", command, json!({"status": "success"})).await;
        let (code, over) = post(&app, &claim, r#"{"worker_id":"w"}"#).answer().await;
        assert_eq!((code, &over["code"]), (409, &"command_finished".into()), "it is over");
    }
    let (_, status) = get(&app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!(status["status"], "COMPLETED", "{status}");
    app.close().await;
}

#[tokio::test]
async fn commands_of_a_cancelled_execution_cannot_be_claimed() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    assert_eq!(post(&app, &format!("/api/executions/{id}/cancel"), "").answer().await.0, 200);
    let claim = post(&app, &format!("/api/commands/{command}/claim"), r#"{"worker_id":"w"}"#);
    assert_snapshot!(claim.shown().await, @r#"
    409
    {
      "error": "Execution has been cancelled",
      "status": 409,
      "code": "execution_cancelled",
      "detail": "Execution has been cancelled",
      "message": "Execution has been cancelled"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn one_of_two_hundred_concurrent_claims_succeeds() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let path = format!("/api/commands/{}/claim", open_command(&app, id).await);
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let claims = (0..200).map(|number| {
        let body = json!({ "worker_id": format!("w{number}") }).to_string();
        http.post(format!("{}{path}", app.base))
            .header("content-type", "application/json")
            .body(body)
            .send()
    });
    let answers = join_all(claims).await;
    let mut codes: Vec<u16> =
        answers.into_iter().map(|answer| answer.expect("an answer").status().as_u16()).collect();
    drop(http);
    codes.sort_unstable();
    assert_eq!(codes[0], 200);
    assert_eq!(codes[1..], [409; 199]);
    let rows = app.read_log(noetl_model::ExecutionId::new(id)).await;
    let claimed = rows.iter().filter(|row| row.event_type.as_deref() == Some("command.claimed"));
    assert_eq!(claimed.count(), 1);
    app.close().await;
}

#[tokio::test]
async fn an_event_sent_a_hundred_times_is_stored_once() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let claim = format!("/api/commands/{command}/claim");
    assert_eq!(post(&app, &claim, r#"{"worker_id":"w"}"#).answer().await.0, 200);
    let event = command + 1_000_000;
    let body = json!({
        "execution_id": id, "event_id": event, "event_type": "command.started", "step": "start",
        "context": {"command_id": command}, "worker_id": "w",
    });
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let requests = (0..100).map(|_| {
        http.post(format!("{}/api/events", app.base))
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
    });
    for answer in join_all(requests).await {
        let answer: Value = answer.expect("an answer").json().await.expect("JSON");
        assert_eq!(answer["event_id"], json!(event), "{answer}");
    }
    drop(http);
    let rows = app.read_log(noetl_model::ExecutionId::new(id)).await;
    assert_eq!(rows.iter().filter(|row| row.event_id.get() == event).count(), 1);
    let begun = rows.iter().filter(|row| row.event_type.as_deref() == Some("command.started"));
    assert_eq!(begun.count(), 1);
    app.close().await;
}
