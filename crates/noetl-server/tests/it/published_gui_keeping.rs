//! Requests of the published web page about credentials and test suites.

use noetl_model::Tenant;
use noetl_secrets::{Role, TokenRequest};
use reqwest::Method;
use serde_json::json;

use crate::published::{As, guarded_app, open_app, reads};
use crate::published_gui::{page, post, read, send};

#[tokio::test]
async fn secrets_are_stored_listed_shown_and_removed() {
    let app = open_app(0).await;
    let credential = json!({
        "name": "db", "type": "postgres", "data": {"password": "of nobody"},
        "meta": {"owner": "ops"}, "tags": ["prod"], "description": "the orders",
    });
    let item = [
        ("id", As::TextId),
        ("name", As::Text),
        ("type", As::Text),
        ("meta", As::Map),
        ("tags", As::List),
        ("description", As::Text),
        ("created_at", As::Time),
        ("updated_at", As::Time),
    ];
    let made = post(&app, "credentials", credential).await;
    reads(&made, &item);
    for query in ["", "?type=postgres", "?q=ord", "?type=postgres&q=db"] {
        let listed = read(&app, &format!("credentials{query}")).await;
        reads(&listed["items"][0], &item);
    }
    assert_eq!(read(&app, "credentials?type=bearer").await["items"], json!([]));
    let id = made["id"].as_str().expect("text");
    for name in [id, "db"] {
        let shown = read(&app, &format!("credentials/{name}?include_data=true")).await;
        assert_eq!(shown["data"]["password"], "of nobody");
        assert!(
            read(&app, &format!("credentials/{name}?include_data=false"))
                .await
                .get("data")
                .is_none()
        );
    }
    let path = format!("credentials/{id}");
    assert_eq!(page(&app, Method::DELETE, &path).answer().await.0, 200);
    assert_eq!(page(&app, Method::DELETE, &path).answer().await.0, 404);
    app.close().await;
}

#[tokio::test]
async fn test_suites_are_stored_and_listed() {
    let app = open_app(0).await;
    let path = "playbook-tests/suites/tests/greet";
    assert_eq!(page(&app, Method::GET, path).answer().await.0, 404);
    let suite =
        json!({"playbook_path": "tests/greet", "tests": [{"name": "a"}], "metadata": {"by": "me"}});
    let (status, stored) = send(&app, Method::PUT, path, suite).await;
    assert_eq!(status, 200, "{stored}");
    let fields = [
        ("suite_id", As::Text),
        ("file_path", As::Text),
        ("playbook_path", As::Text),
        ("tests.0", As::Map),
        ("metadata", As::Map),
        ("updated_at", As::Time),
    ];
    reads(&stored, &fields);
    assert_eq!(read(&app, path).await, stored);
    assert_eq!(page(&app, Method::DELETE, path).answer().await.0, 200);
    app.close().await;
}

#[tokio::test]
async fn a_session_is_validated_and_sent_in_two_headers() {
    let app = guarded_app().await;
    let request =
        TokenRequest { name: "somebody".into(), role: Role::Admin, lasts: None, pool: None };
    let made =
        app.control.secrets.tokens.create(&Tenant::default(), request).await.expect("a token").1;
    let session = post(&app, "auth/validate", json!({"session_token": made})).await;
    let user = [
        ("valid", As::Bool),
        ("user.email", As::Text),
        ("user.display_name", As::Text),
        ("user.roles.0", As::Text),
    ];
    reads(&session, &user);
    assert_eq!((&session["valid"], &session["user"]["roles"]), (&true.into(), &json!(["admin"])));
    let wrong = post(&app, "auth/validate", json!({"session_token": "dev-skip-auth"})).await;
    assert_eq!(wrong["valid"], false);
    let bearer = format!("Bearer {made}");
    let asked = page(&app, Method::GET, "executions").header("authorization", &bearer);
    assert_eq!(asked.header("x-session-token", &made).answer().await.0, 200);
    assert_eq!(page(&app, Method::GET, "executions").answer().await.0, 401, "it signs out");
    let (status, _) = send(&app, Method::POST, "auth/login", json!({"auth0_token": "x"})).await;
    assert_eq!(status, 501);
    app.close().await;
}
