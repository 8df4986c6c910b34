//! A gateway as a caller: Basic credentials, and the sessions of people behind it.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use insta::assert_snapshot;
use noetl_model::{Tenant, Timestamp};
use noetl_secrets::{EncryptionKey, Role, TokenRequest};
use noetl_server::{
    Auth, Options, SessionCredential, SessionDatabase, SessionFuture, SessionLookupError, Sessions,
    StoredSession,
};
use noetl_store::AuditFilter;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::actors::{named, send};
use crate::api::{GREET, get, post};
use crate::roles::{basic, token};

/// A database with one session, `4be1`, of user 7; `down` is unavailable.
struct OneSession;

impl SessionDatabase for OneSession {
    fn find<'a>(&'a self, credential: &'a SessionCredential, token: &'a str) -> SessionFuture<'a> {
        assert_eq!((&*credential.name, &*credential.kind), ("pg_auth", "postgres"));
        assert_eq!(credential.data["db_host"], "db.example");
        Box::pin(async move {
            match token {
                "4be1" => Ok(Some(StoredSession {
                    user_id: 7,
                    email: "token:of-another@example.com".to_owned(),
                    display_name: "Ada".to_owned(),
                    roles: vec!["admin".to_owned()],
                    expires_at: Timestamp::from_millis(1_800_000_000_000),
                })),
                "down" => Err(SessionLookupError("db.example refused user noetl".to_owned())),
                _ => Ok(None),
            }
        })
    }
}

/// An app in token mode, with a database of sessions or without.
async fn guarded(sessions: Option<Sessions>) -> TestApp {
    let options =
        Options { auth: Auth::Token, allow_any_host: true, sessions, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options);
    app.encryption_key(EncryptionKey::generate()).start().await
}

fn database() -> Option<Sessions> {
    Some(Sessions::new("pg_auth", Arc::new(OneSession)))
}

/// Makes a token of the default tenant: its ID, and its text.
async fn made(app: &TestApp, role: Role) -> (String, String) {
    let request = TokenRequest { name: role.to_string(), role, lasts: None, pool: None };
    let made =
        app.control.secrets.tokens.create(&Tenant::default(), request).await.expect("a token");
    (made.0.kept.id, made.1)
}

/// `GET /api/whoami` of a gateway for a session.
async fn whoami(app: &TestApp, gateway: &str, session: &str) -> (u16, Value) {
    let asked = get(app, "/api/whoami").header("authorization", gateway);
    asked.header("x-session-token", session).answer().await
}

async fn put_credential(app: &TestApp, admin: &str) {
    let data = json!({"db_host": "db.example", "db_user": "noetl", "db_password": "hunter2"});
    let body = json!({"name": "pg_auth", "type": "postgres", "data": data});
    let stored = send(app, Method::POST, admin, "/api/credentials", body).await;
    assert_eq!(stored.0, 200, "{stored:?}");
}

#[tokio::test]
async fn the_user_name_of_basic_credentials_identifies_no_one() {
    let app = guarded(None).await;
    let operator = token(&app, "default", Role::Operator).await;
    let (_, expected) = get(&app, "/api/whoami").header("authorization", &operator).answer().await;
    assert_eq!(expected["roles"], json!(["operator"]));
    for name in ["gateway", "", "admin", "0123456789abcdef", "noetl_a_b"] {
        let header = basic(name, &operator);
        let seen = get(&app, "/api/whoami").header("authorization", &header).answer().await;
        assert_eq!(seen, (200, expected.clone()), "{name}");
    }
    app.close().await;
}

