//! Credentials over HTTP, on every store.

use insta::assert_snapshot;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{ask, get, post, shown};
use crate::stores::{app, on_every_store};

async fn put(app: &TestApp, body: Value) -> (u16, Value) {
    post(app, "/api/credentials", body.to_string()).answer().await
}

async fn delete(app: &TestApp, identifier: &str) -> (u16, Value) {
    ask(app, Method::DELETE, &format!("/api/credentials/{identifier}")).answer().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_stored_replaced_read_and_removed() {
    on_every_store(async |app| {
        let (status, first) = put(
            app,
            json!({
                "name": "db", "type": "postgres", "data": {"password": "password-1"},
                "meta": {"owner": "ops"}, "tags": ["prod", "eu"], "description": "the orders",
            }),
        )
        .await;
        insta::allow_duplicates! {
            assert_snapshot!(shown(status, first.clone()), @r#"
            200
            {
              "id": "[id]",
              "name": "db",
              "type": "postgres",
              "meta": {
                "owner": "ops"
              },
              "tags": [
                "prod",
                "eu"
              ],
              "description": "the orders",
              "created_at": "[time]",
              "updated_at": "[time]"
            }
            "#);
        }
        let id = first["id"].as_str().expect("an id as text");
        let (_, by_name) = get(app, "/api/credentials/db?include_data=true").answer().await;
        assert_eq!(by_name["data"], json!({"password": "password-1"}));
        let (_, by_id) = get(app, &format!("/api/credentials/{id}")).answer().await;
        assert_eq!(by_id, first, "what is secret is shown to nobody who does not ask");
        let (status, second) =
            put(app, json!({"name": "db", "type": "bearer", "data": "a bare text"})).await;
        insta::allow_duplicates! {
            assert_snapshot!(shown(status, second.clone()), @r#"
            200
            {
              "id": "[id]",
              "name": "db",
              "type": "bearer",
              "created_at": "[time]",
              "updated_at": "[time]"
            }
            "#);
        }
        assert_eq!(second["id"], first["id"]);
        let (_, read) = get(app, "/api/credentials/db?include_data=true").answer().await;
        assert_eq!(read["data"], "a bare text");
        let deleted = delete(app, "db").await;
        insta::allow_duplicates! {
            assert_snapshot!(shown(deleted.0, deleted.1), @r#"
            200
            {
              "message": "Credential deleted successfully",
              "id": "[id]"
            }
            "#);
        }
        let gone = get(app, &format!("/api/credentials/{id}")).answer().await;
        assert_eq!((gone.0, &gone.1["code"]), (404, &"credential_not_found".into()));
        assert_eq!(delete(app, "db").await.0, 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_too_short_to_be_redacted_is_stored_with_a_warning() {
    let app = app().await;
    let data = json!({"user": "u", "password": "short", "token": "long enough"});
    let (status, stored) = put(&app, json!({"name": "a", "type": "basic", "data": data})).await;
    assert_eq!(status, 200);
    let expected = "'password' is shorter than 8 characters, so it is not recognised and replaced \
                    when it turns up in results or messages";
    assert_eq!(stored["warnings"], json!([expected]));
    let (_, read) = get(&app, "/api/credentials/a?include_data=true").answer().await;
    assert_eq!((&read["data"], read.get("warnings")), (&data, None));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_listed_by_type_and_text() {
    on_every_store(async |app| {
        for (name, kind, description) in
            [("b", "postgres", "orders"), ("a", "bearer", "hooks"), ("orders_hook", "bearer", "")]
        {
            let body = json!({"name": name, "type": kind, "data": 1, "description": description});
            assert_eq!(put(app, body).await.0, 200);
        }
        for (query, names, filter) in [
            ("", vec!["a", "b", "orders_hook"], Value::Null),
            ("?type=bearer", vec!["a", "orders_hook"], json!({"type": "bearer"})),
            ("?q=ORDERS", vec!["b", "orders_hook"], json!({"q": "ORDERS"})),
            (
                "?type=bearer&q=orders",
                vec!["orders_hook"],
                json!({"type": "bearer", "q": "orders"}),
            ),
            ("?type=nope", vec![], json!({"type": "nope"})),
        ] {
            let (status, body) = get(app, &format!("/api/credentials{query}")).answer().await;
            assert_eq!(status, 200, "{query}");
            let items = body["items"].as_array().expect("a list");
            let listed: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
            assert_eq!((listed, &body["filter"]), (names, &filter), "{query}");
            assert!(items.iter().all(|item| item.get("data").is_none()), "{query}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_looked_up_as_an_id_before_a_name() {
    on_every_store(async |app| {
        let (_, first) = put(app, json!({"name": "a", "type": "t", "data": 1})).await;
        let id = first["id"].as_str().expect("an id");
        put(app, json!({"name": id, "type": "t", "data": 2})).await;
        put(app, json!({"name": "12", "type": "t", "data": 3})).await;
        let (_, by_id) =
            get(app, &format!("/api/credentials/{id}?include_data=true")).answer().await;
        assert_eq!((&by_id["name"], &by_id["data"]), (&"a".into(), &1.into()));
        let (_, by_name) = get(app, "/api/credentials/12?include_data=true").answer().await;
        assert_eq!(by_name["data"], 3);
    })
    .await;
}

#[tokio::test]
async fn invalid_credentials_are_rejected() {
    let app = app().await;
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("{}", 422),
        (r#"{"name":"a","type":"t"}"#, 422),
        (r#"{"name":"a","data":1}"#, 422),
        (r#"{"name":7,"type":"t","data":1}"#, 422),
        (r#"{"name":"","type":"t","data":1}"#, 422),
        (r#"{"name":"a","type":" ","data":1}"#, 422),
        (r#"{"name":"a","type":"t","data":1,"tags":"x"}"#, 422),
        (r#"{"name":"a\u0000","type":"t","data":1}"#, 422),
    ] {
        let (actual, answer) = post(&app, "/api/credentials", body).answer().await;
        assert_eq!(actual, status, "{body}: {answer}");
        assert!(answer["error"].is_string(), "{body}: {answer}");
    }
    let untyped = ask(&app, Method::POST, "/api/credentials").body("{}");
    assert_eq!(untyped.answer().await.0, 415);
    for path in ["/api/credentials/a?include_data=maybe", "/api/credentials/%00"] {
        assert_eq!(get(&app, path).answer().await.0, 400, "{path}");
    }
    assert_snapshot!(get(&app, "/api/credentials/nope").shown().await, @r#"
    404
    {
      "error": "Credential 'nope' not found",
      "status": 404,
      "code": "credential_not_found",
      "detail": "Credential 'nope' not found",
      "message": "Credential 'nope' not found"
    }
    "#);
    let (status, stored) = put(&app, json!({"name": "a/b", "type": "t", "data": null})).await;
    assert_eq!(status, 200, "{stored}");
    let (_, read) = get(&app, "/api/credentials/a%2Fb?include_data=true").answer().await;
    assert_eq!(read.get("data"), Some(&Value::Null), "{read}");
    app.close().await;
}

#[tokio::test]
async fn credentials_without_an_encryption_key_are_listed_but_not_stored() {
    let app = TestApp::start(0).await;
    let (status, body) = put(&app, json!({"name": "a", "type": "t", "data": 1})).await;
    assert_eq!((status, &body["code"]), (503, &"no_encryption_key".into()), "{body}");
    assert!(body["error"].as_str().is_some_and(|text| text.contains("NOETL_ENCRYPTION_KEY")));
    assert_eq!(get(&app, "/api/credentials").answer().await.0, 200);
    app.close().await;
}

#[tokio::test]
async fn credentials_encrypted_under_another_key_are_not_shown() {
    let first = app().await;
    put(&first, json!({"name": "a", "type": "t", "data": "s3cret"})).await;
    let store = first.store.clone();
    first.close().await;
    let other = noetl_secrets::EncryptionKey::generate();
    let app = TestApp::builder().slots(0).encryption_key(other).store(store).start().await;
    assert_eq!(get(&app, "/api/credentials/a").answer().await.0, 200);
    let (status, body) = get(&app, "/api/credentials/a?include_data=true").answer().await;
    assert_eq!((status, &body["code"]), (500, &"credential_unreadable".into()), "{body}");
    assert!(!body.to_string().contains("s3cret"), "{body}");
    app.close().await;
}

#[tokio::test]
async fn responses_with_secrets_are_not_cached() {
    let app = app().await;
    let credential = r#"{"name":"pg","type":"postgres","data":{"password":"s3cret"}}"#;
    assert_eq!(post(&app, "/api/credentials", credential).answer().await.0, 200);
    let token = r#"{"name":"ci","role":"viewer"}"#;
    for (asked, secret) in [
        (get(&app, "/api/credentials/pg?include_data=true"), "s3cret"),
        (post(&app, "/api/tokens", token), "noetl_"),
    ] {
        let response = asked.send().await;
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let text = response.text().await.expect("a body");
        assert!(text.contains(secret), "{text}");
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_lists_credentials_by_their_kind_without_secrets() {
    on_every_store(async |app| {
        put(app, json!({"name": "db", "type": "postgres", "data": {"password": "password-1"}}))
            .await;
        for kind in ["Credential", "credential"] {
            let body = json!({ "resource_type": kind }).to_string();
            let (status, list) = post(app, "/api/catalog/list", body).answer().await;
            let entry = &list["entries"][0];
            assert_eq!((status, &entry["path"]), (200, &json!("db")), "{list}");
            assert_eq!(entry["meta"]["type"], "postgres", "{list}");
            assert!(!list.to_string().contains("password-1"), "{list}");
        }
        let (_, all) = post(app, "/api/catalog/list", "{}").answer().await;
        assert_eq!(all["entries"], json!([]), "credentials are no documents");
    })
    .await;
}
