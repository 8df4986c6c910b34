//! Quotas and rates, through the routes: what is refused, what is not, and that a refusal leaves nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use noetl_secrets::Role;
use noetl_server::{Auth, Options};
use noetl_store_sqlite::SqliteStore;
use noetl_test_app::{SimClock, TestApp};
use reqwest::Response;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::{GREET, ask, get, http, open_command, post, register, report, started};
use crate::bad_input::state::Database;
use crate::roles::token;
use crate::stores::key;
use crate::webhooks;

/// An app with these quotas, and a look at what it has written.
async fn with_quotas(quotas: &str, slots: usize) -> (TestApp, Database, TempDir) {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("noetl.db");
    let app = on_file(&file).quotas(quotas.parse().expect("quotas")).slots(slots).start().await;
    (app, Database::open(&file), directory)
}

fn on_file(file: &Path) -> noetl_test_app::TestAppBuilder {
    let store = SqliteStore::open(noetl_store_sqlite::Options::file(file)).expect("a store");
    TestApp::builder().over(Arc::new(store)).encryption_key(key())
}

/// Returns the code of a refusal and its `retry-after` in seconds.
async fn refusal(response: Response) -> (String, u64) {
    assert_eq!(response.status(), 429);
    let after = response.headers().get("retry-after").expect("when to come again");
    let after = after.to_str().expect("text").parse().expect("seconds");
    let body: Value = response.json().await.expect("JSON");
    assert_eq!(body["status"], 429, "{body}");
    assert_eq!(body["error"], body["message"], "{body}");
    (body["code"].as_str().expect("a code").to_owned(), after)
}

async fn is_over_quota(response: Response) {
    assert_eq!(refusal(response).await, ("quota_exceeded".to_owned(), 10));
}

