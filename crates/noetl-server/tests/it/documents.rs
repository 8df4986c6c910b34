//! The catalog besides registering and reading: batches, checks, versions, removal, forms, suites.

use insta::assert_snapshot;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{GREET, ask, get, post, register, shown};
use crate::stores::on_every_store;

async fn put(app: &TestApp, path: &str, body: Value) -> (u16, Value) {
    let request = ask(app, Method::PUT, path).header("content-type", "application/json");
    request.body(body.to_string()).answer().await
}

#[tokio::test]
async fn documents_of_a_batch_are_registered_independently() {
    let app = TestApp::start(0).await;
    let items = json!({"items": [
        {"content": GREET},
        {"content": "a: [1"},
        {"content": GREET.replace("kind: noop", "kind: noob")},
        {"content": GREET, "resource_type": "Playbook"},
    ]});
    let (status, body) =
        post(&app, "/api/catalog/register/batch", items.to_string()).answer().await;
    let count = |body: &Value| (body["registered"].clone(), body["failed"].clone());
    assert_eq!((status, count(&body)), (200, (2.into(), 2.into())), "{body}");
    let versions: Vec<&Value> =
        body["results"].as_array().expect("results").iter().map(|one| &one["version"]).collect();
    assert_eq!(versions, [&json!(1), &json!(null), &json!(null), &json!(2)]);
    assert!(!body["results"][2]["diagnostics"].as_array().expect("findings").is_empty());
    assert_snapshot!(shown(status, body["results"][1].clone()), @r#"
    200
    {
      "index": 1,
      "status": "failed",
      "error": "2:1: this is not valid YAML: while parsing a flow sequence, expected ',' or ']'",
      "diagnostics": [
        {
          "severity": "error",
          "code": "E000",
          "line": 2,
          "column": 1,
          "path": "",
          "message": "this is not valid YAML: while parsing a flow sequence, expected ',' or ']'",
          "help": "check indentation, quotes and brackets on this line and the one before it"
        }
      ]
    }
    "#);
    for empty in [r#"{"items":[]}"#, r#"{"items":[],"more":1}"#] {
        let refused = post(&app, "/api/catalog/register/batch", empty).answer().await;
        assert_eq!((refused.0, &refused.1["code"]), (400, &"empty_request".into()));
    }
    assert_eq!(post(&app, "/api/catalog/register/batch", "{}").answer().await.0, 422);
    app.close().await;
}

#[tokio::test]
async fn validation_does_not_store_the_document() {
    let app = TestApp::start(0).await;
    for path in ["/api/catalog/validate", "/api/catalog/playbooks/validate"] {
        let check = async |content: &str| {
            post(&app, path, json!({ "content": content }).to_string()).answer().await
        };
        let (status, fine) = check(GREET).await;
        assert_eq!((status, &fine["valid"], &fine["errors"]), (200, &true.into(), &json!([])));
        let (_, wrong) = check(&GREET.replace("kind: noop", "kind: noob")).await;
        assert_eq!(wrong["valid"], false);
        let (line, column) = (&wrong["diagnostics"][0]["line"], &wrong["diagnostics"][0]["column"]);
        assert_eq!((line, column), (&20.into(), &13.into()), "{wrong}");
        let (_, no_yaml) = check("a: [1").await;
        assert_eq!((&no_yaml["valid"], &no_yaml["path"]), (&false.into(), &Value::Null));
        let (_, unknown) = check("kind: Song\nmetadata: {name: a}").await;
        assert_eq!((&unknown["valid"], &unknown["kind"]), (&false.into(), &"song".into()));
        assert_eq!(post(&app, path, "{}").answer().await.0, 422);
    }
    let (_, listed) = post(&app, "/api/catalog/list", "{}").answer().await;
    assert_eq!(listed["entries"], json!([]));
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_documents_are_neither_listed_nor_started_and_can_be_restored() {
    on_every_store(async |app| {
        let (_, first) = register(app, GREET).await;
        register(app, GREET).await;
        let running = post(app, "/api/execute", r#"{"path":"tests/greet"}"#).answer().await.1;
        let delete =
            async |body: Value| post(app, "/api/catalog/delete", body.to_string()).answer().await;
        let deleted = delete(json!({"path": "tests/greet", "version": 2})).await;
        insta::allow_duplicates! { assert_snapshot!(shown(deleted.0, deleted.1), @r#"
        200
        {
          "status": "deleted",
          "path": "tests/greet",
          "versions": [
            2
          ]
        }
        "#); }
        let newest = async || {
            let body = r#"{"path":"tests/greet"}"#;
            post(app, "/api/catalog/resource", body).answer().await
        };
        assert_eq!(newest().await.1["version"], 1);
        let deleted = delete(json!({"catalog_id": first["catalog_id"]})).await;
        assert_eq!(deleted.1["versions"], json!([1]));
        assert_eq!(newest().await.0, 404);
        let again = delete(json!({"path": "tests/greet"})).await;
        assert_eq!((again.0, &again.1["versions"]), (200, &json!([])), "a repeat changes nothing");
        let started = post(app, "/api/execute", r#"{"path":"tests/greet"}"#).answer().await;
        assert_eq!(started.0, 404, "{}", started.1);
        let listed = post(app, "/api/catalog/list", "{}").answer().await.1;
        assert_eq!(listed["entries"], json!([]));
        assert_eq!(get(app, "/api/catalog/list/Playbook").answer().await.1, json!([]));
        let id = running["execution_id"].as_str().expect("an id");
        let goes_on = get(app, &format!("/api/executions/{id}/status")).answer().await;
        assert_eq!((goes_on.0, &goes_on.1["status"]), (200, &"RUNNING".into()));
        let by_id = json!({"catalog_id": first["catalog_id"]}).to_string();
        let by_id = post(app, "/api/catalog/resource", by_id).answer().await;
        assert_eq!((by_id.0, by_id.1["deleted_at"].is_string()), (200, true));
        let versions = get(app, "/api/catalog/versions?path=tests/greet").answer().await;
        insta::allow_duplicates! { assert_snapshot!(shown(versions.0, versions.1), @r#"
        200
        {
          "path": "tests/greet",
          "versions": [
            {
              "catalog_id": "[id]",
              "version": 2,
              "kind": "playbook",
              "created_at": "[time]",
              "deleted_at": "[time]"
            },
            {
              "catalog_id": "[id]",
              "version": 1,
              "kind": "playbook",
              "created_at": "[time]",
              "deleted_at": "[time]"
            }
          ]
        }
        "#); }
        let restore = json!({"path": "tests/greet"}).to_string();
        let restored = post(app, "/api/catalog/restore", restore).answer().await;
        assert_eq!((restored.0, &restored.1["versions"]), (200, &json!([2, 1])));
        assert_eq!(newest().await.1["version"], 2);
        let listed = get(app, "/api/catalog/list/playbook").answer().await.1;
        assert_eq!(listed, json!(["tests/greet"]));
    })
    .await;
}

#[tokio::test]
async fn a_missing_document_cannot_be_deleted() {
    let app = TestApp::start(0).await;
    register(&app, GREET).await;
    for (body, status, code) in [
        (json!({"path": "nope"}), 404, "document_not_found"),
        (json!({"path": "tests/greet", "version": 9}), 404, "document_not_found"),
        (json!({"path": "nope", "version": "latest"}), 404, "document_not_found"),
        (json!({"catalog_id": "1"}), 404, "document_not_found"),
        (json!({}), 422, "document_unnamed"),
    ] {
        for route in ["delete", "restore"] {
            let asked = post(&app, &format!("/api/catalog/{route}"), body.to_string());
            let (actual, answer) = asked.answer().await;
            assert_eq!((actual, &answer["code"]), (status, &code.into()), "{route} {body}");
        }
    }
    let unknown = get(&app, "/api/catalog/versions?path=nope").answer().await;
    assert_eq!((unknown.0, &unknown.1["code"]), (404, &"document_not_found".into()));
    assert_eq!(get(&app, "/api/catalog/versions").answer().await.0, 400);
    app.close().await;
}

#[tokio::test]
async fn the_text_of_a_playbook_is_read_and_replaced() {
    let app = TestApp::start(0).await;
    let (_, first) = register(&app, GREET).await;
    let id = first["catalog_id"].as_str().expect("an id");
    for name in [id, "tests/greet"] {
        let path = format!("/api/catalog/playbook/content?playbook_id={name}");
        let (status, body) = get(&app, &path).answer().await;
        assert_eq!((status, &body["content"]), (200, &GREET.into()), "{name}");
    }
    let path = "/api/catalog/playbook/content?playbook_id=tests/greet";
    let changed = GREET.replace("world", "moon");
    let (status, body) = put(&app, path, json!({ "content": changed })).await;
    assert_eq!((status, &body["version"]), (200, &2.into()), "{body}");
    let elsewhere = put(&app, path, json!({"content": GREET.replace("tests/greet", "b")})).await;
    assert_snapshot!(shown(elsewhere.0, elsewhere.1), @r#"
    422
    {
      "error": "the document's path is 'b', and 'tests/greet' is to be replaced",
      "status": 422,
      "code": "another_path",
      "detail": "the document's path is 'b', and 'tests/greet' is to be replaced",
      "message": "the document's path is 'b', and 'tests/greet' is to be replaced"
    }
    "#);
    let wrong = put(&app, path, json!({"content": GREET.replace("noop", "noob")})).await;
    assert_eq!((wrong.0, &wrong.1["code"]), (422, &"invalid_document".into()));
    let nowhere = "/api/catalog/playbook/content?playbook_id=nope";
    assert_eq!(get(&app, nowhere).answer().await.0, 404);
    assert_eq!(put(&app, nowhere, json!({ "content": GREET })).await.0, 404);
    assert_eq!(get(&app, path).answer().await.1["version"], 2, "nothing was kept");
    app.close().await;
}

#[tokio::test]
async fn the_ui_schema_describes_every_field_of_the_workload() {
    let app = TestApp::start(0).await;
    let workload = "  who: world # ui:description=Whom to greet\n  size: s # ui:enum=[s, m]\n  \
                    deep:\n    n: 1\n";
    register(&app, &GREET.replace("  who: world\n", workload)).await;
    assert_snapshot!(get(&app, "/api/catalog/tests/greet/ui_schema?version=latest").shown().await, @r#"
    200
    {
      "path": "tests/greet",
      "version": 1,
      "kind": "playbook",
      "title": "greet",
      "description_markdown": null,
      "exposed_in_ui": false,
      "fields": [
        {
          "name": "who",
          "kind": "string",
          "default": "world",
          "description": "Whom to greet",
          "secret": false,
          "credential_glob": null,
          "options": null,
          "children": null
        },
        {
          "name": "size",
          "kind": "enum",
          "default": "s",
          "description": null,
          "secret": false,
          "credential_glob": null,
          "options": [
            "s",
            "m"
          ],
          "children": null
        },
        {
          "name": "deep",
          "kind": "object",
          "default": {
            "n": 1
          },
          "description": null,
          "secret": false,
          "credential_glob": null,
          "options": null,
          "children": [
            {
              "name": "n",
              "kind": "integer",
              "default": 1,
              "description": null,
              "secret": false,
              "credential_glob": null,
              "options": null,
              "children": null
            }
          ]
        }
      ],
      "generated_at": "[time]"
    }
    "#);
    assert_eq!(get(&app, "/api/catalog/tests/greet/ui_schema?version=1").answer().await.0, 200);
    for (path, status, code) in [
        ("/api/catalog/tests/greet/ui_schema?version=2", 404, "document_not_found"),
        ("/api/catalog/nope/ui_schema", 404, "document_not_found"),
        ("/api/catalog/tests/greet", 404, "unknown_path"),
        ("/api/catalog/tests/greet/ui_schema?version=x", 400, "invalid_query"),
    ] {
        let (actual, body) = get(&app, path).answer().await;
        assert_eq!((actual, &body["code"]), (status, &code.into()), "{path}");
    }
    app.close().await;
}

#[tokio::test]
async fn agents_are_listed_by_capability() {
    let app = TestApp::start(0).await;
    let agent = async |name: &str, metadata: &str| {
        let document = GREET.replace("tests/greet", name).replace("name: greet", metadata);
        assert_eq!(register(&app, &document).await.0, 200, "{document}");
    };
    agent("a", "name: greet\n  agent: true\n  capabilities: [mail, search]").await;
    agent("b", "name: greet\n  agent: {model: x}\n  capabilities: [mail]").await;
    agent("c", "name: greet").await;
    agent("d", "name: greet\n  agent: false").await;
    let listed = async |body: &str| {
        let (status, body) = post(&app, "/api/catalog/agents/list", body).answer().await;
        assert_eq!(status, 200, "{body}");
        let entries = body["entries"].as_array().expect("entries").clone();
        entries.iter().map(|entry| entry["path"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed("").await, ["b", "a"]);
    assert_eq!(listed(r#"{"capabilities":["mail","search"]}"#).await, ["a"]);
    assert_eq!(listed(r#"{"capabilities":["fly"]}"#).await, [] as [&str; 0]);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_suite_is_stored_replaced_and_removed() {
    on_every_store(async |app| {
        let path = "/api/playbook-tests/suites/team/greet";
        let missing = get(app, path).answer().await;
        assert_eq!((missing.0, &missing.1["code"]), (404, &"suite_not_found".into()));
        let suite = json!({
            "playbook_path": "tests/greet", "tests": [{"name": "one"}], "metadata": {"by": "ops"},
        });
        let (status, stored) = put(app, path, suite).await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, stored.clone()), @r#"
        200
        {
          "suite_id": "team/greet",
          "file_path": "playbook-tests/team/greet.json",
          "playbook_path": "tests/greet",
          "tests": [
            {
              "name": "one"
            }
          ],
          "metadata": {
            "by": "ops"
          },
          "updated_at": "[time]"
        }
        "#); }
        assert_eq!(get(app, path).answer().await, (200, stored));
        let (_, again) = put(app, path, json!({"playbook_path": "tests/greet"})).await;
        assert_eq!((&again["tests"], &again["metadata"]), (&json!([]), &Value::Null));
        let hidden = get(app, "/api/internal/objects/.noetl/suites/7:default/team/greet.json");
        assert_eq!(hidden.answer().await.0, 422, "what is ours is no object of theirs");
        let gone = ask(app, Method::DELETE, path).answer().await;
        assert_eq!((gone.0, &gone.1["status"]), (200, &"deleted".into()));
        assert_eq!(ask(app, Method::DELETE, path).answer().await.0, 404);
        assert_eq!(put(app, path, json!({"tests": []})).await.0, 422);
    })
    .await;
}
