use std::time::Duration;

use insta::assert_snapshot;
use noetl_server::Options;
use noetl_test_app::TestApp;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::api::{get, post, started};

#[tokio::test]
async fn ids_beyond_64_bits_are_refused_and_the_largest_id_is_not_found() {
    let app = TestApp::start(0).await;
    for (id, status) in [
        ("9223372036854775807", 404),
        ("-9223372036854775808", 404),
        ("0", 404),
        ("9223372036854775808", 400),
        ("1.5", 400),
        ("1e3", 400),
        ("%00", 400),
        ("1%20", 400),
        ("' or 1=1 --", 400),
    ] {
        let path = format!("/api/executions/{id}");
        assert_eq!(get(&app, &path).answer().await.0, status, "{id}");
    }
    let body = r#"{"catalog_id":9223372036854775808}"#;
    assert_eq!(post(&app, "/api/execute", body).answer().await.0, 422);
    let body = r#"{"catalog_id":"9223372036854775807"}"#;
    assert_eq!(post(&app, "/api/execute", body).answer().await.0, 404);
    app.close().await;
}

#[tokio::test]
async fn query_numbers_out_of_range_are_refused() {
    let app = TestApp::start(0).await;
    for (query, status) in [
        ("limit=0", 200),
        ("limit=100000", 200),
        ("limit=", 200),
        ("limit=-1", 400),
        ("limit=ten", 400),
        ("limit=99999999999999999999", 400),
        ("offset=-1", 400),
        ("offset=18446744073709551615", 200),
        ("catalog_id=x", 400),
        ("path=%00", 400),
        ("path=%25%27", 200),
    ] {
        let path = format!("/api/executions?{query}");
        let (answered, body) = get(&app, &path).answer().await;
        assert_eq!(answered, status, "{query}");
        assert_eq!(status == 400, body["code"] == "invalid_query", "{query}: {body}");
    }
    for query in ["events?after=-1", "events?limit=x", "?page=x", "?page_size=-1"] {
        let path = format!("/api/executions/1/{query}").replace("/?", "?");
        assert_eq!(get(&app, &path).answer().await.0, 400, "{query}");
    }
    let force = post(&app, "/api/catalog/register?force=perhaps", "{}").answer().await;
    assert_eq!((force.0, &force.1["code"]), (400, &"invalid_query".into()));
    app.close().await;
}

#[tokio::test]
async fn deeply_nested_json_is_refused_without_a_crash() {
    let app = TestApp::start(0).await;
    let deep = format!(r#"{{"payload":{{"a":{}{}}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(post(&app, "/api/execute", deep).answer().await.0, 400);
    assert_eq!(get(&app, "/health").answer().await.0, 200);
    app.close().await;
}

#[tokio::test]
async fn a_compressed_body_is_not_decompressed() {
    let app = TestApp::start(0).await;
    // The body is read as it was sent, regardless of its content encoding.
    for (body, status) in [("\u{1f}\u{8b}\u{8}", 400), (r#"{"path":"nowhere"}"#, 404)] {
        let sent = post(&app, "/api/execute", body).header("content-encoding", "gzip");
        assert_eq!(sent.answer().await.0, status, "{body}");
    }
    app.close().await;
}

#[tokio::test]
async fn nul_characters_are_refused_in_every_body() {
    let app = TestApp::start(0).await;
    let event = r#"{"execution_id":1,"step":"a","event_type":"x","payload":{"k":"\u0000"}}"#;
    assert_snapshot!(post(&app, "/api/events", event).shown().await, @r#"
    422
    {
      "error": "text must not hold NUL characters",
      "status": 422,
      "code": "nul_character",
      "detail": "text must not hold NUL characters",
      "message": "text must not hold NUL characters"
    }
    "#);
    for (path, body) in [
        ("/api/execute", r#"{"path":"a\u0000"}"#),
        ("/api/execute", r#"{"path":"a","payload":{"\u0000":1}}"#),
        ("/api/catalog/register", r#"{"content":"a: \u0000"}"#),
        ("/api/catalog/register", r#"{"content":"AAAA"}"#),
        ("/api/catalog/resource", r#"{"path":"\u0000"}"#),
        ("/api/commands/1/claim", r#"{"worker_id":"\u0000"}"#),
        ("/api/events/batch", r#"{"execution_id":1,"worker_id":"\u0000","events":[]}"#),
    ] {
        assert_eq!(post(&app, path, body).answer().await.0, 422, "{path} {body}");
    }
    app.close().await;
}

#[tokio::test]
async fn engine_events_reported_by_clients_change_no_state() {
    let app = TestApp::start(0).await;
    let id = started(&app).await;
    for (event_type, step) in [
        ("playbook.completed", "playbook"),
        ("playbook_failed", "playbook"),
        ("step.exit", "start"),
        ("command.issued", "start"),
        ("command.cancelled", "start"),
        ("ctx.updated", "start"),
        ("subscription.activated", "start"),
        ("call.done", "__orchestrate__"),
        ("", "start"),
        ("   ", "start"),
        ("two words", "start"),
        ("é", "start"),
    ] {
        let body =
            serde_json::json!({ "execution_id": id, "step": step, "event_type": event_type });
        let (status, body) = post(&app, "/api/events", body.to_string()).answer().await;
        assert_eq!(status, 422, "{event_type}: {body}");
    }
    let (_, status) = get(&app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!(status["status"], "RUNNING");
    app.close().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let options = Options { silence: Duration::from_millis(50), ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let address = app.base.strip_prefix("http://").expect("an address");
    let mut silent = TcpStream::connect(address).await.expect("a connection");
    let mut received = Vec::new();
    // Without a limit this would never end.
    silent.read_to_end(&mut received).await.expect("an end");
    assert_eq!(received, b"");
    app.close().await;
}

#[tokio::test]
async fn health_responds_under_any_load() {
    let options = Options { requests_max: 0, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    assert_eq!(get(&app, "/api/executions").answer().await.0, 503);
    for path in ["/health", "/metrics"] {
        assert_eq!(get(&app, path).send().await.status(), 200, "{path}");
    }
    app.close().await;
}
