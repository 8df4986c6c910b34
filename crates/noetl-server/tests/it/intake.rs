use insta::assert_snapshot;
use noetl_model::{ExecutionId, Seq, Tenant};
use serde_json::{Value, json};

use crate::api::{get, get_as_system, open_command, post, post_as_system, started, system_app};

const PROJECT: &str = "/api/internal/events/project";
const MATERIALIZE: &str = "/api/internal/events/materialize";

/// A row of the stream with everything in it.
fn whole(event: i64) -> Value {
    json!({
        "event_id": event, "execution_id": 77, "catalog_id": 5, "parent_event_id": 1,
        "prev_event_id": 2, "parent_execution_id": 3, "event_type": "call.done", "node_id": "a:1",
        "node_name": "a", "node_type": "python", "status": "COMPLETED", "duration": 0.5,
        "context": {"k": 1}, "result": {"status": "COMPLETED", "context": {"n": 1}},
        "meta": {"attempt": 1}, "error": null, "stack_trace": "here", "worker_id": "w-1",
        "command_id": 4, "stage_id": 8, "frame_id": 9, "trace_component": {"trace": ["x"]},
        "tenant_id": "default", "organization_id": "default",
        "created_at": "2026-01-31T12:00:00.250+02:00", "current_index": null,
    })
}

