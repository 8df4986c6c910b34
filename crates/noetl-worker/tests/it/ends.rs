//! Ends that no author asked for.

use std::sync::Arc;

use noetl_model::FailureKind;
use serde_json::{Value, json};

use super::fixture::*;

#[tokio::test]
async fn a_tool_that_panics_fails_its_task_and_rules_may_accept_it() {
    let tool = ScriptedTool::new(|call| match call.input.get("bad") {
        Some(_) => panic!("as the test says"),
        None => Ok(json!(1)),
    });
    let bad = json!({"input": {"bad": true}});
    let ended = run(&tool, json!([task("a", bad.clone())])).await;
    assert_eq!(failure(ended).kind, FailureKind::Unknown);
    let mut accepted = bad;
    accepted["rules"] = json!([{"when": "output.error.kind == 'unknown'", "do": "continue"}]);
    let ended = run(&tool, json!([task("a", accepted), task("b", json!({}))])).await;
    assert_eq!(ended.outcome.unwrap()["b"], json!(1));
}

#[tokio::test]
async fn an_invalid_pipeline_fails_with_its_reason() {
    let performer = performer(ScriptedTool::echo(), Arc::default());
    for (config, reason) in [
        (json!({}), "the pipeline is not in the form commands carry"),
        (json!({"tasks": []}), "it has no task"),
        (json!({"tasks": "all"}), "the pipeline is not in the form commands carry"),
        (
            json!({"tasks": [task("a", json!({}))], "loop": {"items": 3, "iterator": "x"}}),
            "the loop is not in the form commands carry",
        ),
        (
            json!({"tasks": [task("a", json!({}))], "loop": {"items": [], "iterator": "x", "mode": "y"}}),
            "the loop is not in the form commands carry",
        ),
    ] {
        let ended = performer.execute(&command("task_sequence", config, None)).await;
        let failure = failure(ended);
        assert_eq!(failure.kind, FailureKind::Config);
        assert!(failure.message.contains(reason), "{failure}");
    }
}

#[tokio::test]
async fn a_missing_tool_fails_the_task_that_uses_it() {
    let ended = run(&ScriptedTool::echo(), json!([{"name": "a", "kind": "other"}])).await;
    assert_eq!(failure(ended).kind, FailureKind::ToolMissing);
}

/// A value that nests so deep.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[tokio::test]
async fn an_unstorable_result_is_a_failure() {
    let tool = ScriptedTool::new(|call| {
        let levels = call.input["levels"].as_u64().unwrap();
        Ok(nested(usize::try_from(levels).unwrap()))
    });
    let deep = |label: &str| task(label, json!({"input": {"levels": noetl_model::DEPTH_MAX}}));
    assert!(run(&tool, json!([deep("a")])).await.outcome.is_ok());
    // Two are put into a map, which is a level more.
    let failed = failure(run(&tool, json!([deep("a"), deep("b")])).await);
    assert_eq!(failed.kind, FailureKind::Schema);
    let mut sets = deep("a");
    sets["set"] = json!([{"scope": "ctx", "path": ["x"], "value": "{{ output }}"}]);
    let failed = failure(run(&tool, json!([sets])).await);
    assert!(failed.message.starts_with("ctx.x nests more than"), "{failed}");
}

#[tokio::test]
async fn a_plain_command_calls_its_tool_once_without_rendering() {
    let tool = ScriptedTool::new(|call| Ok(json!([call.config.clone(), call.attempt])));
    let command = command("scripted", json!({"text": "{{ not a template }}"}), None);
    let ended = performer(tool, Arc::default()).execute(&command).await;
    assert_eq!(ended.outcome, Ok(json!([{"text": "{{ not a template }}"}, 1])));
    assert!(ended.ctx.is_empty());
}
