use insta::assert_snapshot;
use noetl_model::Tenant;
use noetl_store::SnapshotStore;
use serde_json::{Value, json};

use crate::api::{post_as_system, started, system_app};

const ADVANCE: &str = "/api/internal/projection/advance";
const PROJECT: &str = "/api/internal/events/project";

#[tokio::test]
async fn each_execution_is_advanced_or_fails_independently() {
    let app = system_app().await;
    let id = started(&app).await;
    let body = json!({"execution_ids": [id, 31337, id, -1, i64::MAX]}).to_string();
    assert_snapshot!(post_as_system(&app, ADVANCE, body).shown().await, @r#"
    200
    {
      "advanced": [
        {
          "execution_id": "[id number]",
          "version": "[id number]",
          "events": 3
        }
      ],
      "failed": [
        {
          "execution_id": 31337,
          "error": "Validation error: No events found for execution"
        },
        {
          "execution_id": -1,
          "error": "Validation error: No events found for execution"
        },
        {
          "execution_id": 9223372036854775807,
          "error": "Validation error: No events found for execution"
        }
      ]
    }
    "#);
    let kind = "orchestrator_workflow_state";
    let snapshot = app.store.snapshot(&Tenant::default(), kind, &id.to_string()).await;
    let snapshot = snapshot.expect("a read").expect("a snapshot");
    assert_eq!(snapshot.meta["applied_count"], 3);
    let state: Value = serde_json::from_str(&snapshot.body).expect("JSON");
    assert_eq!(state["event_count"], 3);
    app.close().await;
}

#[tokio::test]
async fn a_late_event_is_included_in_the_next_snapshot() {
    let app = system_app().await;
    let row = |id: i64| json!({"events": [{"event_id": id, "execution_id": 77}]}).to_string();
    post_as_system(&app, PROJECT, row(9)).answer().await;
    let advance = r#"{"execution_ids":[77]}"#;
    post_as_system(&app, ADVANCE, advance).answer().await;
    post_as_system(&app, PROJECT, row(5)).answer().await;
    let (_, body) = post_as_system(&app, ADVANCE, advance).answer().await;
    assert_eq!(body["advanced"][0], json!({"execution_id": 77, "version": 9, "events": 2}));
    let kind = "orchestrator_workflow_state";
    let snapshot = app.store.snapshot(&Tenant::default(), kind, "77").await;
    let snapshot = snapshot.expect("a read").expect("a snapshot");
    assert_eq!(snapshot.meta["applied_count"], 2);
    app.close().await;
}

#[tokio::test]
async fn an_invalid_list_is_rejected_and_an_empty_one_is_accepted() {
    let app = system_app().await;
    let empty = post_as_system(&app, ADVANCE, r#"{"execution_ids":[]}"#).answer().await;
    assert_eq!(empty, (200, json!({"advanced": [], "failed": []})));
    for body in ["{}", r#"{"execution_ids":["1"]}"#, r#"{"execution_ids":1}"#] {
        assert_eq!(post_as_system(&app, ADVANCE, body).answer().await.0, 422, "{body}");
    }
    app.store.set_down(true);
    let (status, body) = post_as_system(&app, ADVANCE, r#"{"execution_ids":[1]}"#).answer().await;
    assert_eq!(status, 200);
    assert_eq!(body["failed"][0]["error"], "Database error: the database does not answer");
    app.store.set_down(false);
    app.close().await;
}
