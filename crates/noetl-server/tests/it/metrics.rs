use noetl_server::Options;
use noetl_test_app::TestApp;

use crate::api::{get, post, post_as_system, started, system_app};

async fn page(app: &TestApp) -> String {
    let answer = get(app, "/metrics").send().await;
    assert_eq!(answer.status(), 200);
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    assert_eq!(kind, Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.text().await.expect("a page")
}

#[tokio::test]
async fn the_metrics_page_counts_accepted_requests() {
    let app = system_app().await;
    started(&app).await;
    let rows = r#"{"events":[{"event_id":1,"execution_id":2},{"event_id":"x"}]}"#;
    post_as_system(&app, "/api/internal/events/project", rows).answer().await;
    let page = page(&app).await;
    for line in [
        "noetl_events_projected_total 1",
        "noetl_events_rejected_total{route=\"project\"} 1",
        "noetl_outbox_pending 4",
        "noetl_commands_pending{pool=\"shared\"} 1",
        "noetl_subscription_state{state=\"ACTIVE\"} 0",
        "noetl_execute_outcomes_total{entry=\"single\",outcome=\"new\"} 1",
        "noetl_journal_events_total 3",
        "noetl_journal_conflicts_total 0",
        "noetl_command_leases_ended_total 0",
    ] {
        assert!(page.lines().any(|rendered| rendered == line), "{line} in:\n{page}");
    }
    app.close().await;
}

#[tokio::test]
async fn finished_executions_and_reported_events_are_counted() {
    let app = crate::stores::app().await;
    let id = started(&app).await;
    let put = format!("/api/result/{id}");
    let answer = crate::api::ask(&app, reqwest::Method::PUT, &put)
        .header("content-type", "application/json")
        .body(r#"{"name":"n","data":1,"scope":"execution"}"#)
        .answer()
        .await;
    assert_eq!(answer.0, 200, "{answer:?}");
    for reference in ["noetl://execution/1/result/n/2", "elsewhere"] {
        get(&app, &format!("/api/result/resolve?ref={reference}")).answer().await;
    }
    post(&app, "/api/execute/batch", r#"{"executions":[{"path":"a"},{"path":"b"}]}"#)
        .answer()
        .await;
    post(&app, &format!("/api/executions/{id}/cancel"), "{}").answer().await;
    let page = page(&app).await;
    for line in [
        "noetl_result_store_put_total{status=\"ok\"} 1",
        "noetl_result_store_resolve_total{status=\"not_found\"} 1",
        "noetl_result_store_resolve_total{status=\"error\"} 1",
        "noetl_execute_batch_size_bucket{le=\"2\"} 1",
        "noetl_executions_finished_total{status=\"CANCELLED\"} 1",
    ] {
        assert!(page.lines().any(|rendered| rendered == line), "{line} in:\n{page}");
    }
    let commits = page.lines().find_map(|line| {
        line.strip_prefix("noetl_journal_commit_duration_seconds_count ")?.parse::<u64>().ok()
    });
    assert!(commits > Some(1), "{page}");
    app.close().await;
}

#[tokio::test]
async fn an_unknown_event_type_is_not_a_metric_label() {
    let app = system_app().await;
    let id = started(&app).await;
    let event = format!(r#"{{"execution_id":{id},"step":"a","event_type":"made.up.4711"}}"#);
    assert_eq!(post(&app, "/api/events", event).answer().await.0, 200);
    let page = page(&app).await;
    // By its text: digits of it can be part of a measured time.
    assert!(!page.contains("made.up"), "{page}");
    let line = "noetl_events_ingested_total{event_type=\"other\",status=\"ok\"} 1";
    assert!(page.lines().any(|rendered| rendered == line), "{page}");
    app.close().await;
}

#[tokio::test]
async fn the_metrics_page_can_be_disabled_and_survives_a_store_outage() {
    let options = Options { has_metrics: false, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    assert_eq!(get(&app, "/metrics").answer().await.0, 404);
    app.close().await;
    let app = system_app().await;
    app.store.set_down(true);
    assert!(page(&app).await.contains("noetl_scrape_errors_total 3"));
    app.store.set_down(false);
    app.close().await;
}
