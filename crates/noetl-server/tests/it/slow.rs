//! Clients that send slowly, over real sockets: whom they keep out, and when they are given up.

use std::time::Duration;

use noetl_secrets::Role;
use noetl_server::{Auth, Options};
use noetl_test_app::TestApp;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::api::{get, post};
use crate::roles::token;

async fn start(options: Options) -> TestApp {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..options };
    TestApp::builder().slots(0).options(options).start().await
}

async fn connect(app: &TestApp) -> TcpStream {
    let address = app.base.strip_prefix("http://").expect("an address");
    TcpStream::connect(address).await.expect("a connection")
}

/// Sends a head that promises a body of 100 bytes, and one byte of it.
async fn slow_body(app: &TestApp) -> TcpStream {
    let mut stream = connect(app).await;
    let head = "POST /api/auth/session/validate HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.expect("a head that is sent");
    stream
}

/// Waits until the server answers an anonymous body with this status.
async fn until_anonymous_bodies_get(app: &TestApp, wanted: u16) -> Value {
    loop {
        let (status, body) = post(app, "/api/auth/session/validate", "{}").answer().await;
        if status == wanted {
            return body;
        }
        tokio::task::yield_now().await;
    }
}

/// Reads one response with a body of known length, and returns its text.
async fn response(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
            });
            if length.is_some_and(|length| body.len() >= length) {
                return text;
            }
        }
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.expect("a response");
        assert_ne!(count, 0, "the connection ended after: {text}");
        read.extend_from_slice(&piece[..count]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn anonymous_slow_bodies_at_the_limit_block_neither_authenticated_callers_nor_health() {
    const SLOW: usize = 16;
    let app = start(Options {
        requests_max: SLOW,
        anonymous_max: SLOW,
        body_timeout: Duration::from_secs(600),
        body_min_rate: 0,
        request_timeout: Duration::from_secs(600),
        ..Options::default()
    })
    .await;
    let mut slow = Vec::new();
    for _ in 0..2 * SLOW {
        slow.push(slow_body(&app).await);
    }
    let refused = until_anonymous_bodies_get(&app, 503).await;
    assert_eq!(refused["code"], "too_many_requests");
    let viewer = token(&app, "default", Role::Viewer).await;
    let listed = get(&app, "/api/executions").header("authorization", &viewer);
    assert_eq!(listed.answer().await.0, 200);
    let sent = post(&app, "/api/catalog/list", "{}").header("authorization", &viewer);
    assert_eq!(sent.answer().await.0, 200, "a body of a known caller");
    for path in ["/health", "/api/health", "/metrics", "/api/openapi.json", "/api/auth/mode"] {
        assert_eq!(get(&app, path).send().await.status(), 200, "{path}");
    }
    drop(slow);
    until_anonymous_bodies_get(&app, 200).await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_with_wrong_tokens_are_refused_without_a_permit() {
    let app = start(Options { anonymous_max: 2, ..Options::default() }).await;
    let mut sent = Vec::new();
    for _ in 0..8 {
        let mut stream = connect(&app).await;
        let head = "POST /api/execute HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer \
                    noetl_0000000000000000_x\r\ncontent-length: 100\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.expect("a head that is sent");
        sent.push(stream);
    }
    for stream in &mut sent {
        assert!(response(stream).await.starts_with("HTTP/1.1 401"));
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_timeout_is_reported_with_a_reason() {
    let app =
        start(Options { body_timeout: Duration::from_millis(50), ..Options::default() }).await;
    let mut slow = slow_body(&app).await;
    let answer = response(&mut slow).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains(r#""code":"body_too_slow""#), "{answer}");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_with_incomplete_heads_do_not_block_others() {
    let app = start(Options { connections_max: 4, ..Options::default() }).await;
    let viewer = token(&app, "default", Role::Viewer).await;
    let mut known = connect(&app).await;
    let ask =
        format!("GET /api/whoami HTTP/1.1\r\nhost: localhost\r\nauthorization: {viewer}\r\n\r\n");
    known.write_all(ask.as_bytes()).await.expect("a request that is sent");
    assert!(response(&mut known).await.starts_with("HTTP/1.1 200"));
    let mut slow = Vec::new();
    for _ in 0..16 {
        let mut stream = connect(&app).await;
        // An old one may have been closed to make room for this one.
        let _ = stream.write_all(b"GET /health HTTP/1.1\r\nhost: loc").await;
        slow.push(stream);
        assert_eq!(get(&app, "/health").send().await.status(), 200);
    }
    known.write_all(ask.as_bytes()).await.expect("a connection that stays open");
    assert!(response(&mut known).await.starts_with("HTTP/1.1 200"));
    app.close().await;
}
