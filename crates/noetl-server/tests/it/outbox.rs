use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::api::{get_as_system, post_as_system, started, system_app};

const CLAIM: &str = "/api/internal/outbox/claim";
const PUBLISHED: &str = "/api/internal/outbox/mark-published";
const FAILED: &str = "/api/internal/outbox/mark-failed";
const COUNT: &str = "/api/internal/outbox/pending-count";

#[tokio::test]
async fn rows_are_claimed_published_and_counted() {
    let app = system_app().await;
    started(&app).await;
    assert_snapshot!(get_as_system(&app, COUNT).shown().await, @r#"
    200
    {
      "pending": 3
    }
    "#);
    let (status, first) = post_as_system(&app, CLAIM, r#"{"limit":1}"#).answer().await;
    assert_eq!(status, 200);
    assert_eq!(first["claimed"], 1);
    let mut row = first["rows"][0].clone();
    let payload = row["payload"].take();
    assert_eq!(payload["event_type"], "playbook_started");
    assert_eq!(payload["event_id"], row["event_id"]);
    assert_eq!(payload["prev_event_id"], Value::Null);
    assert_snapshot!(crate::api::shown(status, row.clone()), @r#"
    200
    {
      "outbox_id": 1,
      "event_id": "[id number]",
      "execution_id": "[id number]",
      "subject": "noetl.events.playbook_started",
      "payload": null,
      "payload_codec": "json",
      "attempts": 1
    }
    "#);
    let (_, rest) = post_as_system(&app, CLAIM, "{}").answer().await;
    let ids: Vec<_> =
        rest["rows"].as_array().into_iter().flatten().map(|r| &r["outbox_id"]).collect();
    assert_eq!(ids, [&json!(2), &json!(3)]);
    assert_eq!(
        post_as_system(&app, CLAIM, "{}").answer().await.1,
        json!({"rows": [], "claimed": 0})
    );

    let marked = json!({"outbox_ids": [1, 1, 2, 99, -5, i64::MAX]}).to_string();
    assert_eq!(
        post_as_system(&app, PUBLISHED, marked.clone()).answer().await,
        (200, json!({"marked": 2}))
    );
    assert_eq!(post_as_system(&app, PUBLISHED, marked).answer().await, (200, json!({"marked": 0})));
    assert_eq!(get_as_system(&app, COUNT).answer().await.1, json!({"pending": 0}));
    app.close().await;
}

#[tokio::test]
async fn a_limit_out_of_range_is_clamped() {
    let app = system_app().await;
    started(&app).await;
    for (limit, claimed) in [(i64::MIN, 1), (0, 1), (i64::MAX, 1)] {
        let body = json!({ "limit": limit }).to_string();
        let (status, body) = post_as_system(&app, CLAIM, body).answer().await;
        assert_eq!((status, &body["claimed"]), (200, &json!(claimed)), "{limit}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_failed_row_is_claimable_after_its_delay() {
    let app = system_app().await;
    started(&app).await;
    post_as_system(&app, CLAIM, "{}").answer().await;
    let failed =
        json!({"outbox_id": 1, "error": "ä".repeat(5000), "attempts": 5, "max_delay_seconds": 10});
    assert_snapshot!(post_as_system(&app, FAILED, failed.to_string()).shown().await, @r#"
    200
    {
      "marked": true,
      "available_at_in": 10
    }
    "#);
    // Published and unknown rows stay unchanged.
    post_as_system(&app, PUBLISHED, r#"{"outbox_ids":[2]}"#).answer().await;
    for id in [2, 99] {
        let failed = json!({"outbox_id": id, "error": "x"}).to_string();
        let answer = post_as_system(&app, FAILED, failed).answer().await;
        assert_eq!(answer, (200, json!({"marked": false, "available_at_in": 1})), "{id}");
    }
    app.close().await;
}

#[tokio::test]
async fn invalid_outbox_requests_are_rejected() {
    let app = system_app().await;
    for (path, body, status, code) in [
        (CLAIM, r#"{"limit":"1"}"#, 422, "invalid_body"),
        (CLAIM, r#"{"limit":1.5}"#, 422, "invalid_body"),
        (PUBLISHED, "{}", 422, "invalid_body"),
        (PUBLISHED, r#"{"outbox_ids":[]}"#, 400, "empty_request"),
        (PUBLISHED, r#"{"outbox_ids":["1"]}"#, 422, "invalid_body"),
        (FAILED, r#"{"error":"x"}"#, 422, "invalid_body"),
        (FAILED, r#"{"outbox_id":1}"#, 422, "invalid_body"),
        (FAILED, r#"{"outbox_id":1,"error":""}"#, 400, "empty_request"),
        (FAILED, r#"{"outbox_id":1,"error":"x","attempts":"1"}"#, 422, "invalid_body"),
    ] {
        let (actual, answer) = post_as_system(&app, path, body).answer().await;
        assert_eq!((actual, &answer["code"]), (status, &code.into()), "{path} {body}: {answer}");
    }
    app.close().await;
}
