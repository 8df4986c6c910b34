use insta::assert_snapshot;
use noetl_test_app::TestApp;

use crate::api::{GREET, post, register, shown};

#[tokio::test]
async fn a_playbook_is_registered_as_the_next_version_of_its_path() {
    let app = TestApp::start(0).await;
    let (status, body) = register(&app, GREET).await;
    assert_snapshot!(shown(status, body), @r#"
    200
    {
      "status": "success",
      "message": "Resource 'tests/greet' version '1' registered.",
      "path": "tests/greet",
      "version": 1,
      "catalog_id": "[id]",
      "kind": "playbook",
      "warnings": []
    }
    "#);
    let (_, again) = register(&app, GREET).await;
    assert_eq!(again["version"], 2);
    app.close().await;
}

#[tokio::test]
async fn a_playbook_in_base64_is_the_same_playbook() {
    let app = TestApp::start(0).await;
    // A playbook named `encoded` with one noop step, as published clients send it.
    let encoded = "YXBpVmVyc2lvbjogbm9ldGwuaW8vdjIKa2luZDogUGxheWJvb2sKbWV0YWRhdGE6CiAgbmFtZTog\
                   ZW5jb2RlZAp3b3JrZmxvdzoKICAtIHN0ZXA6IHN0YXJ0CiAgICB0b29sOgogICAgICBraW5kOiBub29wCg==";
    let (status, body) = register(&app, encoded).await;
    assert_eq!((status, &body["path"]), (200, &"encoded".into()), "{body}");
    app.close().await;
}

#[tokio::test]
async fn a_playbook_with_errors_is_refused_with_every_error() {
    let app = TestApp::start(0).await;
    let wrong =
        GREET.replace("kind: noop", "kind: noob").replace("    - step: end\n", "    - step: edn\n");
    let (status, body) = register(&app, &wrong).await;
    assert_eq!(status, 422, "{body}");
    assert_eq!(body["code"], "invalid_document");
    let diagnostics = body["diagnostics"].as_array().expect("findings");
    assert!(diagnostics.len() >= 2, "{body}");
    for field in ["severity", "code", "line", "column", "path", "message", "help"] {
        assert!(diagnostics[0].get(field).is_some(), "{field}: {body}");
    }
    let forced = serde_json::json!({ "content": wrong }).to_string();
    let (status, body) = post(&app, "/api/catalog/register?force=true", forced).answer().await;
    assert_eq!(status, 200, "{body}");
    assert!(!body["warnings"].as_array().expect("warnings").is_empty());
    let (status, body) = post(&app, "/api/execute", r#"{"path":"tests/greet"}"#).answer().await;
    assert_eq!((status, &body["code"]), (422, &"invalid_document".into()));
    app.close().await;
}

#[tokio::test]
async fn documents_that_are_not_yaml_are_rejected() {
    let app = TestApp::start(0).await;
    let (status, body) = register(&app, "a: [1").await;
    assert_eq!(status, 422, "{body}");
    let (status, _) = register(&app, "").await;
    assert_eq!(status, 422);
    app.close().await;
}

#[tokio::test]
async fn documents_are_listed_by_kind_ignoring_case() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    for body in ["", "{}", r#"{"resource_type":"Playbook"}"#, r#"{"resource_type":"playbook"}"#] {
        let (status, body) = post(&app, "/api/catalog/list", body).answer().await;
        assert_eq!((status, body["entries"].as_array().map(Vec::len)), (200, Some(1)));
        assert!(body["entries"][0]["catalog_id"].is_string());
    }
    let none = post(&app, "/api/catalog/list", r#"{"resource_type":"mcp"}"#);
    assert_snapshot!(none.shown().await, @r#"
    200
    {
      "entries": []
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_document_is_read_by_id_or_by_path_and_version() {
    let app = TestApp::start(0).await;
    let (_, first) = register(&app, GREET).await;
    register(&app, &GREET.replace("world", "moon")).await;
    let resource = async |body: String| post(&app, "/api/catalog/resource", body).answer().await;
    let (status, newest) = resource(r#"{"path":"tests/greet"}"#.to_owned()).await;
    assert_eq!((status, &newest["version"]), (200, &2.into()));
    assert_eq!(newest["payload"]["who"], "moon");
    for version in ["1", "\"1\""] {
        let (_, entry) = resource(format!(r#"{{"path":"tests/greet","version":{version}}}"#)).await;
        assert_eq!(entry["version"], 1, "{version}");
    }
    let (_, entry) = resource(format!(r#"{{"catalog_id":{}}}"#, first["catalog_id"])).await;
    assert_eq!(entry["version"], 1);
    app.close().await;
}

#[tokio::test]
async fn a_missing_document_is_reported() {
    let app = TestApp::start(0).await;
    let resource = |body: &'static str| post(&app, "/api/catalog/resource", body).shown();
    assert_snapshot!(resource(r#"{"path":"nope"}"#).await, @r#"
    404
    {
      "error": "Catalog entry not found: nope",
      "status": 404,
      "code": "document_not_found",
      "detail": "Catalog entry not found: nope",
      "message": "Catalog entry not found: nope"
    }
    "#);
    assert_snapshot!(resource(r#"{"catalog_id":"1"}"#).await, @r#"
    404
    {
      "error": "Catalog entry not found: 1",
      "status": 404,
      "code": "document_not_found",
      "detail": "Catalog entry not found: 1",
      "message": "Catalog entry not found: 1"
    }
    "#);
    assert_snapshot!(resource("{}").await, @r#"
    422
    {
      "error": "name the document by path or catalog_id",
      "status": 422,
      "code": "document_unnamed",
      "detail": "name the document by path or catalog_id",
      "message": "name the document by path or catalog_id"
    }
    "#);
    assert_snapshot!(resource(r#"{"catalog_id":"x"}"#).await, @r#"
    422
    {
      "error": "Failed to deserialize the JSON body into the target type: catalog_id: invalid value: string \"x\", expected a 64-bit id as a number or as decimal text at line 1 column 17",
      "status": 422,
      "code": "invalid_body",
      "detail": "Failed to deserialize the JSON body into the target type: catalog_id: invalid value: string \"x\", expected a 64-bit id as a number or as decimal text at line 1 column 17",
      "message": "Failed to deserialize the JSON body into the target type: catalog_id: invalid value: string \"x\", expected a 64-bit id as a number or as decimal text at line 1 column 17"
    }
    "#);
    app.close().await;
}
