//! The web UI as browsers get it.

use noetl_server::{Options, Site, SiteFile};
use noetl_test_app::TestApp;
use reqwest::Method;

use crate::api::{Ask, ask, get};

/// The text `gzipped`, which the client decompresses itself.
const GZIPPED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xaf\xca\x2c\x28\x48\x4d\x01\x00\xe1\x64\x7d\x80\x07\x00\x00\x00";

const FILES: &[SiteFile] = &[
    SiteFile { path: "index.html", plain: b"<page>", gzip: None, brotli: None },
    SiteFile {
        path: "assets/a-1f.js",
        plain: b"plain text",
        gzip: Some(GZIPPED),
        brotli: Some(b"brotli"),
    },
    SiteFile { path: "icon.svg", plain: b"<svg/>", gzip: None, brotli: None },
];

const NOTHING: &[SiteFile] = &[];

async fn served(files: &'static [SiteFile]) -> TestApp {
    let options = Options { site: Site::from_files(files), ..Options::default() };
    TestApp::builder().slots(0).options(options).start().await
}

/// Status, the header and the body.
async fn answered(ask: Ask<'_>, header: &str) -> (u16, String, String) {
    let response = ask.send().await;
    let value = response.headers().get(header).map(|value| value.to_str().expect("text"));
    let (status, value) = (response.status().as_u16(), value.unwrap_or("-").to_owned());
    (status, value, response.text().await.expect("a body"))
}

#[tokio::test]
async fn page_routes_return_the_page() {
    let app = served(FILES).await;
    for path in ["/", "/executions", "/executions/380791883141480448?at=7", "/catalog/a/b%2Fc"] {
        let shown = get(&app, path).header("accept", "text/html,*/*;q=0.8");
        let (status, policy, body) = answered(shown, "content-security-policy").await;
        assert_eq!((status, body.as_str()), (200, "<page>"), "{path}");
        assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    }
    let (_, keep, _) = answered(get(&app, "/"), "cache-control").await;
    assert_eq!(keep, "no-cache");
    app.close().await;
}

#[tokio::test]
async fn routes_of_the_server_never_return_the_page() {
    let app = served(FILES).await;
    for path in ["/api", "/api/nothing", "/assets/gone.js", "/health/x", "/metrics/x", "/ingress"] {
        let shown = get(&app, path).header("accept", "text/html");
        assert_eq!(answered(shown, "content-type").await.1, "application/json", "{path}");
    }
    // Programs are told that there is nothing, and nothing is changed by a page.
    assert_eq!(get(&app, "/nothing").header("accept", "*/*").answer().await.0, 404);
    let posted = ask(&app, Method::POST, "/executions").header("accept", "text/html");
    assert_eq!(posted.answer().await.0, 404);
    let health = get(&app, "/health").header("accept", "text/html");
    assert_ne!(answered(health, "cache-control").await.2, "<page>");
    app.close().await;
}

#[tokio::test]
async fn assets_are_cacheable_and_compressed() {
    let app = served(FILES).await;
    let script = || get(&app, "/assets/a-1f.js");
    for (accepts, body) in [
        ("gzip, deflate, br", "brotli"),
        ("gzip", "gzipped"),
        ("identity", "plain text"),
        ("br;q=0", "plain text"),
    ] {
        let (status, _, sent) = answered(script().header("accept-encoding", accepts), "vary").await;
        assert_eq!((status, sent.as_str()), (200, body), "{accepts}");
    }
    let (_, keep, _) = answered(script(), "cache-control").await;
    assert_eq!(keep, "public, max-age=31536000, immutable");
    let (_, kind, _) = answered(script(), "content-type").await;
    assert_eq!(kind, "text/javascript; charset=utf-8");
    let vary = script().send().await;
    let vary: Vec<_> = vary.headers().get_all("vary").iter().collect();
    assert!(vary.iter().any(|value| *value == "accept-encoding"), "{vary:?}");
    assert_eq!(get(&app, "/icon.svg").answer().await.0, 200);
    app.close().await;
}

#[tokio::test]
async fn a_build_without_the_ui_explains_how_to_get_it() {
    let app = served(NOTHING).await;
    let (status, kind, body) = answered(get(&app, "/"), "content-type").await;
    assert_eq!((status, kind.as_str()), (200, "text/html; charset=utf-8"));
    assert!(body.contains("make web"), "{body}");
    assert_eq!(get(&app, "/assets/a-1f.js").answer().await.0, 404);
    assert_eq!(get(&app, "/icon.svg").answer().await.0, 404);
    app.close().await;
}
