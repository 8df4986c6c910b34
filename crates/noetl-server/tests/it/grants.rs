//! Grants: which callers act on which paths, and which playbooks use which credentials.

use noetl_model::Tenant;
use noetl_secrets::{EncryptionKey, Role};
use noetl_server::{Auth, Options};
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{ask, get, post};
use crate::roles::token;

/// A playbook at a path whose step reads the credential `db`.
fn document(path: &str) -> String {
    format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: p, path: {path}}}\n\
         workflow:\n  - step: start\n    tool: {{kind: secrets, auth: db}}\n"
    )
}

async fn guarded() -> TestApp {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options);
    app.encryption_key(EncryptionKey::generate()).start().await
}

async fn send(app: &TestApp, verb: Method, bearer: &str, path: &str, body: Value) -> (u16, Value) {
    let asked = ask(app, verb, path).header("authorization", bearer);
    asked.header("content-type", "application/json").body(body.to_string()).answer().await
}

async fn actor(app: &TestApp, bearer: &str) -> String {
    let (_, who) = get(app, "/api/whoami").header("authorization", bearer).answer().await;
    who["actor"].as_str().expect("an identity").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_document_needs_a_grant_for_its_path() {
    let app = guarded().await;
    let admin = token(&app, "acme", Role::Admin).await;
    let (author, operator) =
        (token(&app, "acme", Role::Author).await, token(&app, "acme", Role::Operator).await);
    for path in ["team-a/p", "team-b/p"] {
        let body = json!({"content": document(path)});
        let stored = send(&app, Method::POST, &admin, "/api/catalog/register", body).await;
        assert_eq!(stored.0, 200, "{stored:?}");
    }
    let start = async |path: &str| {
        let body = json!({"path": path});
        let (_, begun) = send(&app, Method::POST, &admin, "/api/execute", body).await;
        begun["execution_id"].as_str().expect("an id").to_owned()
    };
    let executions = [start("team-a/p").await, start("team-b/p").await];

    // Without grants both teams are open to both roles; what is refused is refused for other reasons.
    let cases = |team: &str, execution: &str| {
        let path = format!("{team}/p");
        let execution = |action: &str| format!("/api/executions/{execution}/{action}");
        vec![
            (
                &author,
                Method::POST,
                "/api/catalog/register".to_owned(),
                json!({"content": document(&path)}),
            ),
            (
                &author,
                Method::PUT,
                format!("/api/catalog/playbook/content?playbook_id={path}"),
                json!({"content": document(&path)}),
            ),
            (
                &author,
                Method::POST,
                "/api/catalog/delete".to_owned(),
                json!({"path": path, "version": 99}),
            ),
            (&author, Method::POST, "/api/catalog/restore".to_owned(), json!({"path": path})),
            (
                &author,
                Method::PUT,
                format!("/api/playbook-tests/suites/{path}"),
                json!({"playbook_path": path}),
            ),
            (&author, Method::POST, "/api/execute".to_owned(), json!({"path": path})),
            (&operator, Method::POST, "/api/execute".to_owned(), json!({"path": path})),
            (&author, Method::POST, "/api/schedules".to_owned(), json!({"playbook": path})),
            (&operator, Method::POST, "/api/subscriptions".to_owned(), json!({"path": path})),
            (&author, Method::POST, execution("rerun"), json!({})),
            (&author, Method::POST, execution("fork"), json!({})),
            (&author, Method::POST, execution("retry"), json!({})),
            (&operator, Method::POST, execution("finalize"), json!({})),
            (&operator, Method::POST, execution("answers/1"), json!({})),
            (&operator, Method::POST, execution("cancel"), json!({})),
        ]
    };
    let codes = async |team: &str, execution: &str| {
        let mut codes = Vec::new();
        for (bearer, verb, path, body) in cases(team, execution) {
            let (_, response) = send(&app, verb.clone(), bearer, &path, body).await;
            codes.push((
                format!("{verb} {path}"),
                response["code"].as_str() == Some("path_not_granted"),
            ));
        }
        codes
    };
    for (team, execution) in ["team-a", "team-b"].iter().zip(&executions) {
        for (asked, is_refused) in codes(team, execution).await {
            assert!(!is_refused, "{asked} without grants");
        }
    }
    for (role, bearer) in [("author", &author), ("operator", &operator)] {
        let grant =
            json!({"role": role, "subject": actor(&app, bearer).await, "prefix": "team-a/"});
        let made = send(&app, Method::POST, &admin, "/api/grants", grant).await;
        assert_eq!(made.0, 200, "{made:?}");
    }
    for (team, execution, expected) in
        [("team-a", &executions[0], false), ("team-b", &executions[1], true)]
    {
        for (asked, is_refused) in codes(team, execution).await {
            assert_eq!(is_refused, expected, "{asked}");
        }
    }
    // Another caller with the role needs a grant as well, another tenant's callers need none, and
    // admins never do.
    let other = token(&app, "acme", Role::Author).await;
    let body = json!({"content": document("team-a/p")});
    let refused = send(&app, Method::POST, &other, "/api/catalog/register", body.clone()).await;
    assert_eq!((refused.0, &refused.1["code"]), (403, &json!("path_not_granted")));
    let elsewhere = token(&app, "other", Role::Author).await;
    assert_eq!(
        send(&app, Method::POST, &elsewhere, "/api/catalog/register", body.clone()).await.0,
        200
    );
    assert_eq!(send(&app, Method::POST, &admin, "/api/catalog/register", body).await.0, 200);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_playbook_uses_a_credential_only_with_a_grant_for_its_own_path() {
    let app = guarded().await;
    let admin = token(&app, "acme", Role::Admin).await;
    let body = json!({"name": "db", "type": "t", "data": {"password": "correct horse battery"}});
    assert_eq!(send(&app, Method::POST, &admin, "/api/credentials", body).await.0, 200);
    for path in ["team-a/p", "team-b/p"] {
        let body = json!({"content": document(path)});
        assert_eq!(send(&app, Method::POST, &admin, "/api/catalog/register", body).await.0, 200);
    }
    // Reads the credential as a step of the execution does, on any worker.
    let read = async |path: &str| {
        let started = send(&app, Method::POST, &admin, "/api/execute", json!({"path": path})).await;
        let id = started.1["execution_id"].as_str().expect("an id").to_owned();
        let asked = format!("/api/credentials/db?include_data=true&execution_id={id}");
        let (status, body) = get(&app, &asked).header("authorization", &admin).answer().await;
        (status, body["error"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(read("team-a/p").await, (200, String::new()), "no grant limits it");
    let grant = json!({"credential": "db", "prefix": "team-b"});
    let (_, made) = send(&app, Method::POST, &admin, "/api/grants", grant).await;
    // The same caller, an admin, starts both: the path decides.
    let (status, error) = read("team-a/p").await;
    assert_eq!(status, 403);
    assert!(error.contains("playbook 'team-a/p' has no grant for credential 'db'"), "{error}");
    assert_eq!(read("team-b/p").await.0, 200);
    let (_, list) = get(&app, "/api/grants").header("authorization", &admin).answer().await;
    assert_eq!(list["grants"][0]["prefix"], "team-b/", "{list}");
    let path = format!("/api/grants/{}", made["id"].as_str().expect("an id"));
    assert_eq!(send(&app, Method::DELETE, &admin, &path, json!({})).await.0, 200);
    assert_eq!(send(&app, Method::DELETE, &admin, &path, json!({})).await.0, 404);
    assert_eq!(read("team-a/p").await.0, 200, "the last grant is gone, and the limit with it");
    app.close().await;
}

#[tokio::test]
async fn a_limited_author_changes_only_credentials_of_its_own_paths() {
    let app = guarded().await;
    let admin = token(&app, "acme", Role::Admin).await;
    let author = token(&app, "acme", Role::Author).await;
    let credential =
        |name: &str| json!({"name": name, "type": "t", "data": {"password": "correct horse"}});
    let put = async |bearer: &str, name: &str| {
        send(&app, Method::POST, bearer, "/api/credentials", credential(name)).await.0
    };
    assert_eq!((put(&admin, "shared").await, put(&admin, "b").await), (200, 200));
    let grants = [
        json!({"role": "author", "subject": actor(&app, &author).await, "prefix": "team-a"}),
        json!({"credential": "b", "prefix": "team-b"}),
    ];
    for grant in grants {
        assert_eq!(send(&app, Method::POST, &admin, "/api/grants", grant).await.0, 200);
    }
    assert_eq!((put(&author, "shared").await, put(&author, "b").await), (403, 403));
    assert_eq!(send(&app, Method::DELETE, &author, "/api/credentials/b", json!({})).await.0, 403);
    assert_eq!(put(&author, "a").await, 200, "a new one is its own");
    let granted = app.control.secrets.grants.of_credential(&Tenant::new("acme"), "a").await;
    assert_eq!(granted.expect("an answer"), Some(vec!["team-a".to_owned()]));
    assert_eq!(put(&author, "a").await, 200, "and stays so");
    assert_eq!(send(&app, Method::DELETE, &author, "/api/credentials/a", json!({})).await.0, 200);
    app.close().await;
}

#[tokio::test]
async fn an_invalid_grant_is_refused() {
    let app = guarded().await;
    let admin = token(&app, "acme", Role::Admin).await;
    for grant in [
        json!({"prefix": "a"}),
        json!({"role": "author", "credential": "db", "prefix": "a"}),
        json!({"credential": "db", "subject": "token:1", "prefix": "a"}),
        json!({"role": "admin", "prefix": "a"}),
        json!({"role": "king", "prefix": "a"}),
        json!({"role": "author", "subject": " ", "prefix": "a"}),
        json!({"role": "author", "prefix": "x".repeat(501)}),
        json!({"role": "author"}),
    ] {
        let asked = post(&app, "/api/grants", grant.to_string()).header("authorization", &admin);
        assert_eq!(asked.answer().await.0, 422, "{grant}");
    }
    app.close().await;
}
