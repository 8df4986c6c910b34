//! Every route with every role: who gets through, who does not.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_model::Tenant;
use noetl_secrets::{Role, TokenRequest};
use noetl_server::{Auth, Options};
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{TOKEN, ask, get, post};

/// An app that knows callers by tokens, and the internal token.
async fn guarded() -> TestApp {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    TestApp::builder().slots(0).options(options).internal_token(TOKEN).start().await
}

pub(crate) async fn token(app: &TestApp, tenant: &str, role: Role) -> String {
    let request = TokenRequest { name: role.to_string(), role, lasts: None, pool: None };
    let made = app.control.secrets.tokens.create(&Tenant::new(tenant), request).await;
    format!("Bearer {}", made.expect("a token").1)
}

/// Returns Basic credentials with the token of a `Bearer` header as the password.
pub(crate) fn basic(name: &str, bearer: &str) -> String {
    let token = bearer.strip_prefix("Bearer ").expect("a bearer token");
    format!("Basic {}", STANDARD.encode(format!("{name}:{token}")))
}

/// Returns the status and the code that a caller with this header gets.
async fn answered(app: &TestApp, verb: &str, path: &str, bearer: Option<&str>) -> (u16, String) {
    let verb: Method = verb.to_uppercase().parse().expect("a verb");
    let mut asked = ask(app, verb, path).header("content-type", "application/json").body("{}");
    if let Some(bearer) = bearer {
        asked = asked.header("authorization", bearer);
    }
    // An answer that streams has no end; its head is enough.
    let response = asked.send().await;
    let status = response.status().as_u16();
    if status < 400 {
        return (status, String::new());
    }
    let body: Value = response.json().await.expect("an error body");
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_admits_only_its_roles() {
    let app = guarded().await;
    let mut callers = Vec::new();
    for role in Role::ALL {
        callers.push((role.as_str(), token(&app, "default", role).await));
    }
    callers.push(("internal", format!("Bearer {TOKEN}")));
    // The token as the password of Basic credentials is as good, whatever their name.
    let basic: Vec<_> =
        callers.iter().map(|(role, bearer)| (*role, basic("admin", bearer))).collect();
    callers.extend(basic);
    let (_, document) = get(&app, "/api/openapi.json").answer().await;
    let mut routes = 0;
    for (path, item) in document["paths"].as_object().expect("paths") {
        // The result for an unknown ID doesn't matter here.
        let asked = path.replace("{event_id}", "1").replace("{id}", "1").replace('{', "");
        let asked = asked.replace('}', "").replace("*", "");
        for (verb, operation) in item.as_object().expect("operations") {
            let roles = operation["x-roles"].as_array().expect("roles");
            let roles: Vec<&str> = roles.iter().filter_map(Value::as_str).collect();
            routes += 1;
            let (status, code) = answered(&app, verb, &asked, None).await;
            let is_internal = roles == ["internal"];
            match (roles.is_empty(), is_internal) {
                // Senders of messages authenticate as the listener requires.
                (true, _) if path.starts_with("/ingress/") => {
                    assert_eq!(code, "listener_not_found", "{verb} {path}");
                }
                // Sign-in requests need no authentication; only the empty body is invalid.
                (true, _) if path == "/api/auth/oidc/token" || path == "/api/auth/code" => {
                    assert_eq!((status, &*code), (422, "invalid_body"), "{verb} {path}");
                }
                (true, _) => assert!(status < 400, "{verb} {path}: {status} {code}"),
                (false, true) => assert_eq!(code, "internal_token_missing", "{verb} {path}"),
                (false, false) => {
                    assert_eq!((status, &*code), (401, "not_authenticated"), "{verb} {path}");
                }
            }
            for (role, bearer) in &callers {
                let (status, code) = answered(&app, verb, &asked, Some(bearer)).await;
                let is_refused = status == 401
                    || status == 403 && ["role_missing", "internal_token_wrong"].contains(&&*code);
                // The internal token is a worker's too.
                let may = roles.is_empty()
                    || roles.contains(role)
                    || *role == "internal" && roles.contains(&"worker");
                assert_eq!(is_refused, !may, "{verb} {path} as {role}: {status} {code}");
            }
        }
    }
    assert!(routes > 40, "{routes} routes");
    app.close().await;
}

#[tokio::test]
async fn a_token_sees_only_its_tenant() {
    let app = guarded().await;
    let (acme, other) =
        (token(&app, "acme", Role::Admin).await, token(&app, "other", Role::Admin).await);
    let body = json!({"content": crate::api::GREET}).to_string();
    let registered =
        post(&app, "/api/catalog/register", body).header("authorization", &acme).answer().await;
    assert_eq!(registered.0, 200, "{registered:?}");
    let started = post(&app, "/api/execute", r#"{"path":"tests/greet"}"#);
    let (status, started) = started.header("authorization", &acme).answer().await;
    assert_eq!(status, 200, "{started}");
    let id = started["execution_id"].as_str().expect("an id");
    for (bearer, status, listed) in [(&acme, 200, 1), (&other, 404, 0)] {
        let path = format!("/api/executions/{id}");
        let seen = get(&app, &path).header("authorization", bearer).answer().await;
        assert_eq!(seen.0, status, "{seen:?}");
        let (_, list) = get(&app, "/api/executions").header("authorization", bearer).answer().await;
        assert_eq!(list.as_array().map(Vec::len), Some(listed), "{list}");
        let cancel = post(&app, &format!("{path}/cancel"), "{}");
        let cancelled = cancel.header("authorization", bearer).answer().await;
        assert_eq!(cancelled.0, status, "{cancelled:?}");
        let replay = format!("/api/replay/state?execution_id={id}");
        let (_, state) = get(&app, &replay).header("authorization", bearer).answer().await;
        assert_eq!(state["event_count"] == 0, listed == 0, "{state}");
    }
    app.close().await;
}

#[tokio::test]
async fn shared_resources_require_the_default_tenant() {
    let app = guarded().await;
    let acme = token(&app, "acme", Role::Admin).await;
    let default = token(&app, "default", Role::Admin).await;
    for (verb, path) in [
        ("post", "/api/postgres/execute"),
        ("get", "/api/internal/wallet/key-status"),
        ("post", "/api/internal/wallet/rotate-kek"),
        ("post", "/api/internal/plugins/system/orchestrate"),
    ] {
        let (status, code) = answered(&app, verb, path, Some(&acme)).await;
        assert_eq!((status, &*code), (403, "default_tenant_needed"), "{verb} {path}");
        let (status, code) = answered(&app, verb, path, Some(&default)).await;
        assert_ne!(status, 403, "{verb} {path}: {code}");
    }
    let theirs = "/api/internal/objects/noetl/tenant=other/a.json";
    assert_eq!(answered(&app, "put", theirs, Some(&default)).await.0, 200);
    for verb in ["put", "get"] {
        let (status, code) = answered(&app, verb, theirs, Some(&acme)).await;
        assert!(status == 403 || status == 404, "{verb}: {status} {code}");
    }
    app.close().await;
}

#[tokio::test]
async fn tokens_are_created_listed_and_revoked_over_http() {
    let app = guarded().await;
    let admin = token(&app, "acme", Role::Admin).await;
    let body = json!({"name": "ci", "role": "operator", "expires_in": 3600}).to_string();
    let made = post(&app, "/api/tokens", body).header("authorization", &admin).answer().await;
    assert_eq!(made.0, 200, "{made:?}");
    let (shown, id) = (made.1["token"].as_str().expect("it"), made.1["id"].as_str().expect("id"));
    let (_, who) = get(&app, "/api/whoami").header("x-session-token", shown).answer().await;
    assert_eq!(who["tenant"], "acme");
    assert_eq!(who["roles"], json!(["operator"]));
    let (_, list) = get(&app, "/api/tokens").header("authorization", &admin).answer().await;
    assert_eq!(list["tokens"].as_array().map(Vec::len), Some(2));
    assert!(!list.to_string().contains(shown), "a list shows a secret");
    let revoke = |id: &str| ask(&app, Method::DELETE, &format!("/api/tokens/{id}"));
    assert_eq!(revoke(id).header("authorization", &admin).answer().await.0, 200);
    assert_eq!(revoke("nobody").header("authorization", &admin).answer().await.0, 404);
    let who = get(&app, "/api/whoami").header("x-session-token", shown).answer().await;
    assert_eq!((who.0, &who.1["code"]), (401, &json!("not_authenticated")));
    for (body, status) in [
        (json!({"name": "x", "role": "king"}), 422),
        (json!({"name": " ", "role": "admin"}), 422),
        (json!({"name": "x", "role": "internal"}), 422),
        (json!({"name": "x", "role": "admin", "expires_in": 0}), 422),
        (json!({"name": "x", "role": "admin", "expires_in": -1}), 422),
        (json!({"name": "x"}), 422),
    ] {
        let asked = post(&app, "/api/tokens", body.to_string()).header("authorization", &admin);
        assert_eq!(asked.answer().await.0, status, "{body}");
    }
    app.close().await;
}

#[tokio::test]
async fn invalid_authorization_headers_are_rejected() {
    let app = guarded().await;
    let admin = token(&app, "acme", Role::Admin).await;
    let long = format!("Bearer noetl_{}", "a".repeat(4000));
    let upper = admin.replace("noetl_", "NOETL_");
    for header in ["", "Bearer", "Bearer ", "Basic YTpi", &admin["Bearer ".len()..], &long, &upper]
    {
        let asked = get(&app, "/api/executions").header("authorization", header).answer().await;
        assert_eq!((asked.0, &asked.1["code"]), (401, &json!("not_authenticated")), "{header}");
    }
    app.store.set_down(true);
    let other = token_of_nobody(&admin);
    let asked = get(&app, "/api/executions").header("authorization", &other).answer().await;
    assert_eq!(asked.0, 503, "{asked:?}");
    app.store.set_down(false);
    app.close().await;
}

/// A token of the right form that the store has to be asked about.
fn token_of_nobody(like: &str) -> String {
    let mut parts: Vec<&str> = like.split('_').collect();
    parts[1] = "0000000000000000";
    parts.join("_")
}
