use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect};
use axum::routing::{any, get};
use noetl_model::{FailureKind, Value};
use serde_json::json;
use tokio::net::TcpListener;

use crate::harness::{call, detail, map, registry, run};

/// Starts a server and answers with its address.
async fn serve() -> String {
    let router = Router::new()
        .route("/echo", any(echo))
        .route("/text", get(|| async { "grün" }))
        .route("/bytes", get(|| async { ([(header::CONTENT_TYPE, "image/png")], vec![0x89, 1]) }))
        .route("/empty", get(|| async { StatusCode::NO_CONTENT }))
        .route("/twice", get(|| async { AppendHeaders([("x-a", "1"), ("x-a", "2")]) }))
        .route("/redirect", get(|| async { Redirect::to("/text") }))
        .route("/to/{code}", any(to))
        .route("/loop", get(|| async { Redirect::to("/loop") }))
        .route("/slow", get(std::future::pending::<()>))
        .route("/huge", get(|| async { vec![b'x'; 17 * 1024 * 1024] }))
        .route("/packed", get(packed))
        .route("/huge-error", get(|| async { (StatusCode::BAD_REQUEST, vec![b'x'; 1 << 20]) }))
        .route("/busy", get(|| async { (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "7")]) }))
        .route("/status/{code}", get(status));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn echo(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    axum::Json(json!({
        "method": method.as_str(),
        "query": uri.query(),
        "type": header("content-type"),
        "auth": header("authorization"),
        "custom": header("x-custom"),
        "key": header("x-api-key"),
        "cookie": header("cookie"),
        "referer": header("referer"),
        "accept": header("accept"),
        "body": String::from_utf8(body.to_vec()).unwrap(),
    }))
}

/// Redirects with a status to the address in the query.
async fn to(axum::extract::Path(code): axum::extract::Path<u16>, uri: Uri) -> impl IntoResponse {
    let address = uri.query().unwrap_or_default().to_owned();
    (StatusCode::from_u16(code).unwrap(), [(header::LOCATION, address)])
}

/// Returns a few kilobytes that decompress to 64 MiB.
async fn packed() -> impl IntoResponse {
    let command = "head -c 67108864 /dev/zero | gzip -9";
    let made = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
    ([(header::CONTENT_ENCODING, "gzip"), (header::CONTENT_TYPE, "text/plain")], made.stdout)
}

async fn status(axum::extract::Path(code): axum::extract::Path<u16>) -> impl IntoResponse {
    (StatusCode::from_u16(code).unwrap(), axum::Json(json!({"why": "because"})))
}

/// Returns the request that the server received from a call with these settings.
async fn echoed(config: Value) -> Value {
    echoed_with(config, json!({})).await
}

async fn echoed_with(mut config: Value, input: Value) -> Value {
    config["url"] = format!("{}/echo?z=0", serve().await).into();
    let mut step = call(config);
    step.input = map(input);
    registry().run("http", step).await.unwrap()["data"].take()
}

#[tokio::test]
async fn a_response_has_its_body_under_both_names() {
    let base = serve().await;
    let answer = run("http", json!({"endpoint": format!("{base}/status/200")})).await.unwrap();
    assert_eq!(answer["status_code"], 200);
    assert_eq!(answer["headers"]["content-type"], "application/json");
    assert_eq!(answer["data"], json!({"why": "because"}));
    assert_eq!(answer["body"], answer["data"]);
}

#[tokio::test]
async fn bodies_that_are_not_json_are_text_base64_or_null() {
    let base = serve().await;
    let get = |path: &str| run("http", json!({"url": format!("{base}{path}")}));
    assert_eq!(get("/text").await.unwrap()["data"], "grün");
    let bytes = get("/bytes").await.unwrap();
    assert_eq!((&bytes["data"], &bytes["encoding"]), (&json!("iQE="), &json!("base64")));
    assert_eq!(get("/empty").await.unwrap()["data"], Value::Null);
    assert_eq!(get("/twice").await.unwrap()["headers"]["x-a"], "1, 2");
    let config = json!({"url": format!("{base}/text"), "response_type": "json"});
    assert_eq!(run("http", config).await.unwrap_err().kind, FailureKind::Parse);
}

#[tokio::test]
async fn the_query_comes_from_params_and_from_data() {
    let got = echoed(json!({"params": {"a": [1, 2], "b": "c d"}})).await;
    assert_eq!(got["query"], "z=0&a=1&a=2&b=c+d");
    let got = echoed(json!({"data": {"query": {"q": true}}})).await;
    assert_eq!((&got["query"], &got["body"]), (&json!("z=0&q=true"), &json!("")));
}

