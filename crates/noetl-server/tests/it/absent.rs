//! Routes that say what to do instead, and sessions.

use insta::assert_snapshot;
use noetl_model::Tenant;
use noetl_secrets::{Role, TokenRequest};
use noetl_test_app::TestApp;
use serde_json::json;

use crate::api::{get, post, shown};

#[tokio::test]
async fn unsupported_routes_name_an_alternative() {
    let app = TestApp::start(0).await;
    let ai = "/api/catalog/playbooks/generate/ai";
    assert_snapshot!(post(&app, ai, r#"{"prompt":"a"}"#).shown().await, @r#"
    501
    {
      "error": "no language model is asked here; run a playbook with a tool that asks one",
      "status": 501,
      "code": "not_built",
      "detail": "no language model is asked here; run a playbook with a tool that asks one",
      "message": "no language model is asked here; run a playbook with a tool that asks one"
    }
    "#);
    for path in [
        "/api/catalog/playbooks/explain/ai",
        "/api/executions/1/analyze",
        "/api/executions/1/analyze/ai",
        "/api/auth/login",
        "/api/auth/check-playbook-access",
    ] {
        let (status, body) = post(&app, path, "{}").answer().await;
        assert_eq!((status, &body["code"]), (501, &"not_built".into()), "{path}");
        let response = get(&app, path).send().await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["allow"]),
            (405, &"POST".parse().expect("a header")),
            "{path}"
        );
    }
    for path in ["/api/ehdb/events", "/api/ehdb/tiers/kv"] {
        let (status, body) = get(&app, path).answer().await;
        assert_eq!((status, &body["code"]), (501, &"not_built".into()), "{path}");
    }
    app.close().await;
}

#[tokio::test]
async fn session_validation_accepts_an_access_token() {
    let app = TestApp::start(0).await;
    let request =
        TokenRequest { name: "gateway".into(), role: Role::Operator, lasts: None, pool: None };
    let tokens = &app.control.secrets.tokens;
    let (token, text) = tokens.create(&Tenant::default(), request).await.expect("a token");
    let validate = async |text: &str| {
        let body = json!({"session_token": text, "credential": "pg_auth"}).to_string();
        post(&app, "/api/auth/session/validate", body).answer().await
    };
    let (status, body) = validate(&text).await;
    let user = &body["user"];
    assert_eq!((status, &body["status"], &body["valid"]), (200, &"ok".into(), &true.into()));
    assert_eq!((&user["display_name"], &user["roles"]), (&"gateway".into(), &json!(["operator"])));
    assert!(user["user_id"].as_i64().is_some_and(|id| (0..=i64::from(i32::MAX)).contains(&id)));
    assert_eq!(validate(&text).await.1, body, "always the same");
    tokens.revoke(&Tenant::default(), &token.kept.id).await.expect("an answer");
    for wrong in [text.as_str(), "", "noetl_a_b", "anything"] {
        let (status, body) = validate(wrong).await;
        assert_eq!((status, &body["valid"]), (200, &false.into()), "{wrong}");
    }
    assert_snapshot!(shown(validate("x").await.0, validate("x").await.1), @r#"
    200
    {
      "status": "ok",
      "valid": false,
      "error": "the token is unknown, expired or revoked"
    }
    "#);
    let none = post(&app, "/api/auth/session/validate", "{}").answer().await;
    assert_eq!((none.0, &none.1["valid"]), (200, &false.into()));
    app.close().await;
}
