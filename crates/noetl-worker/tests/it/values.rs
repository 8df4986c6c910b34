//! Values stored as blobs.

use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::scope::{ScopeBlob, ScopePart};
use noetl_worker::LoadError;
use serde_json::{Value, json};

use super::fixture::*;

fn carrying(config: Value) -> noetl_worker::CommandTask {
    let reference =
        BlobRef { digest: "d1".into(), bytes: 99, media_type: "application/json".into() };
    let blob = ScopeBlob {
        among: ScopePart::Steps,
        name: "big".into(),
        reference: Arc::new(reference),
        fields: json!({"n": 3}),
    };
    let mut scope = scope(json!({}));
    scope.blobs.push(blob);
    command("task_sequence", config, Some(scope))
}

fn stored(value: Value) -> StoredValues {
    StoredValues { values: [("d1".to_owned(), value)].into(), ..StoredValues::default() }
}

fn reading(expression: &str) -> Value {
    json!([task("a", json!({"input": {"v": expression}}))])
}

#[tokio::test]
async fn a_value_is_loaded_once_when_it_is_used() {
    let values = Arc::new(stored(json!({"n": 3, "rows": [4, 5]})));
    let performer = performer(ScriptedTool::echo(), values.clone());
    let ended = performer.execute(&carrying(json!({"tasks": reading("{{ big.n }}")}))).await;
    assert_eq!(ended.outcome, Ok(json!({"v": 3})));
    assert!(values.loads.lock().unwrap().is_empty());
    for mode in ["sequential", "parallel"] {
        let items = json!({"items": [0, 1, 0, 1], "iterator": "i", "mode": mode});
        let config = json!({"tasks": reading("{{ big.rows[i] }}"), "loop": items});
        let ended = performer.execute(&carrying(config)).await;
        let results = ended.outcome.unwrap()["results"].clone();
        assert_eq!(results, json!([{"v": 4}, {"v": 5}, {"v": 4}, {"v": 5}]));
        assert_eq!(values.loads.lock().unwrap().drain(..).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_value_load_is_retried() {
    let values = stored(json!({"x": 1}));
    let away = LoadError { message: "away".to_owned(), is_passing: true };
    values.failures.lock().unwrap().extend([away.clone(), away]);
    let values = Arc::new(values);
    let performer = performer(ScriptedTool::echo(), values.clone());
    let ended = performer.execute(&carrying(json!({"tasks": reading("{{ big.x }}")}))).await;
    assert_eq!(ended.outcome, Ok(json!({"v": 1})));
    assert_eq!(values.loads.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_missing_value_fails_the_task_that_uses_it() {
    let performer = performer(ScriptedTool::echo(), Arc::new(StoredValues::default()));
    let ended = performer.execute(&carrying(json!({"tasks": reading("{{ big.x }}")}))).await;
    let failed = failure(ended);
    assert!(failed.message.contains("task 'a': a value it names cannot be read"), "{failed}");
    assert!(failed.message.contains("there is no such value"), "{failed}");
}