#[tokio::test]
async fn bodies_are_encoded_by_their_key() {
    for (config, content_type, body) in [
        (json!({"json": {"a": 1}}), json!("application/json"), "{\"a\":1}"),
        (json!({"payload": [1]}), json!("application/json"), "[1]"),
        (json!({"data": {"a": 1}}), json!("application/json"), "{\"a\":1}"),
        (json!({"body": "raw"}), json!("text/plain; charset=utf-8"), "raw"),
        (json!({"body": "{}"}), json!("application/json"), "{}"),
        (json!({"form": {"a": "b c"}}), json!("application/x-www-form-urlencoded"), "a=b+c"),
        (json!({"headers": {"Content-Type": "x/y"}, "body": "raw"}), json!("x/y"), "raw"),
        (json!({}), Value::Null, ""),
    ] {
        let mut config = config;
        config["method"] = "post".into();
        let got = echoed(config).await;
        assert_eq!((&got["type"], &got["body"]), (&content_type, &json!(body)));
        assert_eq!(got["method"], "POST");
    }
}

#[tokio::test]
async fn input_is_the_body_unless_another_is_set() {
    let input = json!({"a": 1});
    let got = echoed_with(json!({"method": "PUT"}), input.clone()).await;
    assert_eq!(got["body"], "{\"a\":1}");
    assert_eq!(echoed_with(json!({"method": "GET"}), input.clone()).await["body"], "");
    let got = echoed_with(json!({"method": "PUT", "body": "x"}), input).await;
    assert_eq!(got["body"], "x");
}

#[tokio::test]
async fn headers_and_inline_credentials_are_sent() {
    let got = echoed(json!({
        "headers": {"X-Custom": 5},
        "auth": {"type": "bearer", "token": "t"},
    }))
    .await;
    assert_eq!((&got["custom"], &got["auth"]), (&json!("5"), &json!("Bearer t")));
    let auth = json!({"type": "basic", "username": "u", "password": "p"});
    assert_eq!(echoed(json!({"auth": auth})).await["auth"], "Basic dTpw");
}

#[tokio::test]
async fn redirects_are_followed_unless_disabled() {
    let base = serve().await;
    let url = format!("{base}/redirect");
    assert_eq!(run("http", json!({"url": url})).await.unwrap()["data"], "grün");
    let answer = run("http", json!({"url": url, "follow_redirects": false})).await.unwrap();
    assert_eq!(
        (&answer["status_code"], &answer["headers"]["location"]),
        (&json!(303), &json!("/text"))
    );
    let failure = run("http", json!({"url": format!("{base}/loop")})).await.unwrap_err();
    assert_eq!(failure.message, "127.0.0.1 redirected more than 10 times");
}

/// Settings with secrets in headers of several names.
fn with_secrets(url: String) -> Value {
    json!({
        "url": url,
        "auth": {"type": "api_key", "value": "k3y"},
        "headers": {
            "Authorization": "Bearer t0ken",
            "Cookie": "session=1",
            "X-Custom": "s3cret",
            "Accept": "application/json",
        },
    })
}

#[tokio::test]
async fn a_redirect_to_another_origin_carries_no_credential_and_no_referer() {
    let (here, there) = (serve().await, serve().await);
    for code in [301, 302, 303, 307, 308] {
        let away = format!("{here}/to/{code}?{there}/echo");
        let seen = &run("http", with_secrets(away)).await.unwrap()["data"];
        for secret in ["auth", "key", "cookie", "custom", "referer"] {
            assert_eq!(seen[secret], Value::Null, "{code}: {secret}");
        }
        assert_eq!(seen["accept"], "application/json", "{code}");
    }
    // There and back is another origin twice: what was dropped does not return.
    let around = format!("{here}/to/302?{there}/to/302?{here}/echo");
    let seen = &run("http", with_secrets(around)).await.unwrap()["data"];
    assert_eq!((&seen["auth"], &seen["key"]), (&Value::Null, &Value::Null));
    let near = format!("{here}/to/302?/echo");
    let seen = &run("http", with_secrets(near)).await.unwrap()["data"];
    assert_eq!((&seen["auth"], &seen["key"]), (&json!("Bearer t0ken"), &json!("k3y")));
    assert_eq!(seen["referer"], Value::Null, "of the same origin");
}

