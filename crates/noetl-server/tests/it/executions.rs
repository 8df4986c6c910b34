use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{GREET, finished, get, open_command, post, register, started};

#[tokio::test]
async fn an_execution_is_started_by_path_or_by_id() {
    let app = TestApp::start(2).await;
    let (_, entry) = register(&app, GREET).await;
    let execute = |body: String| post(&app, "/api/execute", body);
    assert_snapshot!(execute(r#"{"path":"tests/greet"}"#.to_owned()).shown().await, @r#"
    200
    {
      "execution_id": "[id]",
      "status": "started",
      "commands_generated": 1
    }
    "#);
    let id = &entry["catalog_id"];
    for body in [
        format!(r#"{{"catalog_id":{id}}}"#),
        format!(r#"{{"catalog_id":{}}}"#, id.as_str().expect("text")),
        r#"{"path":"tests/greet","version":1,"workload":{"who":"Ada"}}"#.to_owned(),
        r#"{"path":"tests/greet","version":"1","payload":{}}"#.to_owned(),
        r#"{"path":"tests/greet","version":"latest","resource_kind":"playbook"}"#.to_owned(),
        r#"{"path":"tests/greet","parent_execution_id":"7","trace":{"traceparent":"00"}}"#
            .to_owned(),
    ] {
        let (status, answer) = execute(body.clone()).answer().await;
        assert_eq!((status, &answer["status"]), (200, &"started".into()), "{body}: {answer}");
    }
    app.close().await;
}

#[tokio::test]
async fn failed_starts_are_reported() {
    let app = TestApp::start(0).await;
    let execute = |body: &'static str| post(&app, "/api/execute", body).shown();
    assert_snapshot!(execute("{}").await, @r#"
    422
    {
      "error": "name the playbook by path or catalog_id",
      "status": 422,
      "code": "playbook_unnamed",
      "detail": "name the playbook by path or catalog_id",
      "message": "name the playbook by path or catalog_id"
    }
    "#);
    assert_snapshot!(execute(r#"{"path":"nope"}"#).await, @r#"
    404
    {
      "error": "Playbook not found: nope",
      "status": 404,
      "code": "playbook_not_found",
      "detail": "Playbook not found: nope",
      "message": "Playbook not found: nope"
    }
    "#);
    assert_snapshot!(execute(r#"{"path":"nope","version":3}"#).await, @r#"
    404
    {
      "error": "Playbook not found: nope version 3",
      "status": 404,
      "code": "playbook_not_found",
      "detail": "Playbook not found: nope version 3",
      "message": "Playbook not found: nope version 3"
    }
    "#);
    assert_snapshot!(execute(r#"{"catalog_id":5}"#).await, @r#"
    404
    {
      "error": "Catalog entry not found: 5",
      "status": 404,
      "code": "playbook_not_found",
      "detail": "Catalog entry not found: 5",
      "message": "Catalog entry not found: 5"
    }
    "#);
    assert_snapshot!(execute(r#"{"path":"a","payload":null}"#).await, @r#"
    422
    {
      "error": "Failed to deserialize the JSON body into the target type: payload: invalid type: null, expected a map at line 1 column 26",
      "status": 422,
      "code": "invalid_body",
      "detail": "Failed to deserialize the JSON body into the target type: payload: invalid type: null, expected a map at line 1 column 26",
      "message": "Failed to deserialize the JSON body into the target type: payload: invalid type: null, expected a map at line 1 column 26"
    }
    "#);
    assert_snapshot!(execute(r#"{"path":"a","payload":{},"workload":{}}"#).await, @r#"
    422
    {
      "error": "Failed to deserialize the JSON body into the target type: duplicate field `payload` at line 1 column 35",
      "status": 422,
      "code": "invalid_body",
      "detail": "Failed to deserialize the JSON body into the target type: duplicate field `payload` at line 1 column 35",
      "message": "Failed to deserialize the JSON body into the target type: duplicate field `payload` at line 1 column 35"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_finished_execution_shows_its_log_its_workload_and_its_result() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let (status, body) = get(&app, &format!("/api/executions/{id}")).answer().await;
    assert_eq!(status, 200);
    assert_eq!(body["execution_id"], id, "a number");
    assert_eq!(body["status"], "COMPLETED");
    assert_eq!(body["workload"]["who"], "world");
    assert_eq!(body["result"]["said"], "Hello, world!");
    let events = body["events"].as_array().expect("events");
    let types: Vec<&str> = events.iter().filter_map(|event| event["event_type"].as_str()).collect();
    assert_snapshot!(types.join("\n"), @r#"
    playbook_started
    step.enter
    command.issued
    command.claimed
    call.done
    command.completed
    step.exit
    step.enter
    command.issued
    command.claimed
    call.done
    command.completed
    step.exit
    playbook.completed
    "#);
    let command = events.iter().find(|event| event["event_type"] == "command.issued");
    let name = command.expect("a command")["meta"]["command_id"].as_str().expect("text");
    assert!(name.starts_with(&format!("{id}:start:")), "{name}");
    app.close().await;
}

#[tokio::test]
async fn events_have_the_fields_published_clients_read() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let (_, body) = get(&app, &format!("/api/executions/{id}")).answer().await;
    let first = |event_type: &str| -> Value {
        let events = body["events"].as_array().expect("events");
        events.iter().find(|event| event["event_type"] == event_type).expect(event_type).clone()
    };

    let began = first("playbook_started");
    assert_eq!(
        (&began["node_id"], &began["node_name"]),
        (&"playbook".into(), &"tests/greet".into())
    );
    let trace = &began["meta"]["trace"];
    let parent = trace["traceparent"].as_str().expect("a trace");
    let emitted = json!({
        "emitter": "control_plane", "emitted_at": began["created_at"], "trace": trace,
    });
    assert_eq!(began["meta"], emitted);
    assert_eq!(first("playbook.completed")["node_id"], "playbook");
    assert_eq!(first("step.enter")["node_id"], "start");

    let issued = first("command.issued");
    let command = format!("{id}:start:{}", issued["event_id"]);
    let span = format!("{}-{:016x}-01", &parent[..35], issued["event_id"].as_i64().expect("an id"));
    assert_eq!(
        issued["meta"],
        json!({
            "generation": 1, "attempt": 1, "command_id": command, "step": "start",
            "tool_kind": "python", "max_attempts": 3, "execution_id": id.to_string(),
            "catalog_id": body["catalog_id"].to_string(), "actionable": true,
            "trace": {"traceparent": span},
        })
    );
    let report = json!({
        "tool_config": {"code": "result = message"}, "args": {"message": "Hello, world!"},
        "render_context": {},
    });
    assert_eq!(issued["context"], report);

    let claimed = first("command.claimed");
    let worker = &claimed["worker_id"];
    assert_eq!(
        claimed["result"],
        json!({"status": "RUNNING", "context": {"command_id": command, "worker_id": worker}})
    );
    assert_eq!(
        claimed["meta"],
        json!({
            "command_id": command, "worker_id": worker, "actionable": false, "informative": true,
        })
    );
    let done = first("call.done");
    let data = &done["result"]["context"]["data"];
    assert!(!data.is_null(), "{done}");
    assert_eq!(
        done["result"],
        json!({"status": "COMPLETED", "context": {
            "command_id": command, "call_index": 0, "data": data,
            "result": {"status": "success", "context": {"data": data}},
        }})
    );
    let completed = first("command.completed");
    assert_eq!(completed["status"], "COMPLETED");
    assert_eq!(
        completed["result"],
        json!({"status": "COMPLETED", "context": {"command_id": command, "status": "success"}})
    );
    app.close().await;
}

#[tokio::test]
async fn a_failed_command_is_shown_with_its_id_and_its_failure() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let name = format!("{id}:start:{command}");
    for event_type in ["command.started", "call.error", "command.failed"] {
        let event = json!({
            "execution_id": id, "step": "start", "event_type": event_type, "worker_id": "w",
            "payload": {"command_id": name, "error": {"kind": "tool_error", "message": "no"}},
        });
        assert_eq!(post(&app, "/api/events", event.to_string()).answer().await.0, 200);
    }
    let (_, body) = get(&app, &format!("/api/executions/{id}")).answer().await;
    let mut seen = 0;
    for event in body["events"].as_array().expect("events") {
        let context = &event["result"]["context"];
        match event["event_type"].as_str() {
            Some("command.started") => assert_eq!(*context, json!({ "command_id": name })),
            Some("call.error" | "command.failed") => {
                assert_eq!(context["command_id"], name.as_str(), "{event}");
                assert!(context["error"]["message"].is_string(), "{event}");
            }
            _ => continue,
        }
        seen += 1;
    }
    assert!(seen >= 3, "{body}");
    app.close().await;
}

#[tokio::test]
async fn a_status_has_the_fields_workers_and_the_cli_read() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    assert_snapshot!(get(&app, &format!("/api/executions/{id}/status")).shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "status": "COMPLETED",
      "current_step": "end",
      "progress": {
        "total_steps": 2,
        "completed_steps": 2,
        "running_steps": 0,
        "failed_steps": 0
      },
      "is_cancelled": false,
      "completed": true,
      "failed": false,
      "completed_steps": [
        "start",
        "end"
      ],
      "error": null,
      "start_time": "[time]",
      "end_time": "[time]",
      "duration_seconds": "[seconds]",
      "duration_human": "[length]"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn executions_are_listed_newest_first_and_filtered() {
    let app = TestApp::start(2).await;
    let first = finished(&app).await;
    let second = finished(&app).await;
    let (_, all) = get(&app, "/api/executions").answer().await;
    assert_eq!(all[0]["execution_id"], second);
    assert_eq!(all[1]["execution_id"], first);
    let count = async |query: &str| {
        let (_, listed) = get(&app, &format!("/api/executions?{query}")).answer().await;
        listed.as_array().map(Vec::len)
    };
    assert_eq!(count("limit=1").await, Some(1));
    assert_eq!(count("offset=1").await, Some(1));
    assert_eq!(count("status=completed").await, Some(2));
    assert_eq!(count("status=FAILED").await, Some(0));
    assert_eq!(count("path=GREET").await, Some(2));
    assert_eq!(count("path=nothing").await, Some(0));
    assert_eq!(count("text=greet&status=COMPLETED").await, Some(2));
    assert_eq!(count(&format!("text={first}")).await, Some(1));
    let began = all[0]["started_at"].as_str().expect("a time");
    assert_eq!(count(&format!("started_after={began}")).await, Some(1));
    assert_eq!(count(&format!("started_before={began}")).await, Some(1));
    assert_eq!(count("started_after=2099-01-01T00:00:00+01:00").await, Some(0));
    let (status, body) = get(&app, "/api/executions?started_after=soon").answer().await;
    assert_eq!((status, &body["code"]), (400, &"invalid_query".into()), "{body}");
    app.close().await;
}

#[tokio::test]
async fn browsers_get_ids_as_text() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let path = format!("/api/executions/{id}");
    let (_, plain) = get(&app, &path).answer().await;
    assert!(plain["execution_id"].is_number() && plain["events"][0]["event_id"].is_number());
    for ask in [
        get(&app, &path).header("origin", "http://localhost:3000"),
        get(&app, &path).header("x-session-token", "t"),
        get(&app, &format!("{path}?ids=string")),
    ] {
        let (_, body) = ask.answer().await;
        assert_eq!(body["execution_id"], id.to_string());
        assert!(body["events"][0]["event_id"].is_string());
        assert!(body["catalog_id"].is_string());
    }
    app.close().await;
}

#[tokio::test]
async fn an_event_log_is_read_in_pages() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let path = format!("/api/executions/{id}");
    let (_, all) = get(&app, &format!("{path}/events")).answer().await;
    let total = all["total_events"].as_u64().expect("a number");
    assert_eq!(all["next_after"], total);
    let mut seen = Vec::new();
    let mut after = 0;
    while after < total {
        let (_, part) = get(&app, &format!("{path}/events?after={after}&limit=3")).answer().await;
        let events = part["events"].as_array().expect("events");
        seen.extend(events.iter().filter_map(|event| event["seq"].as_u64()));
        after = part["next_after"].as_u64().expect("a number");
    }
    assert_eq!(seen, (1..=total).collect::<Vec<_>>());

    let (_, page) = get(&app, &format!("{path}?page=1&page_size=4")).answer().await;
    assert_eq!(page["events"][0]["seq"], total, "newest first");
    assert_eq!(page["pagination"]["total_events"], total);
    assert_eq!(page["pagination"]["has_next"], true);
    let (_, tail) = get(&app, &format!("{path}?after_seq={}", total - 1)).answer().await;
    assert_eq!(tail["events"].as_array().map(Vec::len), Some(1));
    app.close().await;
}

#[tokio::test]
async fn the_execution_detail_contains_every_event() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let events: Vec<Value> = (0..2500)
        .map(|n| json!({"step": "start", "event_type": "note", "payload": {"n": n}}))
        .collect();
    let batch = json!({"execution_id": id, "events": events}).to_string();
    let (status, reply) = post(&app, "/api/events/batch", batch).answer().await;
    assert_eq!((status, reply["event_ids"].as_array().map(Vec::len)), (200, Some(2500)));
    let (_, detail) = get(&app, &format!("/api/executions/{id}")).answer().await;
    let shown = detail["events"].as_array().expect("events");
    let seqs: Vec<u64> = shown.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=2503).collect::<Vec<_>>());
    assert_eq!((detail.get("truncated"), detail.get("pagination")), (None, None));
    assert_eq!(detail["event_count"], 2503);
    let since = &shown[2501]["event_id"];
    let path = format!("/api/executions/{id}?since_event_id={since}&event_type=note");
    let (_, rest) = get(&app, &path).answer().await;
    assert_eq!(rest["events"].as_array().map(Vec::len), Some(1), "{rest}");
    let path = format!("/api/executions/{id}?since_event_id={}", shown[2502]["event_id"]);
    assert_eq!(get(&app, &path).answer().await.1["events"], json!([]));
    let (_, page) = get(&app, &format!("/api/executions/{id}?page=1&page_size=2")).answer().await;
    assert_eq!(page["events"][0]["seq"], 2503);
    assert_eq!(page["pagination"]["total_events"], 2503);
    app.close().await;
}

#[tokio::test]
async fn a_second_cancel_is_refused() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let cancel = || post(&app, &format!("/api/executions/{id}/cancel"), r#"{"reason":"enough"}"#);
    let check = || get(&app, &format!("/api/executions/{id}/cancellation-check"));
    assert_eq!(check().answer().await.1["is_cancelled"], false);
    assert_snapshot!(cancel().shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "status": "cancelled",
      "message": "Execution cancellation requested",
      "cancelled_executions": [
        "[id]"
      ]
    }
    "#);
    assert_snapshot!(cancel().shown().await, @r#"
    422
    {
      "error": "Cannot cancel execution in CANCELLED state",
      "status": 422,
      "code": "already_finished",
      "detail": "Cannot cancel execution in CANCELLED state",
      "message": "Cannot cancel execution in CANCELLED state"
    }
    "#);
    assert_snapshot!(check().shown().await, @r#"
    200
    {
      "execution_id": "[id number]",
      "is_cancelled": true
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_finished_execution_cannot_be_cancelled() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let (status, body) = post(&app, &format!("/api/executions/{id}/cancel"), "").answer().await;
    assert_eq!(status, 422);
    assert_eq!(body["error"], "Cannot cancel execution in COMPLETED state");
    app.close().await;
}

#[tokio::test]
async fn every_route_reports_an_unknown_execution() {
    let app = TestApp::start(0).await;
    for path in ["/api/executions/7", "/api/executions/7/status", "/api/executions/7/events"] {
        let (status, body) = get(&app, path).answer().await;
        assert_eq!((status, &body["code"]), (404, &"execution_not_found".into()), "{path}");
        assert_eq!(body["error"], "Execution not found: 7", "{path}");
    }
    assert_snapshot!(post(&app, "/api/executions/7/cancel", "").shown().await, @r#"
    404
    {
      "error": "Execution not found: 7",
      "status": 404,
      "code": "execution_not_found",
      "detail": "Execution not found: 7",
      "message": "Execution not found: 7"
    }
    "#);
    assert_snapshot!(get(&app, "/api/executions/7/cancellation-check").shown().await, @r#"
    200
    {
      "execution_id": 7,
      "is_cancelled": false
    }
    "#);
    app.close().await;
}
