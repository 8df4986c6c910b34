use insta::assert_snapshot;
use noetl_server::{CorsOrigins, Options};
use noetl_test_app::TestApp;
use reqwest::Method;

use crate::api::{Ask, ask, get, post};

/// The headers that browsers go by, and the status.
async fn seen(ask: Ask<'_>) -> String {
    let response = ask.send().await;
    let mut lines = vec![response.status().as_u16().to_string()];
    for name in ["access-control-allow-origin", "access-control-allow-headers", "vary"] {
        let value = response.headers().get(name).map(|value| value.to_str().expect("text"));
        lines.push(format!("{name}: {}", value.unwrap_or("-")));
    }
    lines.join("\n")
}

#[tokio::test]
async fn a_host_header_of_another_machine_is_refused() {
    let app = TestApp::start(0).await;
    assert_snapshot!(get(&app, "/health").header("host", "evil.example").shown().await, @r#"
    403
    {
      "error": "this control plane answers only to localhost, 127.0.0.1 and [::1]",
      "status": 403,
      "code": "host_not_allowed",
      "detail": "this control plane answers only to localhost, 127.0.0.1 and [::1]",
      "message": "this control plane answers only to localhost, 127.0.0.1 and [::1]"
    }
    "#);
    for host in ["localhost", "localhost:1", "127.0.0.1:9", "[::1]:80"] {
        assert_eq!(get(&app, "/health").header("host", host).answer().await.0, 200, "{host}");
    }
    for host in ["localhost.evil.example", "127.0.0.1.nip.io", "0.0.0.0", "10.0.0.1:8082"] {
        assert_eq!(get(&app, "/health").header("host", host).answer().await.0, 403, "{host}");
    }
    app.close().await;
}

#[tokio::test]
async fn any_host_header_is_accepted_if_the_operator_permits_it() {
    let options = Options { allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    assert_eq!(get(&app, "/health").header("host", "noetl.example").answer().await.0, 200);
    // A page of the same server is no stranger.
    let own = post(&app, "/api/catalog/list", "{}").header("host", "noetl.example");
    assert_eq!(own.header("origin", "https://noetl.example").answer().await.0, 200);
    app.close().await;
}

/// Returns the CORS preflight that a browser sends before a page of another origin starts an
/// execution.
fn preflight<'a>(app: &'a TestApp, page: &str) -> Ask<'a> {
    ask(app, Method::OPTIONS, "/api/execute")
        .header("origin", page)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type")
}

#[tokio::test]
async fn a_page_on_another_local_port_has_another_origin() {
    let page = "http://localhost:3000";
    let app = TestApp::start(0).await;
    let seen_here = seen(get(&app, "/health").header("origin", page)).await;
    assert!(seen_here.contains("access-control-allow-origin: -"), "{seen_here}");
    let asked = seen(preflight(&app, page)).await;
    assert!(asked.contains("access-control-allow-origin: -"), "{asked}");
    let change = post(&app, "/api/executions/1/cancel", "").header("origin", page);
    assert_eq!(change.answer().await.1["code"], "origin_not_allowed");
    app.close().await;
    let cors_origins = CorsOrigins::Listed(vec![page.to_owned()]);
    let options = Options { cors_origins, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    assert_snapshot!(seen(preflight(&app, page)).await, @r#"
    200
    access-control-allow-origin: http://localhost:3000
    access-control-allow-headers: content-type
    vary: origin, access-control-request-method, access-control-request-headers
    "#);
    app.close().await;
}

#[tokio::test]
async fn pages_of_other_origins_can_neither_read_nor_change() {
    let app = TestApp::start(0).await;
    let page = "https://evil.example";
    assert_snapshot!(seen(get(&app, "/health").header("origin", page)).await, @r#"
    200
    access-control-allow-origin: -
    access-control-allow-headers: -
    vary: origin, access-control-request-method, access-control-request-headers
    "#);
    let preflight = ask(&app, Method::OPTIONS, "/api/execute").header("origin", page);
    assert_snapshot!(seen(preflight).await, @r#"
    200
    access-control-allow-origin: -
    access-control-allow-headers: -
    vary: origin, access-control-request-method, access-control-request-headers
    "#);
    let change = post(&app, "/api/executions/1/cancel", "").header("origin", page);
    assert_snapshot!(change.shown().await, @r#"
    403
    {
      "error": "pages of this origin may not change anything here",
      "status": 403,
      "code": "origin_not_allowed",
      "detail": "pages of this origin may not change anything here",
      "message": "pages of this origin may not change anything here"
    }
    "#);
    let sandboxed = post(&app, "/api/executions/1/cancel", "").header("origin", "null");
    assert_eq!(sandboxed.answer().await.0, 403);
    app.close().await;
}

#[tokio::test]
async fn the_operator_extends_the_allowed_origins() {
    let origins = CorsOrigins::Listed(vec!["https://noetl.example/".to_owned()]);
    let options = Options { cors_origins: origins, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let listed = post(&app, "/api/catalog/list", "{}").header("origin", "https://noetl.example");
    assert_eq!(listed.answer().await.0, 200);
    let other = post(&app, "/api/catalog/list", "{}").header("origin", "https://other.example");
    assert_eq!(other.answer().await.0, 403);
    app.close().await;

    let options = Options { cors_origins: CorsOrigins::Any, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let any = get(&app, "/health").header("origin", "https://other.example");
    assert_snapshot!(seen(any).await, @r#"
    200
    access-control-allow-origin: *
    access-control-allow-headers: -
    vary: origin, access-control-request-method, access-control-request-headers
    "#);
    app.close().await;
}
