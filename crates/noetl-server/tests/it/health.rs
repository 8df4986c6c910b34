use insta::assert_snapshot;
use noetl_test_app::TestApp;

use crate::api::get;

#[tokio::test]
async fn health_reports_each_dependency() {
    let app = TestApp::start(0).await;
    assert_snapshot!(get(&app, "/health").shown().await, @r#"
    200
    {
      "status": "ok"
    }
    "#);
    assert_snapshot!(get(&app, "/api/health").shown().await, @r#"
    200
    {
      "status": "ok",
      "database": "connected",
      "nats": "not_configured",
      "uptime_seconds": "[seconds]",
      "version": "0.1.0",
      "message": "the database answers",
      "timestamp": "[time]"
    }
    "#);
    assert!(app.client.health().await.expect("an answer").is_ok());
    app.close().await;
}

#[tokio::test]
async fn an_unavailable_store_is_distinguished_from_a_dead_process() {
    let app = TestApp::start(0).await;
    app.store.set_down(true);
    assert_snapshot!(get(&app, "/health").shown().await, @r#"
    200
    {
      "status": "ok"
    }
    "#);
    assert_snapshot!(get(&app, "/api/health").shown().await, @r#"
    503
    {
      "status": "unhealthy",
      "database": "disconnected",
      "nats": "not_configured",
      "uptime_seconds": "[seconds]",
      "version": "0.1.0",
      "message": "the database does not answer",
      "timestamp": "[time]"
    }
    "#);
    assert!(!app.client.health().await.expect("an answer").is_ok());
    app.store.set_down(false);
    assert!(app.client.health().await.expect("an answer").is_ok());
    app.close().await;
}
