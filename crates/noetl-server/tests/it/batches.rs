//! Many starts with one request.

use insta::assert_snapshot;
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{GREET, get, post};

async fn registered() -> TestApp {
    let app = TestApp::start(2).await;
    let body = json!({"content": GREET}).to_string();
    assert_eq!(post(&app, "/api/catalog/register", body).answer().await.0, 200);
    app
}

async fn batch(app: &TestApp, items: Value) -> (u16, Value) {
    post(app, "/api/execute/batch", json!({"executions": items}).to_string()).answer().await
}

#[tokio::test]
async fn each_item_of_a_batch_starts_or_gets_an_error() {
    let app = registered().await;
    let body = json!({"executions": [
        {"path": "tests/greet"},
        {"path": "nope"},
        {"path": "tests/greet", "dedup": {"key": "k"}},
        {"path": "tests/greet", "dedup": {"key": "k"}},
        {"path": 7},
        {},
        {"path": "tests/greet", "dedup": {"key": ""}},
    ]});
    let answered = post(&app, "/api/execute/batch", body.to_string()).shown().await;
    assert_snapshot!(answered, @r#"
    200
    {
      "count": 7,
      "started": 2,
      "duplicates": 1,
      "failed": 4,
      "results": [
        {
          "index": 0,
          "status": "started",
          "execution_id": "[id]",
          "commands_generated": 1
        },
        {
          "index": 1,
          "status": "error",
          "commands_generated": 0,
          "error": "Resource not found: Playbook not found: nope"
        },
        {
          "index": 2,
          "status": "started",
          "execution_id": "[id]",
          "commands_generated": 1
        },
        {
          "index": 3,
          "status": "duplicate",
          "execution_id": "[id]",
          "commands_generated": 0
        },
        {
          "index": 4,
          "status": "error",
          "commands_generated": 0,
          "error": "Validation error: Failed to deserialize the JSON body into the target type: path: invalid type: integer `7`, expected a string at line 1 column 9"
        },
        {
          "index": 5,
          "status": "error",
          "commands_generated": 0,
          "error": "Validation error: name the playbook by path or catalog_id"
        },
        {
          "index": 6,
          "status": "error",
          "commands_generated": 0,
          "error": "Validation error: dedup.key must not be empty"
        }
      ]
    }
    "#);
    app.close().await;
}

#[tokio::test]
async fn a_batch_starts_at_most_a_thousand_executions() {
    let app = registered().await;
    let item = json!({"path": "tests/greet"});
    let (status, answer) = batch(&app, Value::Array(vec![item.clone(); 1000])).await;
    assert_eq!((status, &answer["started"], &answer["failed"]), (200, &json!(1000), &json!(0)));
    let results = answer["results"].as_array().expect("results");
    let ids: std::collections::BTreeSet<&str> =
        results.iter().filter_map(|result| result["execution_id"].as_str()).collect();
    assert_eq!(ids.len(), 1000);
    assert!(results.iter().enumerate().all(|(index, result)| result["index"] == index));
    for wrong in [Value::Array(vec![item; 1001]), json!([])] {
        let (status, answer) = batch(&app, wrong).await;
        assert_eq!((status, &answer["code"]), (422, &json!("invalid_batch")));
    }
    let (_, list) = get(&app, "/api/executions?limit=1").answer().await;
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    app.close().await;
}

#[tokio::test]
async fn the_first_item_of_a_dedup_key_starts() {
    let app = registered().await;
    let items: Vec<Value> = (0..100)
        .map(|number| json!({"path": "tests/greet", "dedup": {"key": format!("k{}", number % 10)}}))
        .collect();
    let (_, answer) = batch(&app, Value::Array(items)).await;
    assert_eq!((&answer["started"], &answer["duplicates"]), (&json!(10), &json!(90)));
    let results = answer["results"].as_array().expect("results");
    for (index, result) in results.iter().enumerate() {
        assert_eq!(result["status"] == "started", index < 10, "{result}");
        assert_eq!(result["execution_id"], results[index % 10]["execution_id"]);
    }
    app.close().await;
}
