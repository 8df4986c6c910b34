use std::sync::Arc;

use insta::assert_snapshot;
use noetl_model::{CommandId, ExecutionId};
use noetl_store::{LogQuery, LogStream};
use noetl_test_app::TestApp;
use noetl_tools::{Options, Shell, ToolRegistry};
use serde_json::{Value, json};

use crate::api::{get, open_command, post, register, report, started};

const PRINTING: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: printing, path: tests/printing}
workflow:
  - step: start
    tool: {kind: shell, command: \"echo one; sleep 0.05; echo two >&2; sleep 0.05; printf 'three'\"}
";

fn texts(body: &Value) -> Vec<(u64, String, String)> {
    let text = |line: &Value, name: &str| line[name].as_str().expect("text").to_owned();
    let lines = body["lines"].as_array().expect("lines");
    let n = |line: &Value| line["n"].as_u64().expect("a number");
    lines.iter().map(|line| (n(line), text(line, "stream"), text(line, "text"))).collect()
}

#[tokio::test]
async fn step_logs_are_stored_while_the_step_runs() {
    let tools = ToolRegistry::default().with(Shell::new(Arc::new(Options::default())));
    let app = TestApp::builder().tools(tools).start().await;
    let (status, body) = register(&app, PRINTING).await;
    assert_eq!(status, 200, "{body}");
    let (_, body) = post(&app, "/api/execute", r#"{"path":"tests/printing"}"#).answer().await;
    let id = body["execution_id"].as_str().expect("an id");
    let answer = get(&app, &format!("/api/executions/{id}/logs?follow=true")).send().await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let followed = answer.text().await.expect("a stream that ends");
    assert!(followed.contains("id: 3"), "{followed}");
    assert!(followed.contains("event: end"), "{followed}");
    let (_, body) = get(&app, &format!("/api/executions/{id}/logs")).answer().await;
    let line = |n, stream: &str, text: &str| (n, stream.to_owned(), text.to_owned());
    let printed = [line(1, "stdout", "one"), line(2, "stderr", "two"), line(3, "stdout", "three")];
    assert_eq!(texts(&body), printed);
    assert_eq!((&body["next_after"], &body["gaps"]), (&3.into(), &json!([])));
    let (_, body) = get(&app, &format!("/api/executions/{id}/logs?after=1&limit=1")).answer().await;
    assert_eq!(texts(&body), printed[1..2]);
    app.close().await;
}

#[tokio::test]
async fn remote_workers_send_step_logs() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let send = |body: Value| post(&app, &format!("/api/executions/{id}/logs"), body.to_string());
    let lines = json!([{"text": "one"}, {"text": "a\nb", "stream": "stderr"}]);
    let name = format!("{id}:start:{command}");
    let body = json!({"command_id": name, "lines": lines});
    assert_snapshot!(send(body).shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "accepted": 2,
      "last": 3
    }
    "#);
    let (_, body) =
        get(&app, &format!("/api/executions/{id}/logs?command={command}")).answer().await;
    let stored_lines: Vec<String> = texts(&body).into_iter().map(|(_, _, text)| text).collect();
    assert_eq!(stored_lines, ["one", "a", "b"]);
    assert_eq!(body["lines"][0]["command_id"], command.to_string());
    let (_, body) = get(&app, &format!("/api/executions/{id}/logs?command=7")).answer().await;
    assert_eq!(body["lines"], json!([]));
    app.close().await;
}

#[tokio::test]
async fn invalid_log_lines_are_refused() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let send =
        |id: i64, body: Value| post(&app, &format!("/api/executions/{id}/logs"), body.to_string());
    let one = json!([{"text": "one"}]);
    let unknown = json!({"command_id": "4711", "lines": one});
    assert_snapshot!(send(id, unknown).shown().await, @r#"
    422
    {
      "error": "execution [id] has no command 4711",
      "status": 422,
      "code": "command_not_found",
      "detail": "execution [id] has no command 4711",
      "message": "execution [id] has no command 4711"
    }
    "#);
    let stream = json!({"command_id": command.to_string(), "lines": [{"text": "", "stream": "x"}]});
    assert_snapshot!(send(id, stream).shown().await, @r#"
    422
    {
      "error": "lines[0].stream must be stdout or stderr, not x",
      "status": 422,
      "code": "invalid_stream",
      "detail": "lines[0].stream must be stdout or stderr, not x",
      "message": "lines[0].stream must be stdout or stderr, not x"
    }
    "#);
    for (id, body, expected, code) in [
        (7, json!({"command_id": "1", "lines": one}), 404, "execution_not_found"),
        (id, json!({"command_id": "me", "lines": one}), 422, "invalid_command"),
        (id, json!({"lines": one}), 422, "invalid_body"),
        (
            id,
            json!({"command_id": "1", "lines": vec![json!({"text": ""}); 1001]}),
            422,
            "too_many_lines",
        ),
        (id, json!({"command_id": "1", "lines": [{"text": "a\u{0}"}]}), 422, "nul_character"),
    ] {
        let (status, answer) = send(id, body).answer().await;
        assert_eq!((status, &answer["code"]), (expected, &code.into()), "{answer}");
    }
    for (query, code) in [("follow=maybe", 400), ("command=x", 400), ("limit=-1", 400)] {
        let path = format!("/api/executions/{id}/logs?{query}");
        assert_eq!(get(&app, &path).answer().await.0, code, "{query}");
    }
    assert_eq!(get(&app, "/api/executions/7/logs").answer().await.0, 404);
    let (_, body) = get(&app, &format!("/api/executions/{id}/logs")).answer().await;
    assert_eq!(body["lines"], json!([]), "nothing of it was kept");
    app.close().await;
}

#[tokio::test]
async fn new_log_lines_wake_followers() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let path = format!("/api/executions/{id}/logs");
    let mut answer = get(&app, &format!("{path}?follow=1")).send().await;
    let body = json!({"command_id": command.to_string(), "lines": [{"text": "hello"}]});
    post(&app, &path, body.to_string()).answer().await;
    let mut text = String::new();
    while !text.contains("hello") {
        let chunk = answer.chunk().await.expect("a stream that stays").expect("more of it");
        text.push_str(std::str::from_utf8(&chunk).expect("text"));
    }
    report(&app, id, "start", "command.failed").await;
    while let Some(chunk) = answer.chunk().await.expect("a stream") {
        text.push_str(std::str::from_utf8(&chunk).expect("text"));
    }
    assert!(text.contains("event: end") && text.contains(r#""status":"FAILED""#), "{text}");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_are_stored_redacted_on_every_store() {
    crate::stores::on_every_store(async |app| {
        let secret = json!({"name": "db", "type": "postgres", "data": {"password": "open sesame"}});
        let (status, body) = post(app, "/api/credentials", secret.to_string()).answer().await;
        assert_eq!(status, 200, "{body}");
        // What was handed out is known from then on.
        get(app, "/api/credentials/db?include_data=true").answer().await;
        let id = started(app).await;
        let command = open_command(app, id).await;
        let path = format!("/api/executions/{id}/logs");
        let line = json!({"text": "it is open sesame, or «secret:db.password»"});
        let body = json!({"command_id": command.to_string(), "lines": [line]});
        let (status, body) = post(app, &path, body.to_string()).answer().await;
        assert_eq!(status, 200, "{body}");
        let (_, body) = get(app, &path).answer().await;
        let text = body["lines"][0]["text"].as_str().expect("a line");
        assert!(!text.contains("sesame"), "{text}");
        assert_eq!(text.matches("«secret:").count(), 1, "a mark is not given away: {text}");
    })
    .await;
}

#[tokio::test]
async fn log_lines_dropped_over_the_limit_are_counted() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let print = app.control.journal.logs.printer(ExecutionId::new(id), CommandId::new(command));
    // This thread runs nothing else meanwhile, so nothing is written before all lines are printed.
    (0..5000).for_each(|_| print(LogStream::Out, "two\nlines\n"));
    assert!(app.control.journal.logs.dropped() > 0);
    app.control.journal.logs.flush().await;
    let (_, body) = get(&app, &format!("/api/executions/{id}/logs?limit=5000")).answer().await;
    let gap = &body["gaps"][0];
    assert_eq!(gap["command_id"], command.to_string(), "{body}");
    let counted = gap["lines"].as_u64().expect("a count");
    let lines = app
        .control
        .journal
        .logs
        .read(ExecutionId::new(id), LogQuery { command: None, after: 0, limit: usize::MAX });
    let lines = lines.await.expect("a read").len() as u64;
    assert_eq!(counted + lines, 10_000, "each is kept or counted");
    assert!(counted >= app.control.journal.logs.dropped() * 2, "{counted}");
    app.close().await;
}

#[tokio::test]
async fn step_logs_reported_by_a_published_worker_are_stored() {
    let app = TestApp::start(0).await;
    let (status, body) = register(&app, PRINTING).await;
    assert_eq!(status, 200, "{body}");
    let (_, body) = post(&app, "/api/execute", r#"{"path":"tests/printing"}"#).answer().await;
    let id: i64 = body["execution_id"].as_str().expect("an id").parse().expect("a number");
    let command = open_command(&app, id).await;
    let claim = format!("/api/commands/{command}/claim");
    assert_eq!(post(&app, &claim, r#"{"worker_id":"w"}"#).answer().await.0, 200);
    let answer = json!({
        "status": "success", "data": {"exit_code": 0}, "stdout": "one\ntwo\n", "stderr": "three",
        "exit_code": 0, "duration_ms": 148,
    });
    let done = json!({
        "execution_id": id, "step": "start", "event_type": "call.done", "worker_id": "w",
        "payload": {
            "command_id": format!("{id}:start:{command}"),
            "result": {"status": "success", "context": answer},
        },
    });
    // The second time, the answer is known.
    for _ in 0..2 {
        assert_eq!(post(&app, "/api/events", done.to_string()).answer().await.0, 200);
    }
    let (_, body) = get(&app, &format!("/api/executions/{id}/logs")).answer().await;
    let line = |n, stream: &str, text: &str| (n, stream.to_owned(), text.to_owned());
    let printed = [line(1, "stdout", "one"), line(2, "stdout", "two"), line(3, "stderr", "three")];
    assert_eq!(texts(&body), printed);
    let (_, log) = get(&app, &format!("/api/executions/{id}/events")).answer().await;
    let events = log["events"].as_array().expect("events");
    let is_done = |event: &&Value| event["event_type"] == "call.done";
    let meta = &events.iter().find(is_done).expect("an answer")["meta"];
    assert_eq!((&meta["exit_code"], &meta["duration_ms"]), (&json!(0), &json!(148)), "{meta}");
    app.close().await;
}
