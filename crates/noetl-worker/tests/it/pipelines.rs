//! Pipelines in one command.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use noetl_model::FailureKind;
use serde_json::{Value, json};

use super::fixture::*;

#[tokio::test]
async fn tasks_run_in_order_and_report_values_they_set_once() {
    let tool = ScriptedTool::echo();
    let set = json!([{"scope": "ctx", "path": ["last", "n"], "value": "{{ output.n }}"}]);
    let tasks = json!([
        task("a", json!({"input": {"n": 1}, "set": set})),
        task("b", json!({"input": {"n": "{{ a.n + 1 }}", "seen": "{{ ctx.last.n }}"}, "set": set})),
    ]);
    let ended = run(&tool, tasks).await;
    assert_eq!(tool.inputs(), [json!({"n": 1}), json!({"n": 2, "seen": 1})]);
    let merged = json!({"n": 2, "seen": 1, "a": {"n": 1}, "b": {"n": 2, "seen": 1}});
    assert_eq!(ended.outcome, Ok(merged));
    assert_eq!(Value::Object(ended.ctx), json!({"last.n": 2}));
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_as_long_as_its_rule_requires() {
    let runs = AtomicU32::new(0);
    let tool = ScriptedTool::new(move |_| match runs.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => refused(),
        _ => Ok(json!("done")),
    });
    let rule = json!({"when": "output.error", "do": "retry", "attempts": 3, "delay": 100,
                      "backoff": "linear"});
    let began = tokio::time::Instant::now();
    let ended = run(&tool, json!([task("a", json!({"rules": [rule]}))])).await;
    assert_eq!(ended.outcome, Ok(json!("done")));
    // The clock of this test moves by what is waited for and by nothing else.
    assert_eq!(began.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_retry_delay_ends_when_the_command_is_cancelled() {
    let tool = ScriptedTool::new(|_| refused());
    let rule = json!({"do": "retry", "delay": 86_400});
    let tasks = json!({"tasks": [task("a", json!({"rules": [rule]}))]});
    let command = command("task_sequence", tasks, None);
    let performer = performer(tool.clone(), std::sync::Arc::default());
    let cancel = command.cancel.clone();
    let (ended, ()) = tokio::join!(performer.execute(&command), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    });
    assert_eq!(failure(ended).kind, FailureKind::Cancelled);
    assert_eq!(tool.inputs().len(), 1);
}

#[tokio::test]
async fn no_task_runs_after_a_cancelled_one_despite_accepting_rules() {
    let tool = ScriptedTool::new(|call| {
        call.cancel.cancel();
        refused()
    });
    let accepts = json!({"rules": [{"do": "continue"}]});
    let ended = run(&tool, json!([task("a", accepts.clone()), task("b", accepts)])).await;
    assert_eq!(failure(ended).kind, FailureKind::Cancelled);
    assert_eq!(tool.inputs().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_ends_within_the_timeout_of_its_command() {
    let tool = ScriptedTool::new(|_| refused());
    let rule = json!({"do": "retry", "attempts": 1000, "delay": 3});
    let tasks = json!({"tasks": [task("a", json!({"rules": [rule]}))]});
    let mut command = command("task_sequence", tasks, None);
    let mut issued = (*command.issued).clone();
    issued.timeout_ms = Some(10_000);
    command.issued = std::sync::Arc::new(issued);
    let ended = performer(tool.clone(), std::sync::Arc::default()).execute(&command).await;
    assert_eq!(failure(ended).kind, FailureKind::Timeout);
    assert_eq!(tool.inputs().len(), 4);
}

#[tokio::test]
async fn the_timeout_of_a_task_is_passed_to_its_tool() {
    let tool = ScriptedTool::new(|call| {
        Ok(json!([call.timeout.map(|t| t.as_millis() as u64), call.attempt]))
    });
    let ended = run(&tool, json!([task("a", json!({"timeout_ms": 250}))])).await;
    assert_eq!(ended.outcome, Ok(json!([250, 1])));
}

#[tokio::test]
async fn an_endless_jump_fails_at_the_task_limit() {
    let tool = ScriptedTool::echo();
    let tasks = json!({"tasks": [task("a", json!({"rules": [{"do": "jump", "to": "a"}]}))]});
    let performer = performer(tool.clone(), std::sync::Arc::default()).with_task_limit(20);
    let ended = performer.execute(&command("task_sequence", tasks, None)).await;
    assert_eq!(failure(ended).kind.as_str(), "task_limit");
    assert_eq!(tool.inputs().len(), 20);
}
