//! Access to secrets, its audit, and sealing.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit as _, Nonce};
use hkdf::Hkdf;
use insta::assert_snapshot;
use noetl_model::{RuntimeId, Tenant};
use noetl_secrets::{EncryptionKey, Role, TokenRequest};
use noetl_server::{Auth, Options};
use noetl_store::{NewRuntime, RuntimeKind, Store};
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};

use crate::api::{GREET, ask, get, post, register, shown};
use crate::stores::{app, key, on_every_store};

const SECRET: &str = "correct horse battery";

async fn keep(app: &TestApp, name: &str) {
    let data = json!({
        "user": "app", "password": SECRET, "token": "tok-12345678",
        "login": {"password": SECRET},
    });
    let body = json!({"name": name, "type": "postgres", "data": data}).to_string();
    assert_eq!(post(app, "/api/credentials", body).answer().await.0, 200);
}

async fn audit(app: &TestApp, query: &str) -> Vec<Value> {
    let (status, body) = get(app, &format!("/api/internal/secret-audit{query}")).answer().await;
    assert_eq!(status, 200, "{body}");
    body["rows"].as_array().expect("rows").clone()
}

/// Starts a playbook with this `keychain`.
async fn run(app: &TestApp, keychain: &str, payload: Value) -> String {
    let document = GREET.replace("workflow:", &format!("keychain:\n{keychain}workflow:"));
    let (status, body) = register(app, &document).await;
    assert_eq!(status, 200, "{body}");
    let body = json!({"path": "tests/greet", "payload": payload}).to_string();
    let (status, body) = post(app, "/api/execute", body).answer().await;
    assert_eq!(status, 200, "{body}");
    body["execution_id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_use_of_a_secret_is_recorded() {
    on_every_store(async |app| {
        keep(app, "db").await;
        let asked =
            get(app, "/api/credentials/db?include_data=true&execution_id=4711").answer().await;
        assert_eq!(asked.1["data"]["password"], SECRET);
        assert_eq!(get(app, "/api/credentials/no?include_data=true").answer().await.0, 404);
        assert_eq!(get(app, "/api/credentials/db").answer().await.0, 200);
        let rows = audit(app, "").await;
        assert_eq!(rows.len(), 3, "what shows nothing is no use: {rows:?}");
        let outcomes: Vec<_> = rows
            .iter()
            .map(|row| (&row["credential"], &row["operation"], &row["outcome"]))
            .collect();
        let (db, ok) = (&json!("db"), &json!("ok"));
        assert_eq!(
            outcomes,
            [
                (&json!("no"), &json!("resolve"), &json!("not_found")),
                (db, &json!("resolve"), ok),
                (db, &json!("credential.put"), ok),
            ]
        );
        insta::allow_duplicates! { assert_snapshot!(shown(200, rows[1].clone()), @r#"
        200
        {
          "audit_id": "[id]",
          "occurred_at": "[time]",
          "credential": "db",
          "operation": "resolve",
          "outcome": "ok",
          "worker_id": "anybody",
          "execution_id": "4711",
          "parent_execution_id": null,
          "kek_version": "v1",
          "notes": null
        }
        "#); }
        assert_eq!(audit(app, "?credential=db").await.len(), 2);
        assert_eq!(audit(app, "?execution_id=4711").await.len(), 1);
        assert_eq!(audit(app, "?execution_id=1").await.len(), 0);
        assert_eq!(audit(app, "?limit=1").await.len(), 1);
        assert_eq!(audit(app, "?from=2100-01-01T00:00:00Z").await.len(), 0);
        assert_eq!(audit(app, "?to=2100-01-01T00:00:00Z").await.len(), 3);
        let wrong = get(app, "/api/internal/secret-audit?from=yesterday").answer().await;
        assert_eq!((wrong.0, &wrong.1["code"]), (400, &"invalid_query".into()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_tokens_and_credentials_name_their_caller() {
    on_every_store(async |app| {
        keep(app, "db").await;
        let body = json!({"name": "ci", "role": "viewer"}).to_string();
        let (_, made) = post(app, "/api/tokens", body).answer().await;
        let id = made["id"].as_str().expect("an id");
        for (path, status) in [
            (format!("/api/tokens/{id}"), 200),
            ("/api/tokens/nobodys".to_owned(), 404),
            ("/api/credentials/db".to_owned(), 200),
            ("/api/credentials/db".to_owned(), 404),
        ] {
            assert_eq!(ask(app, Method::DELETE, &path).answer().await.0, status, "{path}");
        }
        let mut rows = audit(app, "").await;
        rows.reverse();
        let lines = rows.iter().map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or_default();
            format!("{} {} {}", text("worker_id"), text("operation"), text("credential"))
        });
        let token = format!("ci ({id})");
        let expected = [
            "anybody credential.put db".to_owned(),
            format!("anybody token.create {token}"),
            format!("anybody token.revoke {token}"),
            "anybody credential.delete db".to_owned(),
        ];
        assert_eq!(lines.collect::<Vec<_>>(), expected, "and what changed nothing is not");
    })
    .await;
}

#[tokio::test]
async fn an_unrecordable_change_is_applied_only_if_permitted() {
    for is_required in [false, true] {
        let builder = TestApp::builder().slots(0).encryption_key(key());
        let builder = if is_required { builder.audit_required() } else { builder };
        let app = builder.start().await;
        app.store.set_no_audit(true);
        let expected = if is_required { 503 } else { 200 };
        let body = json!({"name": "db", "type": "t", "data": {"a": "b"}}).to_string();
        let stored = post(&app, "/api/credentials", body).answer().await;
        assert_eq!(stored.0, expected, "{stored:?}");
        let body = json!({"name": "ci", "role": "viewer"}).to_string();
        let made = post(&app, "/api/tokens", body).answer().await;
        assert_eq!(made.0, expected, "{made:?}");
        if is_required {
            assert_eq!(stored.1["code"], "secret_audit_unavailable");
            assert_eq!(made.1["code"], "secret_audit_unavailable");
        }
        let (_, list) = get(&app, "/api/tokens").answer().await;
        assert_eq!(list["tokens"].as_array().map(Vec::is_empty), Some(is_required), "{list}");
        app.close().await;
    }
}

#[tokio::test]
async fn a_secret_whose_use_cannot_be_recorded_is_returned_only_if_permitted() {
    for is_required in [false, true] {
        let builder = TestApp::builder().slots(0).encryption_key(key());
        let builder = if is_required { builder.audit_required() } else { builder };
        let app = builder.start().await;
        keep(&app, "db").await;
        app.store.set_no_audit(true);
        let (status, body) = get(&app, "/api/credentials/db?include_data=true").answer().await;
        if is_required {
            assert_snapshot!(shown(status, body), @r#"
            503
            {
              "error": "failed to record the use of a secret in the audit, so access was denied",
              "status": 503,
              "code": "secret_audit_unavailable",
              "detail": "failed to record the use of a secret in the audit, so access was denied",
              "message": "failed to record the use of a secret in the audit, so access was denied"
            }
            "#);
        } else {
            assert_eq!((status, &body["data"]["password"]), (200, &SECRET.into()));
        }
        app.close().await;
    }
}

#[tokio::test]
async fn keychain_entries_are_resolved_by_the_declarations_of_the_playbook() {
    let app = app().await;
    keep(&app, "db").await;
    let keychain = "  - {name: store, kind: credential, credential: \"{{ workload.which }}\"}
  - {name: renamed, kind: credential, credential: db, map: {pass: login.password}}
  - {name: fixed, kind: static, map: {region: eu}}
  - {name: bearer, kind: bearer, credential: db}
  - {name: gone, kind: credential, credential: nowhere}
  - {name: far, kind: oauth2, endpoint: 'https://far.example'}
  - {name: cloud, kind: secret_manager, provider: gcp}
";
    let id = run(&app, keychain, json!({"which": "db"})).await;
    let ask = async |name: &str, query: &str| {
        let path = format!("/api/credentials/{name}?include_data=true{query}");
        get(&app, &path).answer().await
    };
    let of = format!("&execution_id={id}");
    let (status, entry) = ask("renamed", &of).await;
    assert_snapshot!(shown(status, entry), @r#"
    200
    {
      "id": "0",
      "name": "renamed",
      "type": "keychain",
      "created_at": "[time]",
      "updated_at": "[time]",
      "data": {
        "pass": "correct horse battery"
      }
    }
    "#);
    assert_eq!(ask("store", &of).await.1["data"]["user"], "app", "its settings are rendered");
    assert_eq!(ask("fixed", &of).await.1["data"], json!({"region": "eu"}));
    assert_eq!(ask("bearer", &of).await.1["data"]["access_token"], "tok-12345678");
    for name in ["gone", "far", "cloud"] {
        let (status, body) = ask(name, &of).await;
        assert_eq!((status, &body["code"]), (422, &"keychain_unresolved".into()), "{name}: {body}");
    }
    assert_snapshot!(shown(ask("gone", &of).await.0, ask("gone", &of).await.1), @r#"
    422
    {
      "error": "keychain entry 'gone' is unavailable: there is no credential 'nowhere'",
      "status": 422,
      "code": "keychain_unresolved",
      "detail": "keychain entry 'gone' is unavailable: there is no credential 'nowhere'",
      "message": "keychain entry 'gone' is unavailable: there is no credential 'nowhere'"
    }
    "#);
    for (name, query) in [
        ("renamed", ""),
        ("renamed", "&execution_id=0"),
        ("renamed", "&execution_id=4711"),
        ("unknown", of.as_str()),
    ] {
        let (status, body) = ask(name, query).await;
        assert_eq!((status, &body["code"]), (404, &"credential_not_found".into()), "{name}{query}");
    }
    let plain = get(&app, &format!("/api/credentials/renamed?execution_id={id}")).answer().await;
    assert_eq!(plain.0, 404, "nothing is resolved for who does not ask for it");
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keychain_entries_of_an_execution_precede_declared_ones() {
    on_every_store(async |app| {
        let id =
            run(app, "  - {name: api, kind: static, map: {token: declared}}\n", json!({})).await;
        let path = format!("/api/credentials/api?include_data=true&execution_id={id}");
        let token = async || get(app, &path).answer().await.1["data"]["token"].clone();
        assert_eq!(token().await, "declared");
        let resource = r#"{"path":"tests/greet"}"#;
        let (_, entry) = post(app, "/api/catalog/resource", resource).answer().await;
        let catalog = entry["catalog_id"].as_str().expect("an id");
        for (scope, execution) in [("global", None), ("shared", Some(&id)), ("local", Some(&id))] {
            let body = json!({
                "data": {"token": scope}, "scope_type": scope, "execution_id": execution,
            });
            let put = post(app, &format!("/api/keychain/{catalog}/api"), body.to_string());
            assert_eq!(put.answer().await.0, 200);
            assert_eq!(token().await, scope);
        }
        let rows = audit(app, &format!("?execution_id={id}&credential=keychain.api")).await;
        assert_eq!(rows.len(), 4, "{rows:?}");
    })
    .await;
}

/// Registers a worker with this public key.
async fn worker(store: &dyn Store, name: &str, runtime: Option<Value>) {
    let new = NewRuntime {
        id: RuntimeId::new(i64::from(name.as_bytes()[0])),
        kind: RuntimeKind::WorkerPool,
        name: name.to_owned(),
        uri: None,
        status: "ready".to_owned(),
        labels: None,
        capabilities: None,
        capacity: None,
        runtime,
    };
    store.register_runtime(&Tenant::default(), new).await.expect("registered");
}

#[tokio::test]
async fn a_sealed_credential_decrypts_to_the_plain_response() {
    let app = app().await;
    keep(&app, "db").await;
    let secret = StaticSecret::from([7; 32]);
    let public = BASE64_STANDARD.encode(PublicKey::from(&secret).as_bytes());
    worker(&*app.store, "w-1", Some(json!({ "worker_public_key": public }))).await;
    let path = "/api/credentials/db/sealed?worker_id=w-1&execution_id=4711";
    let (status, sealed) = get(&app, path).answer().await;
    assert_eq!(status, 200, "{sealed}");
    assert_eq!(
        (&sealed["alg"], &sealed["v"]),
        (&"x25519-hkdf-sha256-chacha20-poly1305".into(), &1.into())
    );
    assert!(!sealed.to_string().contains(SECRET));
    let bytes = |field: &str| {
        BASE64_STANDARD.decode(sealed[field].as_str().expect("text")).expect("base64")
    };
    let ephemeral = <[u8; 32]>::try_from(bytes("eph_pub")).expect("32 bytes");
    let shared = secret.diffie_hellman(&PublicKey::from(ephemeral));
    let mut made = [0; 44];
    let hkdf = Hkdf::<Sha256>::new(None, shared.as_bytes());
    hkdf.expand(b"noetl-sealed-v1", &mut made).expect("a length that fits");
    let cipher = ChaCha20Poly1305::new(Key::from_slice(&made[..32]));
    let payload =
        Payload { msg: &bytes("ciphertext"), aad: b"x25519-hkdf-sha256-chacha20-poly1305|v=1" };
    let plain = cipher.decrypt(Nonce::from_slice(&made[32..]), payload).expect("its own");
    let opened: Value = serde_json::from_slice(&plain).expect("JSON");
    let (_, expected) = get(&app, "/api/credentials/db?include_data=true").answer().await;
    assert_eq!(opened, expected);
    let rows = audit(&app, "?execution_id=4711").await;
    // The request had no token; the name of the worker is a note.
    assert_eq!(
        (&rows[0]["operation"], &rows[0]["worker_id"], &rows[0]["notes"]),
        (&"sealed".into(), &"anybody".into(), &"worker w-1".into())
    );
    app.close().await;
}

#[tokio::test]
async fn credentials_are_not_sealed_for_a_worker_without_a_key() {
    let app = app().await;
    keep(&app, "db").await;
    let weak = BASE64_STANDARD.encode([0; 32]);
    worker(&*app.store, "a", None).await;
    worker(&*app.store, "b", Some(json!({"worker_public_key": "abc"}))).await;
    worker(&*app.store, "c", Some(json!({ "worker_public_key": weak }))).await;
    for name in ["a", "b", "c", "nobody"] {
        let path = format!("/api/credentials/db/sealed?worker_id={name}");
        let (status, body) = get(&app, &path).answer().await;
        assert_eq!((status, &body["code"]), (400, &"no_worker_key".into()), "{name}: {body}");
    }
    assert_snapshot!(get(&app, "/api/credentials/db/sealed?worker_id=nobody").shown().await, @r#"
    400
    {
      "error": "nothing can be sealed for worker 'nobody': it has not registered",
      "status": 400,
      "code": "no_worker_key",
      "detail": "nothing can be sealed for worker 'nobody': it has not registered",
      "message": "nothing can be sealed for worker 'nobody': it has not registered"
    }
    "#);
    let unnamed = get(&app, "/api/credentials/db/sealed").answer().await;
    assert_eq!((unnamed.0, &unnamed.1["code"]), (400, &"invalid_query".into()));
    app.close().await;
}

#[tokio::test]
async fn no_other_route_shows_a_secret() {
    let app = app().await;
    keep(&app, "db").await;
    let id = run(&app, "  - {name: api, kind: credential, credential: db}\n", json!({})).await;
    let body = json!({"data": {"token": SECRET}, "scope_type": "local", "execution_id": id});
    let resource =
        post(&app, "/api/catalog/resource", r#"{"path":"tests/greet"}"#).answer().await.1;
    let catalog = resource["catalog_id"].as_str().expect("an id").to_owned();
    let put = post(&app, &format!("/api/keychain/{catalog}/api"), body.to_string()).answer().await;
    // From here on it is known by value in this process.
    get(&app, "/api/credentials/db?include_data=true").answer().await;
    let vars = json!({"leak": format!("it is {SECRET}")}).to_string();
    post(&app, &format!("/api/vars/{id}"), vars).answer().await;
    let mut shown = vec![put.1];
    for path in [
        "/api/credentials".to_owned(),
        "/api/credentials/db".to_owned(),
        format!("/api/keychain/catalog/{catalog}"),
        format!("/api/vars/{id}"),
        format!("/api/vars/{id}/leak"),
        format!("/api/executions/{id}"),
        "/api/internal/secret-audit".to_owned(),
        "/api/internal/wallet/key-status".to_owned(),
        "/api/catalog/versions?path=tests/greet".to_owned(),
        "/metrics".to_owned(),
    ] {
        let (status, body) = get(&app, &path).answer().await;
        assert_eq!(status, 200, "{path}: {body}");
        shown.push(body);
    }
    for body in shown {
        let text = body.to_string();
        assert!(!text.contains(SECRET) && !text.contains("tok-12345678"), "{text}");
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_stay_readable_while_the_encryption_key_is_rotated() {
    let store = std::sync::Arc::new(noetl_test_app::FaultyStore::default());
    let app = TestApp::builder().slots(0).store(store.clone()).encryption_key(key()).start().await;
    for name in ["a", "b", "c"] {
        keep(&app, name).await;
    }
    let body = json!({"data": {"token": SECRET}}).to_string();
    assert_eq!(post(&app, "/api/keychain/7/api", body).answer().await.0, 200);
    app.close().await;

    let new = EncryptionKey::generate().with_version("v2");
    let both = new.clone().with_previous(&key());
    let app = TestApp::builder().slots(0).store(store.clone()).encryption_key(both).start().await;
    assert_snapshot!(get(&app, "/api/internal/wallet/key-status").shown().await, @r#"
    200
    {
      "version": "v2",
      "has_previous": true,
      "complete": false,
      "credentials": {
        "total": 3,
        "current": 0,
        "previous": 3,
        "unreadable": 0,
        "versions": {
          "v1": 3
        }
      },
      "keychain": {
        "total": 1,
        "current": 0,
        "previous": 1,
        "unreadable": 0,
        "versions": {
          "v1": 1
        }
      }
    }
    "#);
    let rotate =
        async |body: &str| post(&app, "/api/internal/wallet/rotate-kek", body).answer().await;
    let (status, first) = rotate(r#"{"limit":2}"#).await;
    assert_eq!(
        (status, &first["credentials"], &first["complete"]),
        (200, &2.into(), &false.into())
    );
    let read = get(&app, "/api/credentials/c?include_data=true").answer().await;
    assert_eq!(read.1["data"]["password"], SECRET, "half-way everything can be read");
    let (status, rest) = rotate("").await;
    assert_snapshot!(shown(status, rest), @r#"
    200
    {
      "credentials": 1,
      "keychain": 1,
      "current": 2,
      "changed": 0,
      "unreadable": 0,
      "unreadable_places": [],
      "complete": true
    }
    "#);
    let (_, again) = rotate("").await;
    assert_eq!((&again["credentials"], &again["current"]), (&0.into(), &4.into()));
    let status = get(&app, "/api/internal/wallet/key-status").answer().await.1;
    assert_eq!((&status["complete"], &status["keychain"]["current"]), (&true.into(), &1.into()));
    app.close().await;

    let app = TestApp::builder().slots(0).store(store).encryption_key(new).start().await;
    let read = get(&app, "/api/credentials/a?include_data=true").answer().await;
    assert_eq!(read.1["data"]["password"], SECRET, "without the key before");
    assert_eq!(get(&app, "/api/keychain/7/api").answer().await.1["data"]["token"], SECRET);
    app.close().await;
}

#[tokio::test]
async fn values_that_neither_key_decrypts_are_reported_and_unchanged() {
    let store = std::sync::Arc::new(noetl_test_app::FaultyStore::default());
    let lost = EncryptionKey::generate();
    let app = TestApp::builder().slots(0).store(store.clone()).encryption_key(lost).start().await;
    keep(&app, "lost").await;
    app.close().await;
    let app = TestApp::builder().slots(0).store(store).encryption_key(key()).start().await;
    keep(&app, "fine").await;
    let (_, done) = post(&app, "/api/internal/wallet/rotate-kek", "{}").answer().await;
    assert_eq!((&done["unreadable"], &done["current"]), (&1.into(), &1.into()), "{done}");
    let place = done["unreadable_places"][0].as_str().expect("a place");
    assert!(place.starts_with("credential "), "{place}");
    let (status, body) = get(&app, "/api/credentials/lost?include_data=true").answer().await;
    assert_eq!((status, &body["code"]), (500, &"credential_unreadable".into()));
    let rows = audit(&app, "?credential=lost").await;
    assert_eq!(rows[0]["outcome"], "failed");
    app.close().await;
    let none = TestApp::start(0).await;
    for path in ["/api/internal/wallet/key-status", "/api/keychain/1/a"] {
        let _ = get(&none, path).answer().await;
    }
    let (status, body) = get(&none, "/api/internal/wallet/key-status").answer().await;
    assert_eq!((status, &body["code"]), (503, &"no_encryption_key".into()));
    none.close().await;
}

#[tokio::test]
async fn the_token_decides_which_secrets_a_caller_gets() {
    let options = Options { auth: Auth::Token, ..Options::default() };
    let builder = TestApp::builder().slots(0).encryption_key(key()).options(options);
    let app = builder.start().await;
    let token = async |tenant: &str, role: Role| {
        let request = TokenRequest { name: role.to_string(), role, lasts: None, pool: None };
        let made = app.control.secrets.tokens.create(&Tenant::new(tenant), request).await;
        format!("Bearer {}", made.expect("a token").1)
    };
    let author = token("acme", Role::Author).await;
    let body = json!({"name": "db", "type": "t", "data": {"password": SECRET}}).to_string();
    let stored =
        post(&app, "/api/credentials", body).header("authorization", &author).answer().await;
    assert_eq!(stored.0, 200, "{}", stored.1);
    for (tenant, role, status) in [
        // It holds no command that names the credential.
        ("acme", Role::Worker, 403),
        ("acme", Role::Admin, 200),
        ("acme", Role::Author, 403),
        ("acme", Role::Operator, 403),
        ("acme", Role::Viewer, 403),
        ("other", Role::Worker, 403),
        ("other", Role::Admin, 404),
    ] {
        let bearer = token(tenant, role).await;
        let asked = get(&app, "/api/credentials/db?include_data=true");
        let (actual, body) = asked.header("authorization", &bearer).answer().await;
        assert_eq!(actual, status, "{tenant} {role}: {body}");
        assert_eq!(body.to_string().contains(SECRET), status == 200, "{tenant} {role}");
    }
    let viewer = token("acme", Role::Viewer).await;
    let asked = get(&app, "/api/credentials/db?include_data=true");
    assert_snapshot!(asked.header("authorization", &viewer).shown().await, @r#"
    403
    {
      "error": "what a credential holds is shown to workers and admins only",
      "status": 403,
      "code": "role_missing",
      "detail": "what a credential holds is shown to workers and admins only",
      "message": "what a credential holds is shown to workers and admins only"
    }
    "#);
    let worker = token("acme", Role::Worker).await;
    for (key, status) in [("tenant=acme/a", 404), ("a", 404), ("x/tenant=other/a", 403)] {
        let asked = get(&app, &format!("/api/internal/objects/{key}"));
        let (actual, body) = asked.header("authorization", &worker).answer().await;
        assert_eq!(actual, status, "{key}: {body}");
    }
    app.close().await;
}
