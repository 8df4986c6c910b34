//! Requests of the published gateway: its own, and those it forwards for a page.

use noetl_model::Tenant;
use noetl_secrets::{Role, TokenRequest};
use reqwest::Method;
use serde_json::json;

use crate::api::{GREET, ask, get, post, register};
use crate::published::{As, begun, open_app, reads};

/// Checks the fields that it reads of a started execution: the ID, and other fields as text.
fn started(body: &serde_json::Value) {
    reads(body, &[("execution_id", As::TextId), ("status", As::Text)]);
    for name in ["name", "path", "resource_kind"] {
        let value = body.get(name);
        assert!(value.is_none_or(|value| value.is_string() || value.is_null()), "{name}: {body}");
    }
}

#[tokio::test]
async fn login_and_chat_requests_start_playbooks() {
    let app = open_app(0).await;
    register(&app, GREET).await;
    let login = json!({
        "path": "tests/greet", "resource_kind": "playbook",
        "workload": {
            "auth0_token": "t", "auth0_refresh_token": null, "auth0_domain": "d",
            "session_duration_hours": 8, "client_ip": "127.0.0.1", "client_user_agent": "x",
            "callback_subject": "noetl.callbacks.3f2b", "request_id": "3f2b",
        },
    });
    let (status, body) = post(&app, "/api/execute", login.to_string()).answer().await;
    assert_eq!(status, 200, "{body}");
    started(&body);
    let id = body["execution_id"].as_str().expect("text");
    let (_, detail) = get(&app, &format!("/api/executions/{id}")).answer().await;
    assert_eq!(detail["workload"]["request_id"], "3f2b");
    let rerun = json!({"workload": {"who": "moon"}, "resource_kind": "playbook"}).to_string();
    let (status, body) = post(&app, &format!("/api/executions/{id}/rerun"), rerun).answer().await;
    assert_eq!(status, 200, "{body}");
    started(&body);
    let (status, body) = get(&app, &format!("/api/executions/{id}/status")).answer().await;
    assert_eq!((status, &body["status"]), (200, &"RUNNING".into()));
    app.close().await;
}

#[tokio::test]
async fn a_session_is_validated() {
    let app = open_app(0).await;
    let request =
        TokenRequest { name: "somebody".into(), role: Role::Operator, lasts: None, pool: None };
    let made =
        app.control.secrets.tokens.create(&Tenant::default(), request).await.expect("a token").1;
    let asked = |token: &str| {
        let body = json!({"session_token": token, "credential": "pg_auth"}).to_string();
        post(&app, "/api/auth/session/validate", body)
    };
    let (status, body) = asked(&made).answer().await;
    assert_eq!((status, &body["status"], &body["valid"]), (200, &"ok".into(), &true.into()));
    let user = [
        ("user.user_id", As::Count),
        ("user.email", As::Text),
        ("user.display_name", As::Text),
        ("user.roles", As::List),
    ];
    reads(&body, &user);
    let number = body["user"]["user_id"].as_i64().expect("a number");
    assert!(i32::try_from(number).is_ok(), "{number}");
    // It takes anything but "ok" for a failure of ours, so a bad token is no failure.
    let (status, body) = asked("expired").answer().await;
    assert_eq!((status, &body["status"], &body["valid"]), (200, &"ok".into(), &false.into()));
    reads(&body, &[("error", As::Text)]);
    app.close().await;
}

#[tokio::test]
async fn forwarded_page_requests_get_page_responses() {
    let app = open_app(0).await;
    register(&app, GREET).await;
    let id = begun(&app, "tests/greet").await;
    // The gateway drops `Authorization` and passes on what begins with `x-`.
    let path = format!("/api/executions/{id}?page=1&page_size=5");
    let asked = ask(&app, Method::GET, &path).header("accept", "application/json");
    let answer = asked.header("x-session-token", "any").header("x-request-id", "7").send().await;
    assert_eq!(answer.status().as_u16(), 200);
    assert_eq!(answer.headers()["content-type"], "application/json");
    let body: serde_json::Value = answer.json().await.expect("JSON");
    reads(&body, &[("execution_id", As::TextId), ("events.0.event_id", As::TextId)]);
    app.close().await;
}
