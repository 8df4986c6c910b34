//! The keychain over HTTP, on every store.

use insta::assert_snapshot;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{ask, get, post, shown};
use crate::stores::{app, on_every_store};

async fn put(app: &TestApp, path: &str, body: Value) -> (u16, Value) {
    post(app, &format!("/api/keychain/{path}"), body.to_string()).answer().await
}

async fn read(app: &TestApp, path: &str) -> (u16, Value) {
    get(app, &format!("/api/keychain/{path}")).answer().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keychain_entry_is_stored_used_listed_and_removed() {
    on_every_store(async |app| {
        let (status, stored) = put(app, "7/api", json!({"data": {"token": "t"}})).await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, stored), @r#"
        200
        {
          "status": "success",
          "cache_key": "api:7:global"
        }
        "#); }
        let (status, first) = read(app, "7/api").await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, first), @r#"
        200
        {
          "status": "found",
          "data": {
            "token": "t"
          },
          "auto_renew": false,
          "access_count": 1
        }
        "#); }
        assert_eq!(read(app, "7/api").await.1["access_count"], 2);
        let (status, listed) = read(app, "catalog/7").await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, listed), @r#"
        200
        {
          "catalog_id": "7",
          "entries": [
            {
              "keychain_name": "api",
              "scope_type": "global",
              "expired": false,
              "access_count": 2,
              "accessed_at": "[time]",
              "created_at": "[time]"
            }
          ]
        }
        "#); }
        assert_eq!(read(app, "catalog/8").await.1["entries"], json!([]));
        let gone = ask(app, Method::DELETE, "/api/keychain/7/api").answer().await;
        assert_eq!(gone, (200, json!({"status": "deleted", "cache_key": "api:7:global"})));
        let again = ask(app, Method::DELETE, "/api/keychain/7/api").answer().await;
        assert_eq!(again, (200, json!({"status": "not_found"})));
        assert_eq!(read(app, "7/api").await, (200, json!({"status": "not_found"})));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keychain_entries_are_separated_by_scope_and_execution() {
    on_every_store(async |app| {
        for (scope, execution, key) in [
            ("local", Some("9"), "api:7:9"),
            ("local", None, "api:7:local"),
            ("shared", Some("9"), "api:7:shared:9"),
            ("shared", None, "api:7:shared"),
            ("global", Some("9"), "api:7:global"),
            ("catalog", None, "api:7:global"),
        ] {
            let body = json!({"data": key, "scope_type": scope, "execution_id": execution});
            let (status, stored) = put(app, "7/api", body).await;
            assert_eq!((status, &stored["cache_key"]), (200, &key.into()));
            let execution = execution.map(|id| format!("&execution_id={id}")).unwrap_or_default();
            let (_, entry) = read(app, &format!("7/api?scope_type={scope}{execution}")).await;
            assert_eq!((&entry["status"], &entry["data"]), (&"found".into(), &key.into()));
        }
        assert_eq!(read(app, "catalog/7").await.1["entries"].as_array().map(Vec::len), Some(5));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_entry_is_reported_and_not_returned() {
    on_every_store(async |app| {
        let past = json!({"data": "x", "expires_at": "2020-01-01T00:00:00Z", "expires_in": 3600});
        assert_eq!(put(app, "7/old", past).await.0, 200, "the instant wins");
        let (status, body) = read(app, "7/old").await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, body), @r#"
        200
        {
          "status": "expired",
          "expires_at": "[time]",
          "auto_renew": false,
          "access_count": 0
        }
        "#); }
        assert_eq!(read(app, "catalog/7").await.1["entries"][0]["expired"], true);
        let soon = json!({"data": "x", "expires_in": 3600, "auto_renew": true});
        assert!(put(app, "7/new", soon).await.1["expires_at"].is_string());
        let (_, entry) = read(app, "7/new").await;
        assert_eq!((&entry["status"], &entry["auto_renew"]), (&"found".into(), &true.into()));
    })
    .await;
}

#[tokio::test]
async fn invalid_keychain_requests_are_rejected() {
    let app = app().await;
    for (path, body, status, code) in [
        ("7/a", json!({}), 422, "invalid_body"),
        ("7/a", json!({"data": 1, "expires_in": 0}), 422, "invalid_expiry"),
        ("7/a", json!({"data": 1, "expires_in": i64::MAX}), 422, "invalid_expiry"),
        ("7/a", json!({"data": 1, "cache_type": "cash"}), 422, "invalid_cache_type"),
        ("7/%20", json!({"data": 1}), 422, "invalid_credential"),
        ("x/a", json!({"data": 1}), 400, "invalid_path"),
    ] {
        let (actual, answer) = put(&app, path, body.clone()).await;
        assert_eq!((actual, &answer["code"]), (status, &code.into()), "{path} {body}");
    }
    assert_eq!(read(&app, "catalog/7").await.1["entries"], json!([]), "nothing was kept");
    app.close().await;
    let none = TestApp::start(0).await;
    let (status, body) = put(&none, "7/a", json!({"data": 1})).await;
    assert_eq!((status, &body["code"]), (503, &"no_encryption_key".into()));
    none.close().await;
}

#[tokio::test]
async fn keychain_values_are_stored_encrypted() {
    use noetl_store::{KeychainFilter, KeychainStore as _};
    let app = app().await;
    put(&app, "7/api", json!({"data": {"token": "plain to see"}})).await;
    let tenant = noetl_model::Tenant::default();
    let entries = app.store.keychain_entries(&tenant, &KeychainFilter::default()).await;
    let entries = entries.expect("a list");
    assert!(!entries[0].kept.sealed.as_str().contains("plain to see"));
    app.close().await;
}
