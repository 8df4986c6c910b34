use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::json;

use crate::api::{get, post, started};

#[tokio::test]
async fn an_event_of_an_unknown_execution_is_refused() {
    let app = TestApp::start(0).await;
    let event = r#"{"execution_id":7,"step":"a","event_type":"note"}"#;
    assert_snapshot!(post(&app, "/api/events", event).shown().await, @r#"
    404
    {
      "error": "Execution not found: 7",
      "status": 404,
      "code": "execution_not_found",
      "detail": "Execution not found: 7",
      "message": "Execution not found: 7"
    }
    "#);
    let batch = r#"{"execution_id":"7","events":[]}"#;
    let (status, body) = post(&app, "/api/events/batch", batch).answer().await;
    assert_eq!((status, &body["error"]), (404, &"Execution not found: 7".into()));
    app.close().await;
}

#[tokio::test]
async fn an_event_with_a_bad_field_is_refused() {
    let app = TestApp::start(0).await;
    for body in [
        r#"{"execution_id":"abc","step":"a","event_type":"note"}"#,
        r#"{"execution_id":1.5,"step":"a","event_type":"note"}"#,
        r#"{"step":"a","event_type":"note"}"#,
        r#"{"execution_id":1,"event_type":"note"}"#,
        r#"{"execution_id":1,"step":"a"}"#,
        r#"{"execution_id":1,"step":"a","event_type":"note","name":"note"}"#,
        r#"{"execution_id":1,"step":"a","event_type":"note","event_id":"x"}"#,
        r#"{"execution_id":1,"step":"a","event_type":"note","created_at":"yesterday"}"#,
    ] {
        let (status, answer) = post(&app, "/api/events", body).answer().await;
        assert_eq!((status, &answer["code"]), (422, &"invalid_body".into()), "{body}: {answer}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_repeated_event_gets_the_same_response() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let event = id + 1_000_000;
    let body = json!({
        "execution_id": id.to_string(), "step": "start", "name": "note", "event_id": event,
        "context": {"text": "hello"}, "worker_id": "w",
    });
    let (status, first) = post(&app, "/api/events", body.to_string()).answer().await;
    assert_eq!((status, &first["event_id"]), (200, &event.into()), "{first}");
    let (status, second) = post(&app, "/api/events", body.to_string()).answer().await;
    assert_eq!((status, second), (200, first));
    let (_, log) = get(&app, &format!("/api/executions/{id}/events")).answer().await;
    let notes: Vec<_> = log["events"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|e| e["event_type"] == "note")
        .collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["origin"], "reported");
    assert_eq!(notes[0]["result"], json!({"status": "RUNNING", "context": {"text": "hello"}}));
    assert_eq!(notes[0]["meta"]["worker_id"], "w");
    app.close().await;
}

#[tokio::test]
async fn a_batch_stores_valid_items_and_reports_invalid_ones() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let batch = format!(
        r#"{{"execution_id":{id},"worker_id":"w","events":[
            {{"step":"start","event_type":"note","payload":{{"n":1}}}},
            {{"step":"start","event_type":"step.exit"}},
            {{"step":"start","event_type":"note","payload":{{"n":"\u0000"}}}},
            {{"step":"__orchestrate__","event_type":"call.done","event_id":"12"}},
            {{"event_type":"note"}},
            {{"step":"start","name":"note","context":{{"n":2}}}}
        ]}}"#
    );
    assert_snapshot!(post(&app, "/api/events/batch", batch).shown().await, @r#"
    200
    {
      "status": "ok",
      "event_ids": [
        "[id number]",
        "[id number]"
      ],
      "commands_generated": 0,
      "rejected": [
        {
          "index": 1,
          "event_id": null,
          "error": "'step.exit' is decided by the control plane and cannot be reported"
        },
        {
          "index": 2,
          "event_id": null,
          "error": "text must not hold NUL characters"
        },
        {
          "index": 3,
          "event_id": "12",
          "error": "decisions are made by the control plane and cannot be handed in"
        },
        {
          "index": 4,
          "event_id": null,
          "error": "Failed to deserialize the JSON body into the target type: missing field `step` at line 1 column 21"
        }
      ]
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn an_empty_batch_is_accepted() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let batch = format!(r#"{{"execution_id":{id},"events":[]}}"#);
    assert_snapshot!(post(&app, "/api/events/batch", batch).shown().await, @r#"
    200
    {
      "status": "ok",
      "event_ids": [],
      "commands_generated": 0
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn an_invalid_field_is_reported_by_name() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    for (field, value) in [
        ("event_id", json!("seven")),
        ("event_id", json!(1.5)),
        ("created_at", json!("soon")),
        ("created_at", json!("-000001-01-01T00:00:00Z")),
        ("event_type", json!(7)),
        ("worker_id", json!([])),
    ] {
        let mut body = json!({"execution_id": id, "step": "start", "event_type": "note"});
        body[field] = value;
        let (status, reply) = post(&app, "/api/events", body.to_string()).answer().await;
        let message = reply["error"].as_str().expect("a message");
        assert_eq!(status, 422, "{reply}");
        assert!(message.contains(field), "{field}: {message}");
    }
    app.close().await;
}

#[tokio::test]
async fn an_event_has_the_time_and_reference_of_its_producer() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let body = json!({
        "execution_id": id, "step": "start", "event_type": "note", "result_kind": "ref",
        "result_uri": "gs://bucket/object", "created_at": "2026-01-31T12:00:00.5+02:00",
    });
    let (status, reply) = post(&app, "/api/events", body.to_string()).answer().await;
    assert_eq!(status, 200, "{reply}");
    let (_, log) = get(&app, &format!("/api/executions/{id}/events")).answer().await;
    let note = log["events"].as_array().and_then(|events| events.last()).expect("events");
    assert_eq!(note["created_at"], "2026-01-31T10:00:00.5Z");
    let (written, before) = (&note["timestamp"], &log["events"][0]["timestamp"]);
    assert!(written.as_str() >= before.as_str(), "{written} is the server's time");
    let reference = json!({"store_tier": "gcs", "logical_uri": "gs://bucket/object"});
    assert_eq!(note["result"], json!({"status": "RUNNING", "reference": reference}));
    let (_, state) = get(&app, &format!("/api/replay/state?execution_id={id}")).answer().await;
    let refs = state["execution"]["payload_refs"].as_array().expect("references");
    assert_eq!(refs.len(), 1, "{state}");
    // The server's time decides what a log was at a moment: the event is not part of the past that
    // its producer claims.
    let past = format!("/api/replay/state?execution_id={id}&as_of_time=2026-02-01T00:00:00Z");
    let (_, state) = get(&app, &past).answer().await;
    assert_eq!(state["event_count"], 0, "{state}");
    app.close().await;
}