#[tokio::test]
async fn malformed_basic_credentials_are_rejected_with_the_form_they_should_have() {
    let app = guarded(None).await;
    let operator = token(&app, "default", Role::Operator).await;
    let secret = operator.strip_prefix("Bearer ").expect("a token");
    let encoded = |text: &str| format!("Basic {}", STANDARD.encode(text));
    let huge = encoded(&format!("gateway:{}", "a".repeat(20_000)));
    let mut shown = String::new();
    for (what, header) in [
        ("not encoded", format!("Basic gateway:{secret}")),
        ("no colon", encoded(secret)),
        ("token as the name", encoded(&format!("{secret}:"))),
        ("nothing", "Basic".to_owned()),
        ("another scheme", format!("Digest {secret}")),
        ("huge", huge),
        ("another token", encoded("gateway:noetl_0123456789abcdef_x")),
    ] {
        let (status, body) =
            get(&app, "/api/executions").header("authorization", &header).answer().await;
        assert_eq!((status, &body["code"]), (401, &json!("not_authenticated")), "{what}");
        let message = body["message"].as_str().expect("a message");
        assert!(!message.contains(secret) && message.len() < 200, "{message}");
        shown += &format!("{what}: {message}\n");
    }
    assert_snapshot!(shown, @"
    not encoded: the Basic credentials in the Authorization header must be base64 of 'name:token'
    no colon: the Basic credentials in the Authorization header have no ':'; send base64 of 'name:token'
    token as the name: the Basic credentials in the Authorization header have no password; send the access token as the password, as base64 of 'name:token'
    nothing: the Authorization header must be of the form 'Bearer <token>', or 'Basic <base64 of name:token>'
    another scheme: the Authorization header must be of the form 'Bearer <token>', or 'Basic <base64 of name:token>'
    huge: the Basic credentials in the Authorization header exceed 16 KiB; send base64 of 'name:token'
    another token: the token is unknown, expired or revoked
    ");
    app.close().await;
}

#[tokio::test]
async fn a_session_token_acts_as_its_owner_with_the_rights_common_to_both_tokens() {
    let app = guarded(None).await;
    let (_, gateway) = made(&app, Role::Operator).await;
    let gateway = basic("gateway", &format!("Bearer {gateway}"));
    for (role, roles) in [
        (Role::Operator, "operator"),
        (Role::Author, "author"),
        (Role::Viewer, "viewer"),
        // An admin behind the gateway of an operator is an operator.
        (Role::Admin, "operator"),
    ] {
        let (id, session) = made(&app, role).await;
        let (status, who) = whoami(&app, &gateway, &session).await;
        assert_eq!(status, 200, "{who}");
        let expected = (json!(format!("token:{id}")), json!([roles]));
        assert_eq!((&who["actor"], &who["roles"]), (&expected.0, &expected.1), "{role}");
    }
    // Neither the gateway nor the session may more than alone.
    let (_, admin) = made(&app, Role::Admin).await;
    let (_, viewer) = made(&app, Role::Viewer).await;
    let as_admin = basic("gateway", &format!("Bearer {admin}"));
    for (authorization, session, path, body) in [
        (&gateway, &admin, "/api/tokens", json!({"name": "x", "role": "admin"})),
        (&as_admin, &viewer, "/api/tokens", json!({"name": "x", "role": "admin"})),
        (&as_admin, &viewer, "/api/execute", json!({"path": "tests/greet"})),
    ] {
        let asked = post(&app, path, body.to_string()).header("authorization", authorization);
        let (status, body) = asked.header("x-session-token", session).answer().await;
        assert_eq!((status, &body["code"]), (403, &json!("role_missing")), "{path}: {body}");
    }
    app.close().await;
}

#[tokio::test]
async fn records_name_the_owner_of_the_session() {
    let app = guarded(None).await;
    let (_, gateway) = made(&app, Role::Admin).await;
    let (id, session) = made(&app, Role::Operator).await;
    let gateway = format!("Bearer {gateway}");
    let registered =
        send(&app, Method::POST, &gateway, "/api/catalog/register", json!({"content": GREET}))
            .await;
    assert_eq!(registered.0, 200, "{registered:?}");
    let asked = post(&app, "/api/execute", r#"{"path":"tests/greet"}"#);
    let asked = asked.header("authorization", &basic("gateway", &gateway));
    let (status, begun) = asked.header("x-session-token", &session).answer().await;
    assert_eq!(status, 200, "{begun}");
    let started = named(&app, &begun["execution_id"]).await;
    assert_eq!(started, [format!("playbook_started token:{id}")]);
    let filter = AuditFilter { limit: 100, ..AuditFilter::default() };
    let uses = app.control.secrets.audit.list(&Tenant::default(), &filter).await.expect("a list");
    let start = uses.iter().find(|used| used.operation == "execution.start").expect("a record");
    assert_eq!(start.worker.as_deref(), Some(&*format!("token:{id}")));
    app.close().await;
}

#[tokio::test]
async fn an_invalid_session_names_no_actor() {
    let app = guarded(None).await;
    let (gateway_id, gateway) = made(&app, Role::Operator).await;
    let (id, revoked) = made(&app, Role::Operator).await;
    app.control.secrets.tokens.revoke(&Tenant::default(), &id).await.expect("an answer");
    let forged = format!("{}x", gateway);
    let authorization = basic("gateway", &format!("Bearer {gateway}"));
    for session in [&*revoked, &*forged, "noetl_", "noetl_a_b"] {
        let (status, body) = whoami(&app, &authorization, session).await;
        assert_eq!((status, &body["code"]), (401, &json!("session_unknown")), "{session}");
        assert!(!body.to_string().contains(session.trim_start_matches("noetl_a")), "{body}");
    }
    let other = token(&app, "other", Role::Operator).await;
    let (status, body) =
        whoami(&app, &authorization, other.strip_prefix("Bearer ").expect("it")).await;
    assert_eq!((status, &body["code"]), (403, &json!("session_of_other_tenant")), "{body}");
    let twice = get(&app, "/api/whoami").header("authorization", &authorization);
    let twice = twice.header("x-session-token", &gateway).header("x-session-token", &revoked);
    assert_eq!(twice.answer().await.1["code"], "session_unknown");
    // Without a database of sessions, nothing can verify other text, and it has no effect.
    for session in ["4be1", "token:0123456789abcdef", "", " ", &gateway] {
        let (status, who) = whoami(&app, &authorization, session).await;
        let expected = json!(format!("token:{gateway_id}"));
        assert_eq!((status, &who["actor"]), (200, &expected), "{session}");
    }
    app.close().await;
}

#[tokio::test]
async fn sessions_of_callers_below_operator_are_ignored() {
    let app = guarded(database()).await;
    let (_, operator) = made(&app, Role::Operator).await;
    for role in [Role::Author, Role::Viewer, Role::Worker] {
        let (id, own) = made(&app, role).await;
        let bearer = format!("Bearer {own}");
        for session in [&*operator, "4be1", "noetl_a_b"] {
            let (status, who) = whoami(&app, &bearer, session).await;
            assert_eq!(
                (status, &who["actor"]),
                (200, &json!(format!("token:{id}"))),
                "{role}: {who}"
            );
        }
    }
    app.close().await;
}

#[tokio::test]
async fn a_session_of_the_database_is_recorded_beside_the_token_and_changes_no_rights() {
    let app = guarded(database()).await;
    let (_, admin) = made(&app, Role::Admin).await;
    let admin = format!("Bearer {admin}");
    let (id, gateway) = made(&app, Role::Operator).await;
    let gateway = basic("gateway", &format!("Bearer {gateway}"));
    let (status, body) = whoami(&app, &gateway, "4be1").await;
    assert_eq!((status, &body["code"]), (503, &json!("session_credential_unavailable")), "{body}");
    put_credential(&app, &admin).await;
    let actor = format!("session:pg_auth/7 via token:{id}");
    let (status, who) = whoami(&app, &gateway, "4be1").await;
    assert_eq!((status, &who["actor"], &who["roles"]), (200, &json!(actor), &json!(["operator"])));
    let registered =
        send(&app, Method::POST, &admin, "/api/catalog/register", json!({"content": GREET})).await;
    assert_eq!(registered.0, 200, "{registered:?}");
    let asked = post(&app, "/api/execute", r#"{"path":"tests/greet"}"#);
    let asked = asked.header("authorization", &gateway).header("x-session-token", "4be1");
    let (_, begun) = asked.answer().await;
    let started = named(&app, &begun["execution_id"]).await;
    assert_eq!(started, [format!("playbook_started {actor}")]);
    // A role in the database of sessions is none here.
    let asked = post(&app, "/api/tokens", r#"{"name":"x","role":"admin"}"#);
    let asked = asked.header("authorization", &gateway).header("x-session-token", "4be1");
    assert_eq!(asked.answer().await.1["code"], "role_missing");
    let long = "4be1".repeat(500);
    for session in ["4be2", "dev-skip-auth", &long] {
        let (status, body) = whoami(&app, &gateway, session).await;
        assert_eq!((status, &body["code"]), (401, &json!("session_unknown")), "{session}");
    }
    let (status, body) = whoami(&app, &gateway, "down").await;
    assert_eq!((status, &body["code"]), (503, &json!("session_database_unavailable")), "{body}");
    assert!(!body.to_string().contains("db.example"), "{body}");
    app.close().await;
}

#[tokio::test]
async fn grants_of_a_gateway_are_those_of_its_token() {
    let app = guarded(database()).await;
    let (_, admin) = made(&app, Role::Admin).await;
    let admin = format!("Bearer {admin}");
    put_credential(&app, &admin).await;
    let (id, gateway) = made(&app, Role::Operator).await;
    let gateway = basic("gateway", &format!("Bearer {gateway}"));
    let register = json!({"content": GREET});
    send(&app, Method::POST, &admin, "/api/catalog/register", register).await;
    let start = async || {
        let asked = post(&app, "/api/execute", r#"{"path":"tests/greet"}"#);
        asked.header("authorization", &gateway).header("x-session-token", "4be1").answer().await
    };
    let grant =
        |prefix: &str| json!({"role": "operator", "to": format!("token:{id}"), "prefix": prefix});
    let other = send(&app, Method::POST, &admin, "/api/grants", grant("team-a/")).await;
    assert_eq!(other.0, 200, "{other:?}");
    let (status, body) = start().await;
    assert_eq!((status, &body["code"]), (403, &json!("path_not_granted")), "{body}");
    send(&app, Method::POST, &admin, "/api/grants", grant("tests/")).await;
    let (status, body) = start().await;
    assert_eq!(status, 200, "{body}");
    app.close().await;
}

#[tokio::test]
async fn session_validation_queries_the_database_of_the_credential() {
    let app = guarded(database()).await;
    let (_, admin) = made(&app, Role::Admin).await;
    let admin = format!("Bearer {admin}");
    put_credential(&app, &admin).await;
    let (_, gateway) = made(&app, Role::Operator).await;
    let gateway = basic("gateway", &format!("Bearer {gateway}"));
    let validate = async |authorization: Option<&str>, session: &str, credential: &str| {
        let body = json!({"session_token": session, "credential": credential}).to_string();
        let mut asked = post(&app, "/api/auth/session/validate", body);
        if let Some(authorization) = authorization {
            asked = asked.header("authorization", authorization);
        }
        let (status, body) = asked.answer().await;
        format!("{status} {body}\n")
    };
    let mut shown = validate(Some(&gateway), "4be1", "pg_auth").await;
    shown += &validate(Some(&gateway), "4be2", "pg_auth").await;
    shown += &validate(Some(&gateway), "down", "pg_auth").await;
    shown += &validate(Some(&gateway), "4be1", "other").await;
    shown += &validate(None, "4be1", "pg_auth").await;
    shown += &validate(Some("Bearer noetl_a_b"), "4be1", "pg_auth").await;
    assert_snapshot!(shown, @r#"
    200 {"status":"ok","valid":true,"user":{"user_id":7,"email":"token:of-another@example.com","display_name":"Ada","roles":["admin"]},"expires_at":"2027-01-15T08:00:00Z"}
    200 {"status":"ok","valid":false,"error":"the session is unknown, expired, or inactive"}
    200 {"status":"error","valid":false,"error":"the database of sessions is unavailable; the server log has the cause"}
    200 {"status":"error","valid":false,"error":"sessions are validated with the credential that NOETL_SESSION_CREDENTIAL names, and the request names another"}
    200 {"status":"error","valid":false,"error":"sessions of a database are validated for callers with a token only: send an access token of role operator or admin in the Authorization header"}
    401 {"error":"the token is unknown, expired or revoked","status":401,"code":"not_authenticated","detail":"the token is unknown, expired or revoked","message":"the token is unknown, expired or revoked"}
    "#);
    let viewer = token(&app, "default", Role::Viewer).await;
    assert!(validate(Some(&viewer), "4be1", "pg_auth").await.starts_with("403 "));
    // Another tenant could name a host of its choice.
    let other = token(&app, "other", Role::Operator).await;
    let refused = validate(Some(&other), "4be1", "pg_auth").await;
    assert!(refused.contains("for callers of the default tenant only"), "{refused}");
    let (status, who) = whoami(&app, &other, "4be1").await;
    assert_eq!(status, 200, "{who}");
    assert!(who["actor"].as_str().is_some_and(|actor| actor.starts_with("token:")), "{who}");
    app.close().await;
}
