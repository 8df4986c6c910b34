//! Steps that wait for a person, of every execution; and what workers hold.

use insta::assert_snapshot;
use noetl_model::{ExecutionId, Tenant};
use noetl_secrets::{Role, TokenRequest};
use noetl_server::{Auth, Options};
use noetl_store::ExecutionStatus;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{get, post, register, report, started};

const ASKING: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: asking, path: tests/asking}
workload: {what: cake}
workflow:
  - step: start
    tool:
      kind: approval
      message: \"Eat the {{ workload.what }}?\"
      data: {what: \"{{ workload.what }}\"}
      timeout: 1h
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: {eaten: \"{{ start.approved }}\"}}
";

async fn asking(app: &TestApp, what: &str) -> i64 {
    let (status, body) = register(app, ASKING).await;
    assert_eq!(status, 200, "{body}");
    let body = json!({"path": "tests/asking", "payload": {"what": what}});
    let (status, body) = post(app, "/api/execute", body.to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
    body["execution_id"].as_str().expect("an id").parse().expect("a number")
}

async fn waiting(app: &TestApp, query: &str) -> Value {
    let (status, body) = get(app, &format!("/api/approvals{query}")).answer().await;
    assert_eq!(status, 200, "{body}");
    body
}

#[tokio::test]
async fn pending_approvals_are_listed_with_the_data_needed_to_answer() {
    let app = TestApp::start(2).await;
    let id = asking(&app, "cake").await;
    let shown = get(&app, "/api/approvals").shown().await;
    let token = waiting(&app, "").await["approvals"][0]["token"].as_str().expect("text").to_owned();
    assert_snapshot!(shown.replace(&token, "[token]"), @r#"
    200
    {
      "approvals": [
        {
          "execution_id": "[id]",
          "path": "tests/asking",
          "step": "start",
          "item": null,
          "command_id": "[id]",
          "token": "[token]",
          "message": "Eat the cake?",
          "data": {
            "what": "cake"
          },
          "since": "[time]",
          "until": "[time]"
        }
      ],
      "next_after": null
    }
    "#);
    let waits = &waiting(&app, "").await["approvals"][0];
    assert_eq!(waits["execution_id"], id.to_string());
    let command = waits["command_id"].as_str().expect("an id");
    let answers = format!("/api/executions/{id}/answers/{command}");
    let wrong = json!({"token": "another", "data": {"approved": true}});
    assert_eq!(post(&app, &answers, wrong.to_string()).answer().await.0, 409);
    assert_eq!(waiting(&app, "").await["approvals"].as_array().map(Vec::len), Some(1));
    let right = json!({"token": token, "data": {"approved": true}});
    assert_eq!(post(&app, &answers, right.to_string()).answer().await.0, 200);
    let ended = app
        .control
        .journal
        .executions
        .wait_until_finished(&Tenant::default(), ExecutionId::new(id))
        .await;
    assert_eq!(ended.expect("a store").map(|row| row.status), Some(ExecutionStatus::Completed));
    assert_eq!(waiting(&app, "").await, json!({"approvals": [], "next_after": null}));
    app.close().await;
}

#[tokio::test]
async fn a_long_list_is_paged() {
    let app = TestApp::start(0).await;
    for what in ["cake", "bread"] {
        asking(&app, what).await;
    }
    let first = waiting(&app, "?limit=1").await;
    assert_eq!(first["approvals"][0]["message"], "Eat the cake?");
    let after = first["next_after"].as_str().expect("more").to_owned();
    let second = waiting(&app, &format!("?limit=1&after={after}")).await;
    assert_eq!(second["approvals"][0]["message"], "Eat the bread?");
    let after = second["next_after"].as_str().expect("perhaps more").to_owned();
    let nothing = json!({"approvals": [], "next_after": null});
    assert_eq!(waiting(&app, &format!("?after={after}")).await, nothing);
    for wrong in ["?after=x", "?limit=-1"] {
        assert_eq!(get(&app, &format!("/api/approvals{wrong}")).answer().await.0, 400, "{wrong}");
    }
    app.close().await;
}

#[tokio::test]
async fn cancelled_approvals_are_not_listed() {
    let app = TestApp::start(0).await;
    let id = asking(&app, "cake").await;
    assert_eq!(post(&app, &format!("/api/executions/{id}/cancel"), "{}").answer().await.0, 200);
    assert_eq!(waiting(&app, "").await["approvals"], json!([]));
    app.close().await;
}

async fn bearer(app: &TestApp, tenant: &str) -> String {
    let request = TokenRequest { name: "t".to_owned(), role: Role::Admin, lasts: None, pool: None };
    let made = app.control.secrets.tokens.create(&Tenant::new(tenant), request).await;
    format!("Bearer {}", made.expect("a token").1)
}

#[tokio::test]
async fn another_tenant_sees_neither_approvals_nor_workers() {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let (ours, theirs) = (bearer(&app, "default").await, bearer(&app, "acme").await);
    let send = |path: &str, body: &Value| {
        post(&app, path, body.to_string()).header("authorization", &ours)
    };
    assert_eq!(send("/api/catalog/register", &json!({"content": ASKING})).answer().await.0, 200);
    assert_eq!(send("/api/execute", &json!({"path": "tests/asking"})).answer().await.0, 200);
    for (token, count) in [(&ours, 1), (&theirs, 0)] {
        let asked = get(&app, "/api/approvals").header("authorization", token);
        let (status, body) = asked.answer().await;
        assert_eq!((status, body["approvals"].as_array().map(Vec::len)), (200, Some(count)));
    }
    app.close().await;
}

#[tokio::test]
async fn the_load_of_a_worker_counts_its_leased_commands() {
    let app = TestApp::start(0).await;
    let (first, second) = (started(&app).await, started(&app).await);
    // Approvals don't count as load of a worker.
    asking(&app, "cake").await;
    let load = async || get(&app, "/api/worker/load").answer().await.1;
    assert_eq!(load().await, json!({"workers": [], "complete": true}));
    for id in [first, second] {
        report(&app, id, "start", "command.started").await;
    }
    let load_of_worker = load().await;
    assert_eq!(
        (&load_of_worker["workers"][0]["worker"], &load_of_worker["workers"][0]["held"]),
        (&"w".into(), &2.into())
    );
    assert_eq!(load_of_worker["workers"].as_array().map(Vec::len), Some(1));
    for event_type in ["call.done", "command.completed"] {
        report(&app, first, "start", event_type).await;
    }
    assert_eq!(load().await["workers"][0]["held"], 1);
    app.close().await;
}
