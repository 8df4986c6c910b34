use insta::assert_snapshot;
use noetl_server::Options;
use noetl_test_app::TestApp;
use reqwest::Method;

use crate::api::{ask, get, post};

#[tokio::test]
async fn unknown_routes_respond_with_json() {
    let app = TestApp::start(0).await;
    assert_snapshot!(get(&app, "/api/nothing").shown().await, @r#"
    404
    {
      "error": "there is nothing at /api/nothing",
      "status": 404,
      "code": "unknown_path",
      "detail": "there is nothing at /api/nothing",
      "message": "there is nothing at /api/nothing"
    }
    "#);
    assert_snapshot!(get(&app, "/api/execute").shown().await, @r#"
    405
    {
      "error": "GET is not possible at /api/execute",
      "status": 405,
      "code": "method_not_allowed",
      "detail": "GET is not possible at /api/execute",
      "message": "GET is not possible at /api/execute"
    }
    "#);
    let response = ask(&app, Method::DELETE, "/api/executions/1").send().await;
    assert_eq!(response.headers()["allow"], "GET,HEAD");
    app.close().await;
}

#[tokio::test]
async fn an_invalid_json_body_is_reported_with_the_cause() {
    let app = TestApp::start(0).await;
    let untyped = ask(&app, Method::POST, "/api/execute").body("{}");
    assert_snapshot!(untyped.shown().await, @r#"
    415
    {
      "error": "Expected request with `Content-Type: application/json`",
      "status": 415,
      "code": "unsupported_media_type",
      "detail": "Expected request with `Content-Type: application/json`",
      "message": "Expected request with `Content-Type: application/json`"
    }
    "#);
    assert_snapshot!(post(&app, "/api/execute", "{").shown().await, @r#"
    400
    {
      "error": "Failed to parse the request body as JSON: EOF while parsing an object at line 1 column 1",
      "status": 400,
      "code": "malformed_json",
      "detail": "Failed to parse the request body as JSON: EOF while parsing an object at line 1 column 1",
      "message": "Failed to parse the request body as JSON: EOF while parsing an object at line 1 column 1"
    }
    "#);
    assert_snapshot!(post(&app, "/api/execute", "").shown().await, @r#"
    400
    {
      "error": "Failed to parse the request body as JSON: EOF while parsing a value at line 1 column 0",
      "status": 400,
      "code": "malformed_json",
      "detail": "Failed to parse the request body as JSON: EOF while parsing a value at line 1 column 0",
      "message": "Failed to parse the request body as JSON: EOF while parsing a value at line 1 column 0"
    }
    "#);
    assert_snapshot!(post(&app, "/api/execute", r#"{"path":1}"#).shown().await, @r#"
    422
    {
      "error": "Failed to deserialize the JSON body into the target type: path: invalid type: integer `1`, expected a string at line 1 column 9",
      "status": 422,
      "code": "invalid_body",
      "detail": "Failed to deserialize the JSON body into the target type: path: invalid type: integer `1`, expected a string at line 1 column 9",
      "message": "Failed to deserialize the JSON body into the target type: path: invalid type: integer `1`, expected a string at line 1 column 9"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let options = Options { body_limit: 64, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let large = format!(r#"{{"path":"{}"}}"#, "x".repeat(100));
    assert_snapshot!(post(&app, "/api/execute", large).shown().await, @r#"
    413
    {
      "error": "Failed to buffer the request body: length limit exceeded",
      "status": 413,
      "code": "body_too_large",
      "detail": "Failed to buffer the request body: length limit exceeded",
      "message": "Failed to buffer the request body: length limit exceeded"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn clients_receive_the_rejection_of_a_large_body() {
    let app = TestApp::start(0).await;
    for mebibytes in [3, 8] {
        let large = format!(r#"{{"path":"{}"}}"#, "x".repeat(mebibytes << 20));
        let (status, body) = post(&app, "/api/execute", large).answer().await;
        assert_eq!((status, &body["code"]), (413, &"body_too_large".into()));
    }
    app.close().await;
}

#[tokio::test]
async fn an_invalid_parameter_is_reported_by_name() {
    let app = TestApp::start(0).await;
    assert_snapshot!(get(&app, "/api/executions/abc").shown().await, @r#"
    400
    {
      "error": "Invalid URL: Cannot parse `abc` to a `i64`",
      "status": 400,
      "code": "invalid_path",
      "detail": "Invalid URL: Cannot parse `abc` to a `i64`",
      "message": "Invalid URL: Cannot parse `abc` to a `i64`"
    }
    "#);
    let query = "/api/executions?limit=-1";
    assert_snapshot!(get(&app, query).shown().await, @r#"
    400
    {
      "error": "limit must be a whole number of at least 0",
      "status": 400,
      "code": "invalid_query",
      "detail": "limit must be a whole number of at least 0",
      "message": "limit must be a whole number of at least 0"
    }
    "#);
    assert_snapshot!(get(&app, "/api/executions?status=odd").shown().await, @r#"
    400
    {
      "error": "status must be RUNNING, COMPLETED, FAILED or CANCELLED",
      "status": 400,
      "code": "invalid_query",
      "detail": "status must be RUNNING, COMPLETED, FAILED or CANCELLED",
      "message": "status must be RUNNING, COMPLETED, FAILED or CANCELLED"
    }
    "#);
    let twice = "/api/executions?limit=1&limit=2";
    assert_snapshot!(get(&app, twice).shown().await, @r#"
    400
    {
      "error": "Failed to deserialize query string: duplicate field `limit`",
      "status": 400,
      "code": "invalid_query",
      "detail": "Failed to deserialize query string: duplicate field `limit`",
      "message": "Failed to deserialize query string: duplicate field `limit`"
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_store_outage_is_reported_as_unavailable_without_internal_details() {
    let app = TestApp::start(0).await;
    app.store.set_down(true);
    for path in ["/api/executions", "/api/executions/1", "/api/executions/1/status"] {
        let response = get(&app, path).send().await;
        assert_eq!(response.status().as_u16(), 503, "{path}");
        assert_eq!(response.headers()["retry-after"], "1", "{path}");
        let body = response.text().await.expect("a body");
        assert!(!body.contains("secret"), "{body}");
    }
    let execute = post(&app, "/api/execute", r#"{"path":"tests/greet"}"#);
    assert_snapshot!(execute.shown().await, @r#"
    503
    {
      "error": "the database does not answer",
      "status": 503,
      "code": "store_unavailable",
      "detail": "the database does not answer",
      "message": "the database does not answer"
    }
    "#);
    let event = r#"{"execution_id":1,"step":"a","event_type":"x"}"#;
    assert_eq!(post(&app, "/api/events", event).answer().await.0, 503);
    assert_eq!(post(&app, "/api/commands/1/claim", r#"{"worker_id":"w"}"#).answer().await.0, 503);
    app.close().await;
}

#[tokio::test]
async fn errors_of_the_typed_client_have_status_and_code() {
    let app = TestApp::start(0).await;
    let error = app.client.status(noetl_model::ExecutionId::new(1)).await.expect_err("unknown");
    assert_eq!(error.status(), Some(404));
    let noetl_api::ClientError::Refused { body, .. } = error else { panic!("a refusal") };
    assert_eq!(body.code, "execution_not_found");
    app.close().await;
}