#[tokio::test]
async fn a_redirect_obeys_the_egress_policy() {
    let base = serve().await;
    for code in [302, 307] {
        // Refused by default; connecting to it would fail in another way.
        let url = format!("{base}/to/{code}?http://169.254.169.254/latest/meta-data");
        let failure = run("http", json!({"url": url, "timeout": 5})).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Config, "{failure:?}");
        assert!(failure.message.contains("169.254.169.254"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_body_is_not_resent_to_another_origin() {
    let (here, there) = (serve().await, serve().await);
    let post = |url: String| json!({"url": url, "method": "POST", "json": {"password": "s3cret"}});
    for code in [307, 308] {
        let away = post(format!("{here}/to/{code}?{there}/echo"));
        let failure = run("http", away).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::ClientError, "{failure:?}");
        assert!(failure.message.contains("another origin"), "{failure:?}");
        let near = run("http", post(format!("{here}/to/{code}?/echo"))).await.unwrap();
        let seen = (&near["data"]["method"], &near["data"]["body"]);
        assert_eq!(seen, (&json!("POST"), &json!(r#"{"password":"s3cret"}"#)));
    }
    for code in [301, 302, 303] {
        let seen = run("http", post(format!("{here}/to/{code}?{there}/echo"))).await.unwrap();
        let seen = &seen["data"];
        assert_eq!((&seen["method"], &seen["body"]), (&json!("GET"), &json!("")), "{code}");
        assert_eq!(seen["type"], Value::Null, "{code}");
    }
}

#[tokio::test]
async fn a_status_decides_the_kind_of_failure() {
    let base = serve().await;
    for (status, kind, retryable) in [
        (400, FailureKind::ClientError, false),
        (401, FailureKind::Auth, false),
        (403, FailureKind::Auth, false),
        (404, FailureKind::NotFound, false),
        (422, FailureKind::ClientError, false),
        (429, FailureKind::RateLimit, true),
        (500, FailureKind::ServerError, true),
        (503, FailureKind::ServerError, true),
    ] {
        let url = format!("{base}/status/{status}");
        let failure = run("http", json!({"url": url})).await.unwrap_err();
        assert_eq!((&failure.kind, failure.retryable), (&kind, retryable));
        assert_eq!(detail(&failure, "status_code"), status);
        assert_eq!(detail(&failure, "http")["status"], status);
        assert_eq!(detail(&failure, "http")["headers"]["content-type"], "application/json");
        assert_eq!(detail(&failure, "headers"), detail(&failure, "http")["headers"]);
        assert_eq!(detail(&failure, "data"), json!({"why": "because"}));
        assert_eq!(detail(&failure, "body"), json!({"why": "because"}));
    }
    let failure = run("http", json!({"url": format!("{base}/status/404")})).await.unwrap_err();
    let details = failure.details.as_deref().and_then(Value::as_object).unwrap();
    let mut names: Vec<_> = details.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["body", "data", "headers", "http", "status_code"]);
    let failure = run("http", json!({"url": format!("{base}/busy")})).await.unwrap_err();
    assert_eq!(detail(&failure, "retry_after"), 7);
}

#[tokio::test]
async fn a_compressed_response_is_limited_by_its_decompressed_size() {
    let failure = run("http", json!({"url": format!("{}/packed", serve().await)})).await;
    assert_eq!(failure.unwrap_err().kind, FailureKind::OutputLimit);
}

#[tokio::test]
async fn an_oversized_response_is_rejected_and_an_error_page_is_truncated() {
    let base = serve().await;
    let failure = run("http", json!({"url": format!("{base}/huge")})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::OutputLimit);
    let failure = run("http", json!({"url": format!("{base}/huge-error")})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ClientError);
    assert_eq!(detail(&failure, "truncated"), true);
}

#[tokio::test]
async fn an_unreachable_server_is_a_connection_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let failure = run("http", json!({"url": format!("http://{address}")})).await.unwrap_err();
    assert_eq!((failure.kind, failure.retryable), (FailureKind::Connection, true));
    let failure = run("http", json!({"url": "http://nowhere.invalid/?token=x"})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Connection);
    assert!(!failure.message.contains("token"), "{}", failure.message);
}

#[tokio::test]
async fn a_request_to_a_slow_server_ends_on_timeout_or_cancel() {
    let url = format!("{}/slow", serve().await);
    let failure = run("http", json!({"url": url, "timeout": "50ms"})).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.message, "step 'load' took longer than its limit of 50ms");
    let mut step = call(json!({"url": url, "timeout": 100}));
    step.timeout = Some(Duration::from_millis(60));
    let failure = registry().run("http", step).await.unwrap_err();
    assert_eq!(failure.message, "step 'load' took longer than its limit of 60ms");
    let step = call(json!({"url": url}));
    let cancel = step.cancel.clone();
    let running = tokio::spawn(async move { registry().run("http", step).await });
    cancel.cancel();
    assert_eq!(running.await.unwrap().unwrap_err().kind, FailureKind::Cancelled);
}

#[tokio::test]
async fn errors_name_the_invalid_setting() {
    for (config, message) in [
        (json!({}), "an http step needs a `url`"),
        (json!({"url": "x"}), "`url` is not a URL: relative URL without a base"),
        (json!({"url": "ftp://x"}), "`url` must start with http:// or https://, not ftp:"),
        (json!({"url": "http://x", "method": "A B"}), "`method` 'A B' is not an HTTP method"),
        (
            json!({"url": "http://x", "headers": {"a b": 1}}),
            "`headers`: 'a b' is not a header name",
        ),
        (
            json!({"url": "http://x", "headers": {"a": "x\ny"}}),
            "`headers.a` holds characters that a header cannot carry",
        ),
        (
            json!({"url": "http://x", "auth": {"type": "bearer"}}),
            "credential 'auth' of type 'bearer' has no `token`",
        ),
        (
            json!({"url": "http://x", "response_type": "xml"}),
            "`response_type` must be 'json', 'text' or 'auto', not 'xml'",
        ),
    ] {
        let failure = run("http", config).await.unwrap_err();
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Config, message));
    }
    let config = json!({"url": "http://x", "auth": "my_token"});
    let failure = run("http", config).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Config);
    assert!(failure.message.contains("this worker has no credentials"));
}
