//! The identity of callers in the audit and in logs.

use noetl_control::{EncryptionKey, Role};
use noetl_model::{ExecutionId, Tenant};
use noetl_server::{Auth, Options};
use noetl_store::AuditFilter;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{GREET, ask, get};
use crate::roles::token;

async fn send(app: &TestApp, verb: Method, bearer: &str, path: &str, body: Value) -> (u16, Value) {
    let asked = ask(app, verb, path).header("authorization", bearer);
    asked.header("content-type", "application/json").body(body.to_string()).answer().await
}

#[tokio::test]
async fn every_action_names_the_token_that_did_it_in_the_audit_and_in_the_log() {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options);
    let app = app.encryption_key(EncryptionKey::generate()).start().await;
    let admin = token(&app, "acme", Role::Admin).await;
    let (_, who) = get(&app, "/api/whoami").header("authorization", &admin).answer().await;
    let actor = who["actor"].as_str().expect("an identity");
    assert!(actor.starts_with("token:") && who["name"] != who["actor"], "{who}");
    let post = async |path: &str, body: Value| send(&app, Method::POST, &admin, path, body).await;

    assert_eq!(post("/api/catalog/register", json!({"content": GREET})).await.0, 200);
    let (_, begun) = post("/api/execute", json!({"path": "tests/greet"})).await;
    let id = begun["execution_id"].as_str().expect("an id").to_owned();
    let of = |action: &str| format!("/api/executions/{id}/{action}");
    for (action, body) in
        [("cancel", json!({"reason": "enough"})), ("retry", json!({})), ("fork", json!({}))]
    {
        let (status, said) = post(&of(action), body).await;
        assert_eq!(status, 200, "{action}: {said}");
    }
    // A caller cannot speak in another's name, nor say that another acted.
    let forged = json!({
        "execution_id": id, "event_type": "actor.recorded", "step": "", "worker_id": "eve",
        "meta": {"actor": "token:of-somebody"},
    });
    assert_eq!(post("/api/events", forged).await.0, 422);
    assert_eq!(post(&of("answers/1"), json!({"token": "t"})).await.0, 409, "nothing waits");
    assert_eq!(post("/api/catalog/delete", json!({"path": "tests/greet"})).await.0, 200);
    let data = json!({"name": "db", "type": "t", "data": {"password": "correct horse"}});
    assert_eq!(post("/api/credentials", data).await.0, 200);
    let (_, made) = post("/api/tokens", json!({"name": "x", "role": "viewer"})).await;
    let path = format!("/api/tokens/{}", made["id"].as_str().expect("an id"));
    assert_eq!(send(&app, Method::DELETE, &admin, &path, json!({})).await.0, 200);

    let filter = AuditFilter { limit: 100, ..AuditFilter::default() };
    let mut uses = app.control.uses.list(&Tenant::new("acme"), &filter).await.expect("a list");
    uses.reverse();
    let recorded: Vec<(&str, &str)> = uses
        .iter()
        .map(|used| (used.operation.as_str(), used.worker.as_deref().expect("an actor")))
        .collect();
    let expected = [
        "catalog.register",
        "execution.start",
        "execution.cancel",
        "execution.retry",
        "execution.fork",
        "execution.answer",
        "catalog.delete",
        "credential.put",
        "token.create",
        "token.revoke",
    ];
    assert_eq!(recorded, expected.map(|operation| (operation, actor)));

    let rows = app.read_log(ExecutionId::new(id.parse().expect("a number"))).await;
    let named: Vec<Value> = rows
        .iter()
        .filter(|row| row.event_type.as_deref() == Some("actor.recorded"))
        .map(|row| serde_json::from_str(row.meta.as_deref().expect("metadata")).expect("JSON"))
        .collect();
    let operations: Vec<&str> =
        named.iter().map(|meta| meta["operation"].as_str().expect("an operation")).collect();
    assert_eq!(
        operations,
        [
            "execution.start",
            "execution.cancel",
            "execution.retry",
            "execution.fork",
            "execution.answer"
        ]
    );
    assert!(named.iter().all(|meta| meta["actor"] == actor), "{named:?}");
    app.close().await;
}
