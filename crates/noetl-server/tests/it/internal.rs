use std::sync::{Arc, Mutex};

use noetl_server::{InternalToken, Options};
use noetl_test_app::TestApp;
use reqwest::Method;

use crate::api::{TOKEN, ask, get, post, post_as_system, system_app};

/// Internal routes of published control planes that answer 501 here.
const ABSENT: [(&str, &str); 5] = [
    ("POST", "/api/internal/result-tier/gc"),
    ("POST", "/api/internal/registry/register"),
    ("GET", "/api/internal/registry/list"),
    ("GET", "/api/internal/registry/resolve?ref=a"),
    ("POST", "/api/internal/cross-region/resolve"),
];

/// Every internal route with its verb.
const ROUTES: [(&str, &str); 10] = [
    ("POST", "/api/internal/outbox/claim"),
    ("POST", "/api/internal/outbox/mark-published"),
    ("POST", "/api/internal/outbox/mark-failed"),
    ("GET", "/api/internal/outbox/pending-count"),
    ("POST", "/api/internal/events/project"),
    ("POST", "/api/internal/events/materialize"),
    ("POST", "/api/internal/projection/advance"),
    ("POST", "/api/internal/cleanup/purge"),
    ("GET", "/api/internal/ingress/orders"),
    ("POST", "/api/internal/container-callback/1/start"),
];

#[tokio::test]
async fn internal_routes_reject_requests_without_a_token() {
    let app = TestApp::start(0).await;
    for (verb, path) in ROUTES {
        let verb = Method::from_bytes(verb.as_bytes()).expect("a verb");
        let ask = ask(&app, verb, path).header("authorization", "Bearer letmein");
        let (status, body) = ask.answer().await;
        assert_eq!((status, &body["code"]), (503, &"internal_token_unset".into()), "{path}");
        assert!(body["error"].as_str().is_some_and(|e| e.contains("NOETL_INTERNAL_API_TOKEN")));
    }
    app.close().await;
}

#[tokio::test]
async fn the_token_is_checked_before_the_body_and_its_type() {
    let app = system_app().await;
    for (verb, path) in ROUTES {
        let verb = Method::from_bytes(verb.as_bytes()).expect("a verb");
        let ask = ask(&app, verb, path).header("content-type", "text/plain").body("{not json");
        let (status, body) = ask.answer().await;
        assert_eq!((status, &body["code"]), (403, &"internal_token_missing".into()), "{path}");
        assert_eq!(body["status"], 403);
    }
    let wrong = post(&app, ROUTES[0].1, "{}").header("authorization", "Bearer other");
    let (status, body) = wrong.answer().await;
    assert_eq!((status, &body["error"]), (403, &"Invalid service-account token".into()));
    app.close().await;
}

#[tokio::test]
async fn unsupported_internal_routes_check_the_token_first() {
    let app = system_app().await;
    let right = format!("Bearer {TOKEN}");
    for (verb, path) in ABSENT {
        let verb = Method::from_bytes(verb.as_bytes()).expect("a verb");
        let send = |token: Option<&str>| {
            let sent = ask(&app, verb.clone(), path).body("{}");
            match token {
                Some(token) => sent.header("authorization", token),
                None => sent,
            }
        };
        let (status, body) = send(None).answer().await;
        assert_eq!((status, &body["code"]), (403, &"internal_token_missing".into()), "{path}");
        let (status, body) = send(Some("Bearer other")).answer().await;
        assert_eq!((status, &body["code"]), (403, &"internal_token_wrong".into()), "{path}");
        let (status, body) = send(Some(&right)).answer().await;
        assert_eq!((status, &body["code"]), (501, &"not_built".into()), "{path}");
    }
    app.close().await;
}

#[tokio::test]
async fn a_wrong_method_on_an_internal_route_is_reported_only_with_the_token() {
    let app = system_app().await;
    for path in ["/api/internal/outbox/claim", "/api/internal/result-tier/gc"] {
        let (status, body) = get(&app, path).answer().await;
        assert_eq!((status, &body["code"]), (403, &"internal_token_missing".into()), "{path}");
        let sent = get(&app, path).header("authorization", &format!("Bearer {TOKEN}"));
        assert_eq!(sent.send().await.status(), 405, "{path}");
    }
    app.close().await;
}

#[tokio::test]
async fn the_token_can_change_while_the_server_runs() {
    let token = Arc::new(Mutex::new("one".to_owned()));
    let read = token.clone();
    let read = move || read.lock().ok().map(|token| token.clone());
    let options = Options { internal_token: InternalToken::read_by(read), ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let count = async |token: &str| {
        let header = format!("Bearer {token}");
        let ask = get(&app, "/api/internal/outbox/pending-count").header("authorization", &header);
        ask.answer().await.0
    };
    assert_eq!((count("one").await, count("two").await), (200, 403));
    *token.lock().expect("a lock") = " two\n".to_owned();
    assert_eq!((count("one").await, count("two").await), (403, 200));
    app.close().await;
}

#[tokio::test]
async fn public_routes_need_no_internal_token() {
    let app = system_app().await;
    assert_eq!(get(&app, "/api/executions").answer().await.0, 200);
    assert_eq!(post_as_system(&app, "/api/internal/nothing", "{}").answer().await.0, 404);
    app.close().await;
}

#[tokio::test]
async fn bodies_that_are_not_json_are_refused_on_every_route() {
    let app = system_app().await;
    for (verb, path) in ROUTES {
        if verb == "GET" {
            continue;
        }
        let (status, body) = post_as_system(&app, path, "nope").answer().await;
        assert_eq!((status, &body["code"]), (400, &"malformed_json".into()), "{path}");
        let (status, _) = post_as_system(&app, path, "").answer().await;
        assert_eq!(status, 400, "{path}");
        let text = ask(&app, Method::POST, path)
            .header("authorization", &format!("Bearer {TOKEN}"))
            .header("content-type", "text/plain")
            .body("{}");
        assert_eq!(text.answer().await.0, 415, "{path}");
    }
    app.close().await;
}

#[tokio::test]
async fn every_route_reports_an_unavailable_store() {
    let app = system_app().await;
    app.store.set_down(true);
    let bodies = [
        ("/api/internal/outbox/claim", "{}"),
        ("/api/internal/outbox/mark-published", r#"{"outbox_ids":[1]}"#),
        ("/api/internal/outbox/mark-failed", r#"{"outbox_id":1,"error":"x"}"#),
        ("/api/internal/events/project", r#"{"events":[{"event_id":1,"execution_id":2}]}"#),
        (
            "/api/internal/events/materialize",
            r#"[{"execution_id":2,"step":"a","event_type":"note","event_id":1}]"#,
        ),
        ("/api/internal/cleanup/purge", "{}"),
    ];
    for (path, body) in bodies {
        let (status, body) = post_as_system(&app, path, body).answer().await;
        assert_eq!((status, &body["code"]), (503, &"store_unavailable".into()), "{path}: {body}");
        assert!(!body.to_string().contains("secret"), "{body}");
    }
    app.store.set_down(false);
    app.close().await;
}
