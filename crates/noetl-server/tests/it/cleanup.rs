use insta::assert_snapshot;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::json;

use crate::api::{TOKEN, ask, finished, get, post_as_system, started};

const PURGE: &str = "/api/internal/cleanup/purge";

async fn app() -> TestApp {
    TestApp::builder().internal_token(TOKEN).start().await
}

#[tokio::test]
async fn a_purge_without_a_body_uses_the_defaults() {
    let app = app().await;
    finished(&app).await;
    let bare = ask(&app, Method::POST, PURGE).header("authorization", &format!("Bearer {TOKEN}"));
    assert_snapshot!(bare.shown().await, @r#"
    200
    {
      "commands_purged": 0,
      "runtime_purged": 0,
      "events_purged": 0,
      "dry_run": false
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_number_out_of_range_is_rejected_without_effect() {
    let app = app().await;
    let id = finished(&app).await;
    for (field, value) in [
        ("event_retention_days", 30_000_i64),
        ("event_retention_days", i64::MAX),
        ("command_retention_days", 4_294_967_295),
        ("runtime_stale_minutes", i64::MAX),
    ] {
        let body = json!({ field: value }).to_string();
        let (status, answer) = post_as_system(&app, PURGE, body).answer().await;
        assert_eq!((status, &answer["code"]), (422, &json!("out_of_range")), "{field}: {answer}");
        assert!(answer["error"].as_str().is_some_and(|text| text.contains(field)), "{answer}");
    }
    let (status, _) = post_as_system(&app, PURGE, r#"{"event_retention_days":"7"}"#).answer().await;
    assert_eq!(status, 422);
    assert_eq!(get(&app, &format!("/api/executions/{id}")).answer().await.0, 200);
    app.close().await;
}

#[tokio::test]
async fn running_executions_are_not_cleaned_up_but_reported() {
    let app = TestApp::builder().slots(0).internal_token(TOKEN).start().await;
    let id = started(&app).await;
    let body = r#"{"event_retention_days":1,"dry_run":true}"#;
    let (status, answer) = post_as_system(&app, PURGE, body).answer().await;
    assert_eq!(
        (status, &answer["dry_run"], &answer["events_purged"]),
        (200, &json!(true), &json!(0))
    );
    let retained = &answer["kept"][0];
    assert!(
        retained["partition"].as_str().is_some_and(|name| name.starts_with("event_20")),
        "{answer}"
    );
    assert!(retained["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{answer}");
    assert_eq!(get(&app, &format!("/api/executions/{id}")).answer().await.0, 200);
    app.close().await;
}
