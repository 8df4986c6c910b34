//! The identity of callers in the audit and in logs.

use noetl_model::{ExecutionId, Tenant};
use noetl_secrets::{EncryptionKey, Role};
use noetl_server::{Auth, Options};
use noetl_store::AuditFilter;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{GREET, ask, get};
use crate::roles::token;

pub(crate) async fn send(
    app: &TestApp,
    verb: Method,
    bearer: &str,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let asked = ask(app, verb, path).header("authorization", bearer);
    asked.header("content-type", "application/json").body(body.to_string()).answer().await
}

#[tokio::test]
async fn the_audit_names_the_token_of_every_action() {
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
        let (status, response) = post(&of(action), body).await;
        assert_eq!(status, 200, "{action}: {response}");
    }
    assert_eq!(post(&of("answers/1"), json!({"token": "t"})).await.0, 409, "nothing waits");
    assert_eq!(post("/api/catalog/delete", json!({"path": "tests/greet"})).await.0, 200);
    let data = json!({"name": "db", "type": "t", "data": {"password": "correct horse"}});
    assert_eq!(post("/api/credentials", data).await.0, 200);
    let (_, made) = post("/api/tokens", json!({"name": "x", "role": "viewer"})).await;
    let path = format!("/api/tokens/{}", made["id"].as_str().expect("an id"));
    assert_eq!(send(&app, Method::DELETE, &admin, &path, json!({})).await.0, 200);

    let filter = AuditFilter { limit: 100, ..AuditFilter::default() };
    let mut uses =
        app.control.secrets.audit.list(&Tenant::new("acme"), &filter).await.expect("a list");
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
    app.close().await;
}

const ASKS: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: asks, path: tests/asks}
workflow:
  - step: start
    tool: {kind: approval, message: go on?, timeout: 1h}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
";

/// Each event that names a caller, as `event_type actor`.
pub(crate) async fn named(app: &TestApp, id: &Value) -> Vec<String> {
    let id = id.as_str().expect("an id").parse().expect("a number");
    let rows = app.read_log(ExecutionId::new(id)).await;
    rows.iter()
        .filter_map(|row| {
            let meta: Value = serde_json::from_str(row.meta.as_deref()?).expect("JSON");
            let event_type = row.event_type.as_deref().expect("a type");
            Some(format!("{event_type} {}", meta["actor"].as_str()?))
        })
        .collect()
}

#[tokio::test]
async fn events_of_an_action_name_the_token_of_the_caller() {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options);
    let app = app.encryption_key(EncryptionKey::generate()).start().await;
    let admin = token(&app, "acme", Role::Admin).await;
    let (_, who) = get(&app, "/api/whoami").header("authorization", &admin).answer().await;
    let actor = who["actor"].as_str().expect("an identity");
    let post = async |path: &str, body: Value| {
        let (status, reply) = send(&app, Method::POST, &admin, path, body).await;
        assert_eq!(status, 200, "{path}: {reply}");
        reply
    };
    let by = |event_types: &[&str]| -> Vec<String> {
        event_types.iter().map(|event_type| format!("{event_type} {actor}")).collect()
    };
    for content in [GREET, ASKS] {
        post("/api/catalog/register", json!({"content": content})).await;
    }
    let greet = json!({"path": "tests/greet"});

    let id = post("/api/execute", greet.clone()).await["execution_id"].clone();
    assert_eq!(named(&app, &id).await, by(&["playbook_started"]));
    let of = |action: &str| format!("/api/executions/{}/{action}", id.as_str().expect("an id"));
    // A report has the type of an event of the control plane, and the name of another caller.
    let forged = json!({
        "execution_id": id, "event_type": "call.done", "step": "start", "worker_id": "eve",
        "meta": {"actor": "token:of-another", "note": "kept"},
    });
    post("/api/events", forged).await;
    post(&of("cancel"), json!({"reason": "enough"})).await;
    let both = by(&["playbook_started", "playbook_cancelled"]);
    assert_eq!(named(&app, &id).await, both, "every action, and no forged name");
    for action in ["retry", "fork", "rerun"] {
        let new = post(&of(action), json!({})).await["execution_id"].clone();
        assert_eq!(named(&app, &new).await, by(&["playbook_started"]), "{action}");
    }
    assert_eq!(named(&app, &id).await, both, "the execution they come from is left as it was");

    let batch = json!({"executions": [greet, {"path": "tests/greet", "dedup": {"key": "k"}}]});
    let batch = post("/api/execute/batch", batch).await;
    for result in batch["results"].as_array().expect("results") {
        assert_eq!(named(&app, &result["execution_id"]).await, by(&["playbook_started"]));
    }
    let finalized = &batch["results"][0]["execution_id"];
    let path = format!("/api/executions/{}/finalize", finalized.as_str().expect("an id"));
    post(&path, json!({"status": "FAILED", "error": "lost"})).await;
    assert_eq!(named(&app, finalized).await, by(&["playbook_started", "playbook.failed"]));

    let asked = post("/api/execute", json!({"path": "tests/asks"})).await["execution_id"].clone();
    let (_, waits) = get(&app, "/api/approvals").header("authorization", &admin).answer().await;
    let waits = &waits["approvals"][0];
    let command = waits["command_id"].as_str().expect("a command");
    let path = format!("/api/executions/{}/answers/{command}", asked.as_str().expect("an id"));
    post(&path, json!({"token": waits["token"], "data": {"approved": true}})).await;
    let answered = by(&["playbook_started", "call.done"]);
    assert_eq!(named(&app, &asked).await, answered);
    let path = format!("/api/executions/{}/fork", asked.as_str().expect("an id"));
    let fork = post(&path, json!({})).await["execution_id"].clone();
    assert_eq!(named(&app, &fork).await, answered, "a fork takes over who answered");

    let schedule = json!({"playbook": "tests/greet", "every": "1h"});
    let schedule = post("/api/schedules", schedule).await["schedule_id"].clone();
    let path = format!("/api/schedules/{}/run", schedule.as_str().expect("an id"));
    let run = post(&path, json!({})).await["execution_id"].clone();
    assert_eq!(named(&app, &run).await, by(&["playbook_started"]));
    post("/api/executions/cleanup", json!({"older_than_minutes": 0})).await;
    assert_eq!(named(&app, &run).await, both, "cleanup cancels as its caller");
    app.close().await;
}