#[tokio::test]
async fn rows_of_another_server_are_imported_with_every_column() {
    let app = system_app().await;
    let body = json!({"events": [whole(10), whole(11), whole(10)]}).to_string();
    assert_snapshot!(post_as_system(&app, PROJECT, body.clone()).shown().await, @r#"
    200
    {
      "projected": 2,
      "duplicates": 1
    }
    "#);
    assert_eq!(
        post_as_system(&app, PROJECT, body).answer().await.1,
        json!({"projected": 0, "duplicates": 3})
    );
    let (status, log) = get(&app, "/api/executions/77/events").answer().await;
    assert_eq!(status, 200);
    let mut first = log["events"][0].clone();
    assert_eq!(first["created_at"], "2026-01-31T10:00:00.25Z");
    first["created_at"].take();
    first["timestamp"].take();
    assert_snapshot!(crate::api::shown(status, first), @r#"
    200
    {
      "execution_id": 77,
      "catalog_id": 5,
      "parent_execution_id": 3,
      "parent_event_id": 1,
      "seq": 1,
      "event_id": 10,
      "event_type": "call.done",
      "node_id": "a:1",
      "node_name": "a",
      "node_type": "python",
      "status": "COMPLETED",
      "created_at": null,
      "timestamp": null,
      "duration": 0.5,
      "origin": "imported",
      "worker_id": "w-1",
      "context": {
        "k": 1
      },
      "result": {
        "status": "COMPLETED",
        "context": {
          "n": 1
        }
      },
      "meta": {
        "attempt": 1
      },
      "error": null
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn an_invalid_row_is_reported_and_the_others_are_imported() {
    let app = system_app().await;
    let rows = json!({"events": [
        {"event_id": 1, "execution_id": 77, "event_type": "a"},
        {"event_id": "2", "execution_id": 77},
        {"event_id": 3, "execution_id": 77, "error": "a\u{0}b"},
        {"event_id": 4, "execution_id": 77, "result": {"data": 1}},
        {"event_id": 5, "execution_id": 77, "timestamp": "soon"},
        "not a row",
        {"event_id": 6, "execution_id": 77, "event_type": "two words"},
        {"event_id": 7, "execution_id": 77, "event_type": "b"},
    ]});
    assert_snapshot!(post_as_system(&app, PROJECT, rows.to_string()).shown().await, @r#"
    200
    {
      "projected": 2,
      "duplicates": 0,
      "rejected": [
        {
          "index": 1,
          "event_id": "2",
          "error": "event_id must be a 64-bit whole number"
        },
        {
          "index": 2,
          "event_id": 3,
          "error": "text must not hold NUL characters"
        },
        {
          "index": 3,
          "event_id": 4,
          "error": "result must be null or an object with a text `status` and at most the objects `reference` and `context`"
        },
        {
          "index": 4,
          "event_id": 5,
          "error": "timestamp must be a time as 2026-01-31T12:00:00.5Z, without a zone in UTC"
        },
        {
          "index": 5,
          "event_id": null,
          "error": "Failed to deserialize the JSON body into the target type: invalid type: string \"not a row\", expected a map at line 1 column 11"
        },
        {
          "index": 6,
          "event_id": 6,
          "error": "event_type must be 1 to 200 letters, digits or . _ - :"
        }
      ]
    }
    "#);
    let (_, log) = get(&app, "/api/executions/77/events").answer().await;
    assert_eq!(log["total_events"], 2);
    app.close().await;
}

#[tokio::test]
async fn an_imported_log_issues_no_commands_and_blocks_nothing() {
    let app = system_app().await;
    let rows = json!({"events": [
        {"event_id": 1, "execution_id": 77, "event_type": "playbook_started", "node_name": "far/away"},
        {"event_id": 2, "execution_id": 77, "event_type": "command.issued", "node_name": "a"},
    ]});
    post_as_system(&app, PROJECT, rows.to_string()).answer().await;
    let (_, list) = get(&app, "/api/executions").answer().await;
    assert_eq!((&list[0]["path"], &list[0]["status"]), (&json!("far/away"), &json!("RUNNING")));
    let unfinished =
        noetl_store::ExecutionStore::unfinished(&*app.store, ExecutionId::new(0), 9).await;
    assert_eq!(unfinished.expect("a list"), []);
    let claim = post(&app, "/api/commands/2/claim", r#"{"worker_id":"w"}"#).answer().await;
    assert_eq!(claim.0, 409);
    let (status, _) = post(&app, "/api/executions/77/cancel", "").answer().await;
    assert!(matches!(status, 404 | 422), "{status}");
    let more =
        json!({"events": [{"event_id": 3, "execution_id": 77, "event_type": "playbook.failed"}]});
    post_as_system(&app, PROJECT, more.to_string()).answer().await;
    let (_, list) = get(&app, "/api/executions").answer().await;
    assert_eq!(list[0]["status"], "FAILED");
    app.close().await;
}

#[tokio::test]
async fn rows_about_an_execution_of_this_server_are_reports() {
    let app = system_app().await;
    let id = started(&app).await;
    let command = open_command(&app, id).await;
    let (_, log) = get(&app, &format!("/api/executions/{id}/events")).answer().await;
    let known = &log["events"][0]["event_id"];
    let rows = json!({"events": [
        // What came back from the stream.
        {"event_id": known, "execution_id": id, "event_type": "playbook_started"},
        // What only the control plane decides.
        {"event_id": id + 10_000_000, "execution_id": id, "event_type": "playbook.completed"},
        {"event_id": id + 10_000_001, "execution_id": id, "event_type": "note", "node_name": "start",
         "worker_id": "w", "result": {"status": "ok", "context": {"text": "hello"}}},
    ]});
    let (status, body) = post_as_system(&app, PROJECT, rows.to_string()).answer().await;
    assert_eq!(status, 200);
    assert_eq!((&body["projected"], &body["duplicates"]), (&json!(1), &json!(1)), "{body}");
    assert_eq!(body["rejected"][0]["index"], 1, "{body}");
    let (_, log) = get(&app, &format!("/api/executions/{id}/events")).answer().await;
    let note = log["events"].as_array().and_then(|events| events.last()).cloned();
    let note = note.expect("events");
    assert_eq!((&note["event_type"], &note["origin"]), (&json!("note"), &json!("reported")));
    assert_eq!(note["result"]["context"]["text"], "hello");
    // A report about a command drives its execution, whichever way it comes.
    let claim = format!("/api/commands/{command}/claim");
    assert_eq!(post(&app, &claim, r#"{"worker_id":"w"}"#).answer().await.0, 200);
    let done = json!([
        {"execution_id": id.to_string(), "step": "start", "event_type": "call.done", "worker_id": "w",
         "payload": {"command_id": command.to_string(), "result": {"status": "success", "context": {"message": "hi"}}}},
        {"execution_id": id, "step": "start", "event_type": "command.completed", "worker_id": "w",
         "status": "success", "payload": {"command_id": command.to_string()}},
    ]);
    let answer = post_as_system(&app, MATERIALIZE, done.to_string()).answer().await;
    assert_eq!(answer, (200, json!({"materialized": 2, "duplicates": 0})));
    let row = app.control.journal.executions.get(&Tenant::default(), ExecutionId::new(id)).await;
    let row = row.expect("a read").expect("an execution");
    assert_eq!(row.steps_completed, 1, "{row:?}");
    app.close().await;
}

#[tokio::test]
async fn rows_about_an_execution_of_this_server_retain_every_column() {
    let app = system_app().await;
    let id = started(&app).await;
    let mut row = whole(id + 10_000_000);
    row["execution_id"] = id.into();
    row["event_type"] = "note".into();
    row["error"] = "broken".into();
    row["result"] = json!({
        "status": "COMPLETED", "context": {"n": 1},
        "reference": {"store_tier": "s3", "logical_uri": "s3://bucket/key"},
    });
    let body = json!({ "events": [row] }).to_string();
    let answer = post_as_system(&app, PROJECT, body).answer().await;
    assert_eq!(answer, (200, json!({"projected": 1, "duplicates": 0})));
    let (_, log) = get(&app, &format!("/api/executions/{id}/events")).answer().await;
    let note = log["events"].as_array().and_then(|events| events.last()).expect("events");
    for (column, value) in [
        ("origin", json!("reported")),
        ("parent_event_id", json!(1)),
        ("node_id", json!("a:1")),
        ("node_name", json!("a")),
        ("node_type", json!("python")),
        ("status", json!("COMPLETED")),
        ("duration", json!(0.5)),
        ("context", json!({"k": 1})),
        ("error", json!("broken")),
        ("worker_id", json!("w-1")),
        ("created_at", json!("2026-01-31T10:00:00.25Z")),
    ] {
        assert_eq!(note[column], value, "{column}");
    }
    assert_ne!(note["timestamp"], note["created_at"], "the server's time is shown too");
    assert_eq!(note["result"]["reference"]["logical_uri"], "s3://bucket/key");
    assert_eq!(note["result"]["context"], json!({"n": 1}));
    assert_eq!(note["meta"]["attempt"], 1);
    let (_, state) = get(&app, &format!("/api/replay/state?execution_id={id}")).answer().await;
    let refs = state["execution"]["payload_refs"].as_array().expect("references");
    assert_eq!(refs.len(), 1, "{state}");
    // What is published has the columns that pages don't show.
    let claim = r#"{"limit": 100, "worker_id": "w"}"#;
    let (_, claimed) = post_as_system(&app, "/api/internal/outbox/claim", claim).answer().await;
    let rows = claimed["rows"].as_array().expect("rows");
    let mut bodies = rows.iter().map(|row| &row["payload"]);
    let body = bodies.rfind(|body| body["event_type"] == "note").expect("the note");
    for (column, value) in [
        ("command_id", json!(4)),
        ("stage_id", json!(8)),
        ("frame_id", json!(9)),
        ("stack_trace", json!("here")),
        ("trace_component", json!({"trace": ["x"]})),
        ("parent_execution_id", json!(3)),
        ("parent_event_id", json!(1)),
    ] {
        assert_eq!(body[column], value, "{column} of {body}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_large_batch_about_one_execution_is_stored_in_order() {
    let app = system_app().await;
    let id = started(&app).await;
    let rows: Vec<Value> = (0..3000)
        .map(|n| {
            json!({"event_id": id + 10_000_000 + n, "execution_id": id, "event_type": "note",
                   "result": {"status": "ok", "context": {"n": n}}})
        })
        .collect();
    let body = json!({ "events": rows }).to_string();
    let answer = post_as_system(&app, PROJECT, body.clone()).answer().await;
    assert_eq!(answer, (200, json!({"projected": 3000, "duplicates": 0})));
    let again = post_as_system(&app, PROJECT, body).answer().await;
    assert_eq!(again, (200, json!({"projected": 0, "duplicates": 3000})));
    let log = app.control.journal.executions.events(ExecutionId::new(id), Seq(3), 4000).await;
    let ids: Vec<i64> = log.expect("a log").iter().map(|event| event.id.get()).collect();
    let expected: Vec<i64> = (0..3000).map(|n| id + 10_000_000 + n).collect();
    assert_eq!(ids, expected);
    app.close().await;
}

#[tokio::test]
async fn a_batch_with_too_many_events_is_refused() {
    let app = system_app().await;
    let id = started(&app).await;
    let many = |item: &str| vec![item; 50_001].join(",");
    let batch = format!(r#"{{"execution_id":{id},"events":[{}]}}"#, many("{}"));
    for (path, body) in [
        (PROJECT, format!(r#"{{"events":[{}]}}"#, many(r#"{"event_id":1}"#))),
        (MATERIALIZE, format!("[{}]", many("{}"))),
        ("/api/events/batch", batch),
    ] {
        let (status, answer) = post_as_system(&app, path, body).answer().await;
        assert_eq!((status, &answer["code"]), (413, &json!("batch_too_large")), "{path}: {answer}");
    }
    app.close().await;
}

#[tokio::test]
async fn events_of_another_server_are_normalised() {
    let app = system_app().await;
    let events = json!([
        {"execution_id": "88", "step": "a", "name": "call.done", "context": {"command_id": "88:a:1"},
         "event_id": "5", "worker_id": "w", "created_at": "2026-01-31T12:00:00+01:00"},
        {"execution_id": 88, "step": "a", "event_type": "call.done", "event_id": 5},
        {"execution_id": 88, "step": "a", "event_type": "note", "event_id": 6, "result_kind": "ref",
         "result_uri": "s3://b/k", "payload": [1], "meta": "odd"},
        {"execution_id": "x", "step": "a", "event_type": "note"},
        {"execution_id": 88, "step": "a", "event_type": "note", "event_id": "y"},
        {"execution_id": 88, "step": "__orchestrate__", "event_type": "call.done"},
    ]);
    let (status, body) = post_as_system(&app, MATERIALIZE, events.to_string()).answer().await;
    assert_eq!((status, &body["materialized"], &body["duplicates"]), (200, &json!(2), &json!(1)));
    let rejected: Vec<_> =
        body["rejected"].as_array().into_iter().flatten().map(|r| r["index"].as_i64()).collect();
    assert_eq!(rejected, [Some(3), Some(4), Some(5)], "{body}");
    let (_, log) = get(&app, "/api/executions/88/events").answer().await;
    let first = &log["events"][0];
    assert_eq!(first["created_at"], "2026-01-31T11:00:00Z");
    assert_eq!((&first["status"], &first["node_id"]), (&json!("COMPLETED"), &json!("a")));
    assert_eq!(first["meta"]["command_id"], "88:a:1");
    assert_eq!(first["meta"]["worker_id"], "w");
    assert_eq!(log["events"][1]["result"]["reference"]["store_tier"], "s3");
    assert_eq!(log["events"][1]["meta"], "odd");
    app.close().await;
}

#[tokio::test]
async fn invalid_batches_are_rejected() {
    let app = system_app().await;
    for (path, body, status) in [
        (PROJECT, r#"{"events":[]}"#, 400),
        (PROJECT, "{}", 422),
        (PROJECT, "[]", 422),
        (PROJECT, r#"{"events":1}"#, 422),
        (MATERIALIZE, r#"{"events":[]}"#, 422),
        (MATERIALIZE, "[]", 200),
    ] {
        let answer = post_as_system(&app, path, body).answer().await;
        assert_eq!(answer.0, status, "{path} {body}: {}", answer.1);
    }
    app.close().await;
}

#[tokio::test]
async fn a_batch_beyond_64_mib_is_refused() {
    let app = system_app().await;
    let row = json!({"event_id": 1, "execution_id": 77, "error": "x".repeat(3 << 20)});
    let body = json!({ "events": [row] }).to_string();
    assert_eq!(post_as_system(&app, PROJECT, body).answer().await.0, 200);
    let body = format!(r#"{{"events":[],"pad":"{}"}}"#, "x".repeat(64 << 20));
    let (status, answer) = post_as_system(&app, PROJECT, body).answer().await;
    assert_eq!((status, &answer["code"]), (413, &json!("body_too_large")));
    let small = format!(r#"{{"outbox_ids":[1],"pad":"{}"}}"#, "x".repeat(2 << 20));
    let path = "/api/internal/outbox/mark-published";
    assert_eq!(post_as_system(&app, path, small).answer().await.0, 413);
    app.close().await;
}

#[tokio::test]
async fn concurrent_imports_of_one_batch_store_it_once() {
    let app = system_app().await;
    let rows: Vec<_> =
        (0..50).map(|n| json!({"event_id": n, "execution_id": 77 + n % 3})).collect();
    let body = json!({ "events": rows }).to_string();
    let asked = (0..8).map(|_| post_as_system(&app, PROJECT, body.clone()).answer());
    let answers = futures::future::join_all(asked).await;
    let imported: i64 = answers.iter().filter_map(|(_, body)| body["projected"].as_i64()).sum();
    assert_eq!(imported, 50);
    assert_eq!(
        get_as_system(&app, "/api/internal/outbox/pending-count").answer().await.1["pending"],
        50
    );
    app.close().await;
}
