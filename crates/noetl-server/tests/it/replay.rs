use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{finished, get, post, post_as_system, started, system_app};

async fn state(app: &TestApp, query: &str) -> (u16, Value) {
    get(app, &format!("/api/replay/state?{query}")).answer().await
}

async fn shown(app: &TestApp, query: &str) -> String {
    get(app, &format!("/api/replay/state?{query}")).shown().await
}

#[tokio::test]
async fn an_unknown_execution_has_an_empty_state() {
    let app = TestApp::start(0).await;
    assert_snapshot!(shown(&app, "execution_id=5&tenant_id=acme&organization_id=lab&projection=loop").await, @r#"
    200
    {
      "tenant_id": "acme",
      "organization_id": "lab",
      "execution_id": 5,
      "projection": "loop",
      "event_count": 0,
      "execution": {
        "status": "UNKNOWN",
        "payload_refs": []
      },
      "stages": {},
      "frames": {},
      "commands": {},
      "business_objects": {},
      "loops": {},
      "checksum": {
        "type": "sha256",
        "value": "3c467b756cea31299a5a6ea0ed0485d0c3aec0a659776c9095125b1df950022f"
      },
      "projection_checksums": {
        "business_object": {
          "type": "sha256",
          "value": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        },
        "command": {
          "type": "sha256",
          "value": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        },
        "execution": {
          "type": "sha256",
          "value": "cffd8af539585ad49715f8a9b78dfbf864915233ef31dc9792fb56efc682f297"
        },
        "frame": {
          "type": "sha256",
          "value": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        },
        "loop": {
          "type": "sha256",
          "value": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        },
        "stage": {
          "type": "sha256",
          "value": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        }
      }
    }
    "#);
    for id in ["-1", "0", "-9223372036854775808", "9223372036854775807"] {
        let (status, body) = state(&app, &format!("execution_id={id}")).await;
        assert_eq!((status, body["execution_id"].to_string()), (200, id.to_owned()));
        assert_eq!((&body["event_count"], &body["projection"]), (&json!(0), &json!("all")));
    }
    app.close().await;
}

#[tokio::test]
async fn a_finished_execution_is_replayed_to_its_end_or_to_any_event() {
    let app = TestApp::start(2).await;
    let id = finished(&app).await;
    let (_, log) = get(&app, &format!("/api/executions/{id}/events?page_size=2000")).answer().await;
    let events = log["events"].as_array().cloned().expect("events");
    let (status, whole) = state(&app, &format!("execution_id={id}&limit=all")).await;
    assert_eq!(status, 200, "{whole}");
    assert_eq!(whole["event_count"], events.len());
    assert_eq!(whole["execution"]["status"], "COMPLETED");
    assert_eq!(whole["execution"]["last_node_name"], "end");
    assert_eq!(whole["last_event_type"], "playbook.completed");
    assert_eq!(whole["commands"].as_object().expect("commands").len(), 2);
    assert!(whole.get("truncated").is_none() && whole.get("payload_resolution").is_none());
    let command = whole["commands"].as_object().and_then(|all| all.values().next()).cloned();
    let command = command.expect("a command");
    assert_eq!(command["status"], "COMPLETED");
    assert!(command["command_id"].is_string() && command["issued_event_id"].is_number());

    let third = &events[2];
    let cut = |name: &str, value: &str| format!("execution_id={id}&{name}={value}");
    let event_id = third["event_id"].to_string();
    let (_, by_event) = state(&app, &cut("as_of_event_id", &event_id)).await;
    assert_eq!(
        (&by_event["event_count"], &by_event["last_event_id"]),
        (&json!(3), &third["event_id"])
    );
    assert_eq!(by_event["execution"]["status"], "RUNNING");
    let (_, by_position) = state(&app, &cut("as_of_position", &event_id)).await;
    assert_eq!(by_position, by_event);
    let time = third["created_at"].as_str().expect("a time");
    let (_, by_time) = state(&app, &cut("as_of_time", time)).await;
    assert!(by_time["event_count"].as_u64().is_some_and(|count| count >= 3), "{by_time}");
    let (_, before) = state(&app, &cut("as_of_time", "-009998-01-01T00:00:00Z")).await;
    assert_eq!(before["event_count"], 0);

    let (_, limited) = state(&app, &cut("limit", "3")).await;
    assert_eq!(
        (&limited["truncated"], &limited["checksum"]),
        (&json!(true), &by_event["checksum"])
    );
    let (_, least) = state(&app, &cut("limit", "-7")).await;
    assert_eq!((&least["truncated"], &least["event_count"]), (&json!(true), &json!(1)));
    let (_, theirs) = state(&app, &cut("tenant_id", "acme")).await;
    assert_eq!(theirs["event_count"], 0);
    let (_, theirs) = state(&app, &cut("organization_id", "acme")).await;
    assert_eq!(theirs["event_count"], 0);
    app.close().await;
}

#[tokio::test]
async fn replay_includes_reported_events_and_resolves_references_on_request() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    let report = json!({
        "execution_id": id, "step": "start", "event_type": "order.created",
        "meta": {"business_object": {"type": "order", "id": 9, "state": {"total": 12.50}}},
    });
    let (status, body) = post(&app, "/api/events", report.to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
    let query = format!("execution_id={id}&resolve_payloads=true&projection=business_object");
    let (status, body) = state(&app, &query).await;
    assert_eq!(status, 200, "{body}");
    let object = &body["business_objects"]["order/9"];
    assert_eq!(object["attributes"], json!({"total": 12.5}));
    assert_eq!(body["payload_resolution"], json!([]));
    let summary = &body["payload_resolution_summary"];
    assert_eq!((&summary["total"], &summary["all_resolved"]), (&json!(0), &json!(true)));
    app.close().await;
}

#[tokio::test]
async fn imported_rows_replay_in_id_order_with_missing_columns() {
    let app = system_app().await;
    let rows = json!({"events": [
        {"execution_id": 77, "event_id": 30, "event_type": "frame.committed", "frame_id": 9,
         "result": {"status": "ok", "reference": {"ref": "noetl://execution/77/result/r/1"}},
         "meta": {"row_count": 5, "stage_id": null}, "created_at": "2026-01-31T12:00:03Z"},
        {"execution_id": 77, "event_id": 20, "stage_id": 8, "created_at": "2026-01-31T12:00:01Z"},
        {"execution_id": 77, "event_id": 25, "event_type": "order.created",
         "aggregate_type": "business_object", "aggregate_id": "business_object/order/4",
         "created_at": "2026-01-31T12:00:02Z"},
        {"execution_id": 77, "event_id": 10, "event_type": "stage.opened", "stage_id": 8,
         "organization_id": "lab", "created_at": "2026-01-31T12:00:00Z"},
    ]});
    let project = "/api/internal/events/project";
    let (status, body) = post_as_system(&app, project, rows.to_string()).answer().await;
    assert_eq!((status, &body["projected"]), (200, &json!(4)), "{body}");
    let (status, body) = state(&app, "execution_id=77&resolve_payloads=true").await;
    assert_eq!(status, 200, "{body}");
    assert_eq!((&body["event_count"], &body["last_event_id"]), (&json!(3), &json!(30)));
    let stages = body["stages"].as_object().expect("stages");
    assert_eq!(stages.keys().collect::<Vec<_>>(), ["8"], "a null is no stage");
    assert_eq!(stages["8"]["status"], "UNKNOWN");
    assert_eq!(body["frames"]["9"]["row_count"], 5);
    assert_eq!(body["business_objects"]["order/4"]["status"], "ACTIVE");
    let summary = &body["payload_resolution_summary"];
    assert_eq!((&summary["total"], &summary["unresolved"]), (&json!(2), &json!(2)));
    let (_, body) = state(&app, "execution_id=77&organization_id=lab").await;
    assert_eq!(body["stages"]["8"]["status"], "OPEN");
    assert_eq!(body["event_count"], 1);
    let (_, body) = state(&app, "execution_id=77&as_of_time=2026-01-31T13:00:01%2B01:00").await;
    assert_eq!((&body["event_count"], &body["last_event_id"]), (&json!(1), &json!(20)));
    app.close().await;
}

#[tokio::test]
async fn invalid_replay_requests_are_reported() {
    let app = TestApp::start(0).await;
    assert_snapshot!(shown(&app, "").await, @r#"
    400
    {
      "error": "execution_id must be given",
      "status": 400,
      "code": "invalid_query",
      "detail": "execution_id must be given",
      "message": "execution_id must be given"
    }
    "#);
    assert_snapshot!(shown(&app, "execution_id=1&projection=zzz").await, @r#"
    400
    {
      "error": "unknown projection \"zzz\"; expected one of: execution, stage, frame, command, business_object, loop, all",
      "status": 400,
      "code": "invalid_query",
      "detail": "unknown projection \"zzz\"; expected one of: execution, stage, frame, command, business_object, loop, all",
      "message": "unknown projection \"zzz\"; expected one of: execution, stage, frame, command, business_object, loop, all"
    }
    "#);
    assert_snapshot!(shown(&app, "execution_id=1&as_of_event_id=1&as_of_position=1").await, @r#"
    400
    {
      "error": "Use only one replay cutoff: as_of_event_id, as_of_position, or as_of_time",
      "status": 400,
      "code": "invalid_query",
      "detail": "Use only one replay cutoff: as_of_event_id, as_of_position, or as_of_time",
      "message": "Use only one replay cutoff: as_of_event_id, as_of_position, or as_of_time"
    }
    "#);
    assert_snapshot!(shown(&app, "execution_id=1&as_of_time=yesterday").await, @r#"
    400
    {
      "error": "as_of_time must be an RFC 3339 time, as 2026-01-31T12:00:00Z",
      "status": 400,
      "code": "invalid_query",
      "detail": "as_of_time must be an RFC 3339 time, as 2026-01-31T12:00:00Z",
      "message": "as_of_time must be an RFC 3339 time, as 2026-01-31T12:00:00Z"
    }
    "#);
    for (query, expected) in [
        ("execution_id=", "execution_id must be given"),
        ("execution_id=abc", "execution_id must be a whole number of 64 bits"),
        ("execution_id=1.5", "execution_id must be a whole number of 64 bits"),
        ("execution_id=9223372036854775808", "execution_id must be a whole number of 64 bits"),
        ("execution_id=1&as_of_event_id=x", "as_of_event_id must be a whole number of 64 bits"),
        ("execution_id=1&as_of_position=x", "as_of_position must be a whole number of 64 bits"),
        ("execution_id=1&limit=some", "limit must be a whole number or all"),
        ("execution_id=1&resolve_payloads=maybe", "resolve_payloads must be true or false"),
        (
            "execution_id=1&as_of_event_id=1&as_of_time=2026-01-01T00:00:00Z",
            "Use only one replay cutoff: as_of_event_id, as_of_position, or as_of_time",
        ),
        ("execution_id=1&tenant_id=a%00b", "text must not hold NUL characters"),
    ] {
        let (status, body) = state(&app, query).await;
        assert_eq!((status, body["error"].as_str()), (400, Some(expected)), "{query}");
    }
    let (status, _) = state(&app, "execution_id=1&execution_id=2").await;
    assert_eq!(status, 400);
    app.close().await;
}

#[tokio::test]
async fn an_unavailable_store_responds_with_503() {
    let app = TestApp::start(0).await;
    app.store.set_down(true);
    assert_snapshot!(shown(&app, "execution_id=1").await, @r#"
    503
    {
      "error": "the database does not answer",
      "status": 503,
      "code": "store_unavailable",
      "detail": "the database does not answer",
      "message": "the database does not answer"
    }
    "#);
    app.store.set_down(false);
    app.close().await;
}