#[tokio::test]
async fn starts_over_quota_are_refused_on_every_route_and_store_nothing() {
    let (app, mut database, _directory) = with_quotas("executions=1", 0).await;
    let id = started(&app).await;
    database.look();
    let key = json!({"path": "tests/greet", "dedup": {"key": "k", "window_secs": 60}});
    for (path, body) in [
        ("/api/execute".to_owned(), json!({"path": "tests/greet"})),
        ("/api/execute".to_owned(), key.clone()),
        (format!("/api/executions/{id}/rerun"), json!({})),
        (format!("/api/executions/{id}/fork"), json!({})),
    ] {
        is_over_quota(post(&app, &path, body.to_string()).send().await).await;
        assert_eq!(database.changed(), None, "{path}");
    }
    let batch = json!({"executions": [{"path": "tests/greet"}, key]});
    let (status, batch) = post(&app, "/api/execute/batch", batch.to_string()).answer().await;
    assert_eq!((status, &batch["started"], &batch["failed"]), (200, &json!(0), &json!(2)));
    assert_eq!(database.changed(), None, "a batch");

    // The running execution is not affected, and its end frees the quota.
    for step in ["start", "end"] {
        let claim = format!("/api/commands/{}/claim", open_command(&app, id).await);
        assert_eq!(post(&app, &claim, r#"{"worker_id":"w"}"#).answer().await.0, 200);
        report(&app, id, step, "call.done").await;
        report(&app, id, step, "command.completed").await;
    }
    let (_, status) = get(&app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!(status["status"], "COMPLETED", "{status}");
    let (status, new) = post(&app, "/api/execute", key.to_string()).answer().await;
    assert_eq!(
        (status, &new["status"]),
        (200, &json!("started")),
        "the key was not used up: {new}"
    );
    app.close().await;
}

#[tokio::test]
async fn documents_over_quota_are_refused_and_store_nothing() {
    for (quotas, fits) in [("documents=1", 1), ("bytes=500", 1)] {
        let (app, mut database, _directory) = with_quotas(quotas, 0).await;
        assert_eq!(register(&app, GREET).await.0, 200, "{quotas}");
        database.look();
        let one = json!({"content": GREET});
        is_over_quota(post(&app, "/api/catalog/register", one.to_string()).send().await).await;
        let replaced = ask(
            &app,
            reqwest::Method::PUT,
            "/api/catalog/playbook/content?playbook_id=tests/greet",
        );
        let replaced = replaced.header("content-type", "application/json").body(one.to_string());
        is_over_quota(replaced.send().await).await;
        let batch = json!({"items": [one]}).to_string();
        let response = post(&app, "/api/catalog/register/batch", batch).answer().await;
        assert_eq!((response.0, &response.1["failed"]), (200, &json!(1)), "{response:?}");
        assert_eq!(database.changed(), None, "{quotas}");
        let (_, versions) = get(&app, "/api/catalog/versions?path=tests/greet").answer().await;
        assert_eq!(versions["versions"].as_array().map(Vec::len), Some(fits), "{versions}");
        app.close().await;
    }
}

#[tokio::test]
async fn calls_from_steps_are_not_limited() {
    const CALLING: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: calling, path: tests/calling}
workflow:
  - step: start
    tool: {kind: playbook, path: tests/child}
";
    const CHILD: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: tests/child}
workflow:
  - step: start
    tool: {kind: noop}
";
    let (app, _, _directory) = with_quotas("executions=1 starts=1", 4).await;
    for text in [CALLING, CHILD] {
        assert_eq!(register(&app, text).await.0, 200);
    }
    let (status, body) = post(&app, "/api/execute", r#"{"path":"tests/calling"}"#).answer().await;
    assert_eq!(status, 200, "{body}");
    let id: i64 = body["execution_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let tenant = noetl_model::Tenant::default();
    let row = app
        .control
        .journal
        .executions
        .wait_until_finished(&tenant, noetl_model::ExecutionId::new(id))
        .await;
    let row = row.expect("a store that answers").expect("an execution");
    assert_eq!(row.status, noetl_store::ExecutionStatus::Completed, "{:?}", row.error);
    app.close().await;
}

#[tokio::test]
async fn a_message_over_quota_is_rejected_and_may_be_resent() {
    let (app, mut database, _directory) = with_quotas("executions=1", 0).await;
    let more = "  dedup: {enabled: true, window_secs: 60}\n";
    webhooks::set_up(&app, &webhooks::document("orders", webhooks::BEARER, more)).await;
    let send = |id: &'static str| {
        let request = http().post(format!("{}/ingress/orders", app.base)).body("{}");
        request.bearer_auth(webhooks::SECRET).header("webhook-id", id).send()
    };
    let accepted = send("m1").await.expect("an answer");
    assert_eq!(accepted.status(), 202);
    let accepted: Value = accepted.json().await.expect("JSON");
    database.look();
    is_over_quota(send("m2").await.expect("an answer")).await;
    assert_eq!(database.changed(), None, "a message that is refused");
    let id = accepted["execution_id"].as_str().expect("an id");
    let cancel = format!("/api/executions/{id}/cancel");
    assert_eq!(post(&app, &cancel, "{}").answer().await.0, 200);
    let again: Value = send("m1").await.expect("an answer").json().await.expect("JSON");
    assert_eq!(again["status"], "duplicate", "what was taken in is known: {again}");
    let later: Value = send("m2").await.expect("an answer").json().await.expect("JSON");
    assert_eq!(later["status"], "accepted", "its key was not used up: {later}");
    app.close().await;
}

#[tokio::test]
async fn a_quota_of_a_tenant_replaces_the_default() {
    let directory = TempDir::new().expect("a directory");
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = on_file(&directory.path().join("noetl.db")).slots(0).options(options);
    let app = app.quotas("executions=1; acme: executions=2".parse().expect("quotas"));
    let app = app.start().await;
    for (tenant, may) in [("acme", 2), ("other", 1)] {
        let bearer = token(&app, tenant, Role::Admin).await;
        let body = json!({ "content": GREET }).to_string();
        let registered = post(&app, "/api/catalog/register", body).header("authorization", &bearer);
        assert_eq!(registered.answer().await.0, 200);
        let start = || {
            let body = r#"{"path":"tests/greet"}"#;
            post(&app, "/api/execute", body).header("authorization", &bearer)
        };
        for _ in 0..may {
            assert_eq!(start().answer().await.0, 200, "{tenant}");
        }
        is_over_quota(start().send().await).await;
    }
    app.close().await;
}

/// An app that answers so many requests a second, on a clock that stands.
async fn limited(rate: f64) -> (TestApp, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let options = Options {
        auth: Auth::Token,
        allow_any_host: true,
        rate_limit: Some(rate),
        ..Options::default()
    };
    (TestApp::builder().slots(0).clock(clock.clone()).options(options).start().await, clock)
}

#[tokio::test]
async fn a_caller_over_its_rate_gets_retry_after_without_delaying_others() {
    let (app, clock) = limited(2.0).await;
    let (acme, other) =
        (token(&app, "acme", Role::Viewer).await, token(&app, "other", Role::Viewer).await);
    let list = |bearer: &str| get(&app, "/api/executions").header("authorization", bearer).send();
    for _ in 0..2 {
        assert_eq!(list(&acme).await.status(), 200);
    }
    assert_eq!(refusal(list(&acme).await).await, ("rate_limited".to_owned(), 1));
    assert_eq!(list(&other).await.status(), 200, "another tenant's");
    clock.advance(Duration::from_millis(500));
    assert_eq!(list(&acme).await.status(), 200);
    assert_eq!(refusal(list(&acme).await).await.0, "rate_limited");
    // A change that is refused did not happen.
    let author = token(&app, "acme", Role::Author).await;
    let body = json!({ "content": GREET }).to_string();
    let asked = post(&app, "/api/catalog/register", body).header("authorization", &author);
    assert_eq!(refusal(asked.send().await).await.0, "rate_limited");
    clock.advance(Duration::from_secs(1));
    let response =
        post(&app, "/api/catalog/list", "{}").header("authorization", &acme).answer().await;
    assert_eq!(response.1["entries"], json!([]), "{response:?}");
    app.close().await;
}

#[tokio::test]
async fn callers_without_a_valid_token_share_a_limit() {
    let (app, clock) = limited(2.0).await;
    let asked =
        |bearer: &'static str| get(&app, "/api/executions").header("authorization", bearer).send();
    assert_eq!(asked("Bearer noetl_0000000000000000_x").await.status(), 401);
    assert_eq!(asked("Basic x").await.status(), 401);
    assert_eq!(refusal(asked("Bearer z").await).await, ("rate_limited".to_owned(), 1));
    let known = token(&app, "acme", Role::Viewer).await;
    let list = get(&app, "/api/executions").header("authorization", &known);
    assert_eq!(list.send().await.status(), 200, "who is known is not held up by them");
    assert_eq!(get(&app, "/health").send().await.status(), 200, "nor is who looks after it");
    clock.advance(Duration::from_secs(1));
    assert_eq!(asked("Bearer z").await.status(), 401);
    app.close().await;
}

#[tokio::test]
async fn worker_requests_are_not_rate_limited() {
    let (app, clock) = limited(1.0).await;
    let admin = token(&app, "acme", Role::Admin).await;
    let worker = token(&app, "acme", Role::Worker).await;
    let send = |bearer: &str, path: &str, body: Value| {
        post(&app, path, body.to_string()).header("authorization", bearer).answer()
    };
    let registered = send(&admin, "/api/catalog/register", json!({ "content": GREET })).await;
    assert_eq!(registered.0, 200, "{registered:?}");
    clock.advance(Duration::from_secs(1));
    let begun = send(&admin, "/api/execute", json!({"path": "tests/greet"})).await;
    assert_eq!(begun.0, 200, "{begun:?}");
    let id = begun.1["execution_id"].clone();
    let leased = json!({"worker_id": "w", "max": 1, "wait_seconds": 0});
    // The tenant has used up its request rate; its worker continues.
    for _ in ["start", "end"] {
        let (status, leased) = send(&worker, "/api/worker/lease", leased.clone()).await;
        assert_eq!(status, 200, "{leased}");
        let command = leased["commands"][0]["event_id"].clone();
        let beat = json!({"worker_id": "w", "commands": [command]});
        assert_eq!(send(&worker, "/api/worker/heartbeat", beat).await.0, 200);
        let lines = json!({"command_id": command.to_string(), "lines": [{"text": "x"}]});
        let logs = format!("/api/executions/{}/logs", id.as_str().expect("text"));
        assert_eq!(send(&worker, &logs, lines).await.0, 200);
        let end = json!({"execution_id": id, "event_id": command, "data": {"message": "hi"}});
        let (status, ends) =
            send(&worker, "/api/worker/report", json!({"worker_id": "w", "ends": [end]})).await;
        assert_eq!((status, &ends["ends"][0]["error"]), (200, &Value::Null), "{ends}");
    }
    let asked = post(&app, "/api/execute", r#"{"path":"tests/greet"}"#);
    let refused = asked.header("authorization", &admin).send().await;
    assert_eq!(refusal(refused).await, ("rate_limited".to_owned(), 1));
    clock.advance(Duration::from_secs(1));
    let path = format!("/api/executions/{}/status", id.as_str().expect("text"));
    let (_, status) = get(&app, &path).header("authorization", &admin).answer().await;
    assert_eq!(status["status"], "COMPLETED", "{status}");
    app.close().await;
}

#[tokio::test]
async fn one_address_sends_no_more_than_its_rate_without_a_token() {
    let clock = Arc::new(SimClock::default());
    let options = Options {
        auth: Auth::Token,
        allow_any_host: true,
        address_rate_limit: Some(2.0),
        trusted_proxies: vec!["127.0.0.1".parse().expect("a network")],
        ..Options::default()
    };
    let app = TestApp::builder().slots(0).clock(clock.clone()).options(options).start().await;
    let from = |address: &str| get(&app, "/api/auth/mode").header("x-forwarded-for", address);
    let guessed = |address: &str| {
        get(&app, "/api/executions")
            .header("authorization", "Bearer noetl_0000000000000000_x")
            .header("x-forwarded-for", address)
    };
    assert_eq!(from("192.0.2.1").send().await.status(), 200);
    assert_eq!(guessed("192.0.2.1").send().await.status(), 401);
    for asked in [from("192.0.2.1"), guessed("192.0.2.1")] {
        assert_eq!(refusal(asked.send().await).await, ("rate_limited".to_owned(), 1));
    }
    assert_eq!(from("192.0.2.2").send().await.status(), 200, "another address");
    let known = token(&app, "acme", Role::Viewer).await;
    let list = get(&app, "/api/executions").header("x-forwarded-for", "192.0.2.1");
    assert_eq!(list.header("authorization", &known).send().await.status(), 200);
    assert_eq!(get(&app, "/health").send().await.status(), 200);
    clock.advance(Duration::from_millis(500));
    assert_eq!(from("192.0.2.1").send().await.status(), 200);
    app.close().await;
}

#[tokio::test]
async fn one_address_sends_no_more_than_its_rate_to_one_listener() {
    let clock = Arc::new(SimClock::default());
    let options = Options {
        listener_rate_limit: Some(1.0),
        trusted_proxies: vec!["127.0.0.1".parse().expect("a network")],
        ..Options::default()
    };
    let app = TestApp::builder().slots(0).encryption_key(crate::stores::key());
    let app = app.clock(clock.clone()).options(options).start().await;
    for listener in ["orders", "refunds"] {
        webhooks::set_up(&app, &webhooks::document(listener, webhooks::BEARER, "")).await;
    }
    let send = |listener: &str, address: &str| {
        let request = http().post(format!("{}/ingress/{listener}", app.base)).body("{}");
        request.bearer_auth(webhooks::SECRET).header("x-forwarded-for", address).send()
    };
    let status = async |listener: &str, address: &str| {
        send(listener, address).await.expect("a response").status().as_u16()
    };
    assert_eq!(status("orders", "192.0.2.1").await, 202);
    assert_eq!(status("orders", "192.0.2.1").await, 429);
    assert_eq!(status("refunds", "192.0.2.1").await, 202, "another listener");
    assert_eq!(status("orders", "192.0.2.2").await, 202, "another address");
    clock.advance(Duration::from_secs(1));
    assert_eq!(status("orders", "192.0.2.1").await, 202);
    app.close().await;
}
