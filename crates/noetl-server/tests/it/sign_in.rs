//! Sign-in of a browser by a one-time code.

use noetl_secrets::Role;
use noetl_server::{Auth, Options};
use noetl_test_app::TestApp;
use serde_json::json;

use crate::api::{get, post};
use crate::roles::token;

#[tokio::test]
async fn a_code_is_exchanged_for_a_session_once() {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).start().await;
    let admin = token(&app, "default", Role::Admin).await;
    let viewer = token(&app, "default", Role::Viewer).await;
    let refused =
        post(&app, "/api/auth/codes", "{}").header("authorization", &viewer).answer().await;
    assert_eq!(refused.0, 403, "{refused:?}");
    let made = post(&app, "/api/auth/codes", "{}").header("authorization", &admin).answer().await;
    assert_eq!(made.0, 200, "{made:?}");
    let body = json!({"code": made.1["code"]}).to_string();
    let (status, session) = post(&app, "/api/auth/code", body.clone()).answer().await;
    assert_eq!((status, &session["expires_in"]), (200, &json!(12 * 60 * 60)), "{session}");
    let shown = session["token"].as_str().expect("a token");
    let (_, who) = get(&app, "/api/whoami").header("x-session-token", shown).answer().await;
    assert_eq!(who["roles"], json!(["admin"]), "{who}");
    for body in [body, json!({"code": ""}).to_string(), json!({"code": "guessed"}).to_string()] {
        let (status, response) = post(&app, "/api/auth/code", body).answer().await;
        assert_eq!((status, &response["code"]), (401, &json!("code_unknown")));
    }
    app.close().await;
}
