//! Results that are handed in apart, and references, on every store.

use insta::assert_snapshot;
use noetl_store::Blobs as _;
use noetl_test_app::TestApp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::api::{GREET, ask, finished, get, post, register, shown, started};
use crate::stores::{app, on_every_store};

async fn put(app: &TestApp, id: i64, body: String) -> (u16, Value) {
    let request = ask(app, Method::PUT, &format!("/api/result/{id}"));
    request.header("content-type", "application/json").body(body).answer().await
}

async fn resolve(app: &TestApp, reference: &str) -> (u16, Value) {
    get(app, &format!("/api/result/resolve?ref={reference}")).answer().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_stored_and_resolved_unchanged() {
    on_every_store(async |app| {
        let id = started(app).await;
        let data = json!({"b": [1, 2.5, "größer"], "a": {"z": null, "y": true}});
        let body = json!({"name": "load/rows", "data": data, "source_step": "load", "ttl": 5});
        let (status, stored) = put(app, id, body.to_string()).await;
        insta::allow_duplicates! { assert_snapshot!(shown(status, stored.clone()), @r#"
        200
        {
          "ref": "noetl://execution/[id]/result/load/rows/[id]",
          "store": "db",
          "scope": "execution",
          "bytes": 48,
          "sha256": "91c6b3fbd30d40220418b33866519b1428d766f360c059b10157ca1a6ac644f0",
          "expires_at": null
        }
        "#); }
        let reference = stored["ref"].as_str().expect("a reference");
        assert_eq!(resolve(app, reference).await, (200, data));
        for other in [
            reference.replace("load/rows", "load"),
            reference.replace(&id.to_string(), "1"),
            format!("{reference}1"),
        ] {
            let (status, body) = resolve(app, &other).await;
            assert_eq!((status, &body["error"]), (404, &"result not found".into()), "{other}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_large_result_is_stored_and_an_oversized_one_is_refused() {
    let app = app().await;
    let id = started(&app).await;
    let body = |bytes: usize| format!(r#"{{"name":"n","data":"{}"}}"#, "x".repeat(bytes));
    let (status, stored) = put(&app, id, body(5 << 20)).await;
    assert_eq!((status, &stored["bytes"]), (200, &((5 << 20) + 2).into()));
    let (status, refused) = put(&app, id, body(64 << 20)).await;
    assert_eq!((status, &refused["code"]), (413, &"body_too_large".into()));
    app.close().await;
}

#[tokio::test]
async fn invalid_results_and_references_are_rejected() {
    let app = app().await;
    let id = started(&app).await;
    for (id, body, status, code) in [
        (id, json!({"name": "n"}), 422, "invalid_body"),
        (id, json!({"name": "", "data": 1}), 422, "invalid_name"),
        (1, json!({"name": "n", "data": 1}), 404, "execution_not_found"),
    ] {
        let (actual, answer) = put(&app, id, body.to_string()).await;
        assert_eq!((actual, &answer["code"]), (status, &code.into()), "{body}");
    }
    let (status, body) = resolve(&app, "s3://bucket/key").await;
    assert_snapshot!(shown(status, body), @r#"
    400
    {
      "error": "a reference is 'noetl://execution/<id>/result/<name>/<id>' or 'noetl://<tenant>/<project>/results/<id>/<step>/<frame>/<row>/<attempt>', not 's3://bucket/key'",
      "status": 400,
      "code": "malformed_reference",
      "detail": "a reference is 'noetl://execution/<id>/result/<name>/<id>' or 'noetl://<tenant>/<project>/results/<id>/<step>/<frame>/<row>/<attempt>', not 's3://bucket/key'",
      "message": "a reference is 'noetl://execution/<id>/result/<name>/<id>' or 'noetl://<tenant>/<project>/results/<id>/<step>/<frame>/<row>/<attempt>', not 's3://bucket/key'"
    }
    "#);
    assert_eq!(get(&app, "/api/result/resolve").answer().await.0, 400);
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reference_of_a_published_worker_resolves_by_its_key_suffix() {
    on_every_store(async |app| {
        let keep = async |key: &str, body: &str| {
            let request = ask(app, Method::PUT, &format!("/api/internal/objects/{key}"));
            let request = request.header("content-type", "application/json").body(body);
            assert_eq!(request.answer().await.0, 200);
        };
        let id = crate::api::started(app).await;
        let end = format!("execution={id}/results/load/0/1/2.json");
        keep(&format!("noetl/tenant=acme/project=p/{end}"), r#"{"whose":"theirs"}"#).await;
        let reference = &format!("noetl://default/p/results/{id}/load/0/1/2");
        assert_eq!(resolve(app, reference).await.0, 404, "another tenant's is not there");
        keep(&format!("a/{end}"), r#"{"whose":"nobody's"}"#).await;
        assert_eq!(resolve(app, reference).await, (200, json!({"whose": "nobody's"})));
        keep(&format!("noetl/tenant=default/project=p/{end}"), r#"{"whose":"ours"}"#).await;
        assert_eq!(resolve(app, reference).await, (200, json!({"whose": "ours"})));
        let theirs = format!("noetl://acme/p/results/{id}/load/0/1/2");
        assert_eq!(resolve(app, &theirs).await.0, 404);
        let absent = format!("noetl://default/p/results/{id}/load/0/1/3");
        assert_eq!(resolve(app, &absent).await.0, 404);
        // An execution that is not the caller's.
        keep("a/execution=12/results/load/0/1/2.json", r#"{"whose":"unknown"}"#).await;
        assert_eq!(resolve(app, "noetl://default/p/results/12/load/0/1/2").await.0, 404);
    })
    .await;
}

#[tokio::test]
async fn a_large_result_of_a_step_is_resolved_by_its_reference() {
    let app = TestApp::start(4).await;
    assert_eq!(register(&app, GREET).await.0, 200);
    let payload = json!({"who": "x".repeat(100_000)});
    let start = json!({"path": "tests/greet", "payload": payload}).to_string();
    let body = post(&app, "/api/execute", start).answer().await.1;
    let id: i64 = body["execution_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let tenant = noetl_model::Tenant::default();
    let execution = noetl_model::ExecutionId::new(id);
    app.control.journal.executions.wait_until_finished(&tenant, execution).await.expect("an end");
    let log = app.read_log(execution).await;
    let text = format!("{log:?}");
    let digest = text.split(|c: char| !c.is_ascii_hexdigit()).find(|part| part.len() == 64);
    let digest = digest.expect("the result is kept beside the log");
    let page = app.store.blobs(None, 10).await.expect("a list");
    let blob = page.blobs.iter().find(|blob| blob.digest.to_string() == digest).expect("content");
    let reference =
        |id: i64| format!("noetl://execution/{id}/result/start/{digest}-{}", blob.bytes);
    let (status, body) = resolve(&app, &reference(id)).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.to_string().len() > 64 << 10);
    let other = finished(&app).await;
    assert_eq!(resolve(&app, &reference(other)).await.0, 404, "it is not that execution's");
    app.close().await;
}
