//! Objects, modules and cells, on every store.

use insta::assert_snapshot;
use noetl_secrets::Role;
use noetl_server::{Auth, Options};
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::Value;

use crate::api::{TOKEN, ask, get, http, shown};
use crate::roles::token;
use crate::stores::{app, on_every_store};

async fn send(app: &TestApp, verb: Method, path: &str, bytes: &[u8]) -> (u16, Value) {
    let request = http().request(verb, format!("{}{path}", app.base)).body(bytes.to_vec());
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// Status, `ETag`, `Content-Type` and body.
async fn read(app: &TestApp, path: &str) -> (u16, String, String, Vec<u8>) {
    let response = get(app, path).send().await;
    let header = |name: &str| {
        let value = response.headers().get(name);
        value.map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default()
    };
    let (etag, kind) = (header("etag"), header("content-type"));
    (response.status().as_u16(), etag, kind, response.bytes().await.expect("a body").to_vec())
}

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_stored_replaced_and_read_unchanged() {
    on_every_store(async |app| {
        let path = "/api/internal/objects/noetl/a%20b/c.bin";
        let bytes = [0, 255, 10, 13, 0];
        let typed = format!("{path}?media_type=application/x-test");
        let (status, stored) = send(app, Method::PUT, &typed, &bytes).await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, stored.clone()), @r#"
        200
        {
          "key": "noetl/a b/c.bin",
          "digest": "5d4d5bf580a5f1a190aaa9c298005d4477bb018ba4adb1b93b13095d94a3217d",
          "bytes": 5
        }
        "#); }
        let (status, etag, kind, body) = read(app, path).await;
        let digest = stored["digest"].as_str().expect("a digest");
        let expected = (200, format!("\"{digest}\""), "application/x-test".to_owned());
        assert_eq!((status, etag, kind), expected);
        assert_eq!(body, bytes);
        assert_eq!(send(app, Method::PUT, path, &[]).await.1["digest"], EMPTY);
        let (_, etag, kind, body) = read(app, path).await;
        assert_eq!(
            (etag.as_str(), kind.as_str()),
            (&*format!("\"{EMPTY}\""), "application/octet-stream")
        );
        assert!(body.is_empty());
        let missing = get(app, "/api/internal/objects/nope").answer().await;
        assert_eq!((missing.0, &missing.1["code"]), (404, &"object_not_found".into()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_read_by_version_and_digest() {
    on_every_store(async |app| {
        let path = "/api/internal/plugins/system/x";
        for (version, bytes) in [(1, &b"one"[..]), (3, b"three"), (2, b"two")] {
            let path = format!("{path}?version={version}&media_type=application/wasm");
            let (status, stored) = send(app, Method::POST, &path, bytes).await;
            assert_eq!((status, &stored["version"]), (200, &version.into()));
        }
        let (status, etag, kind, body) = read(app, path).await;
        assert_eq!(
            (status, kind.as_str(), body.as_slice()),
            (200, "application/wasm", &b"three"[..])
        );
        let digest = etag.trim_matches('"');
        for asked in [digest.to_owned(), digest.to_uppercase(), format!("sha256:{digest}")] {
            assert_eq!(read(app, &format!("{path}?version=3&digest={asked}")).await.0, 200);
        }
        let (status, body) = get(app, &format!("{path}?version=2&digest={digest}")).answer().await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, body), @r#"
        409
        {
          "error": "module 'system/x' has the digest 3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3, not 8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f",
          "status": 409,
          "code": "digest_mismatch",
          "detail": "module 'system/x' has the digest 3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3, not 8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f",
          "message": "module 'system/x' has the digest 3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3, not 8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f"
        }
        "#); }
        assert_eq!(read(app, &format!("{path}?version=2")).await.3, b"two");
        for missing in ["/api/internal/plugins/nope", "/api/internal/plugins/system/x?version=9"] {
            let (status, body) = get(app, missing).answer().await;
            assert_eq!((status, &body["code"]), (404, &"module_not_found".into()));
        }
    })
    .await;
}

#[tokio::test]
async fn invalid_objects_are_rejected() {
    let app = app().await;
    let long = "x".repeat(1025);
    for (verb, path, status, code) in [
        (Method::PUT, "/api/internal/objects/.noetl/a".to_owned(), 422, "invalid_key"),
        (Method::PUT, format!("/api/internal/objects/{long}"), 422, "invalid_key"),
        (Method::POST, format!("/api/internal/plugins/{long}"), 422, "invalid_key"),
        (Method::PUT, "/api/internal/objects/a%00b".to_owned(), 400, "invalid_path"),
        (
            Method::PUT,
            "/api/internal/objects/a?media_type=a%0Ab".to_owned(),
            422,
            "invalid_media_type",
        ),
        (Method::POST, "/api/internal/plugins/a?version=x".to_owned(), 400, "invalid_query"),
        (Method::DELETE, "/api/internal/objects/a".to_owned(), 405, "method_not_allowed"),
    ] {
        let (actual, body) = send(&app, verb, &path, b"x").await;
        assert_eq!((actual, &body["code"]), (status, &code.into()), "{path}");
    }
    let (status, body) =
        send(&app, Method::PUT, "/api/internal/objects/a", &vec![0; 3 << 20]).await;
    assert_eq!((status, &body["bytes"]), (200, &(3 << 20).into()), "more than other routes take");
    let large = vec![0; (64 << 20) + 1];
    let (status, body) = send(&app, Method::PUT, "/api/internal/objects/a", &large).await;
    assert_eq!((status, &body["code"]), (413, &"body_too_large".into()));
    app.close().await;
}

#[tokio::test]
async fn one_cell_is_listed() {
    let app = app().await;
    assert_snapshot!(ask(&app, Method::GET, "/api/internal/cells").shown().await, @r#"
    200
    {
      "shard_count": 256,
      "default_cell": "local-0",
      "cells": [
        {
          "cell": "local-0",
          "env": "local",
          "region": "local",
          "provider": null,
          "bucket": null,
          "endpoint": null
        }
      ]
    }
    "#);
    app.close().await;
}

/// An app that knows callers by tokens, with a worker of each tenant.
async fn with_workers() -> (TestApp, [String; 3]) {
    let options = Options { auth: Auth::Token, allow_any_host: true, ..Options::default() };
    let app = TestApp::builder().slots(0).options(options).internal_token(TOKEN).start().await;
    let mut workers = Vec::new();
    for tenant in ["default", "acme", "other"] {
        workers.push(token(&app, tenant, Role::Worker).await);
    }
    (app, workers.try_into().expect("three of them"))
}

#[tokio::test]
async fn objects_of_one_key_are_separated_by_tenant() {
    let (app, workers) = with_workers().await;
    for key in ["shared/a.json", "noetl/execution=1/results/a/0/0/1.json", "dead/letters"] {
        let path = format!("/api/internal/objects/{key}");
        let object =
            |verb: Method, bearer: &str| ask(&app, verb, &path).header("authorization", bearer);
        for (at, worker) in workers.iter().enumerate() {
            let (status, body) = object(Method::GET, worker).answer().await;
            assert_eq!((status, &body["code"]), (404, &"object_not_found".into()), "{key}");
            let put = object(Method::PUT, worker).body(format!("of {at}"));
            let (status, stored) = put.answer().await;
            assert_eq!((status, &stored["key"]), (200, &key.into()), "{stored}");
        }
        for (at, worker) in workers.iter().enumerate() {
            let response = object(Method::GET, worker).send().await;
            assert_eq!(response.text().await.expect("a body"), format!("of {at}"), "{key}");
        }
        let system = object(Method::GET, &format!("Bearer {TOKEN}")).send().await;
        assert_eq!(system.text().await.expect("a body"), "of 0", "the default tenant's");
    }
    app.close().await;
}

#[tokio::test]
async fn objects_of_a_tenant_are_readable_by_that_tenant_and_by_system_pools() {
    let (app, [default, acme, other]) = with_workers().await;
    let path = "/api/internal/objects/noetl/tenant=acme/a.json";
    let system = format!("Bearer {TOKEN}");
    let put = ask(&app, Method::PUT, path).header("authorization", &system).body("theirs");
    assert_eq!(put.answer().await.0, 200);
    for (bearer, status) in [(&acme, 200), (&system, 200), (&default, 403), (&other, 403)] {
        let response = get(&app, path).header("authorization", bearer).send().await;
        assert_eq!(response.status(), status);
    }
    app.close().await;
}

#[tokio::test]
async fn a_stored_page_is_neither_run_nor_cached_by_a_browser() {
    let app = app().await;
    let path = "/api/internal/objects/page.html?media_type=text/html";
    let page = b"<script>fetch('/api/credentials')</script>";
    assert_eq!(send(&app, Method::PUT, path, page).await.0, 200);
    let module = "/api/internal/plugins/page?media_type=text/html";
    assert_eq!(send(&app, Method::POST, module, page).await.0, 200);
    for path in [path, module] {
        let response = get(&app, path).send().await;
        let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(header("content-type"), "text/html", "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
    }
    app.close().await;
}
