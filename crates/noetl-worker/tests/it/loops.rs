//! Loops whose iterations run within one command.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use noetl_model::{Failure, FailureKind, Value};
use noetl_tools::{Tool, ToolCall, ToolRegistry};
use noetl_work::CommandOutcome;
use noetl_worker::CommandExecutor;
use serde_json::json;
use tokio::sync::Semaphore;

use super::fixture::*;

async fn looped(tool: &ScriptedTool, more: Value, tasks: Value) -> CommandOutcome {
    let mut settings = json!({"iterator": "x"});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let config = json!({"tasks": tasks, "loop": settings});
    let command = command("task_sequence", config, Some(scope(json!({"sum": 0}))));
    performer(tool.clone(), Arc::default()).execute(&command).await
}

/// Adds the item to `ctx.sum`, and returns item and place.
fn adding() -> Value {
    let input = json!({"x": "{{ x }}", "at": "{{ _index }}/{{ _total }}", "sum": "{{ ctx.sum }}"});
    let set = json!([{"scope": "ctx", "path": ["sum"], "value": "{{ ctx.sum + output.x }}"},
                     {"scope": "ctx", "path": ["seen", "last"], "value": "{{ x }}"}]);
    json!([task("a", json!({"input": input, "set": set}))])
}

fn failing_at(item: i64) -> ScriptedTool {
    ScriptedTool::new(move |call| match call.input["x"].as_i64() {
        Some(x) if x == item => Err(Failure::new(FailureKind::Auth, "no")),
        _ => Ok(call.input["x"].clone()),
    })
}

#[tokio::test]
async fn sequential_iterations_see_earlier_values() {
    let tool = ScriptedTool::echo();
    let ended = looped(&tool, json!({"items": [5, 6, 7]}), adding()).await;
    let expected = json!({
        "results": [{"x": 5, "at": "0/3", "sum": 0}, {"x": 6, "at": "1/3", "sum": 5},
                    {"x": 7, "at": "2/3", "sum": 11}],
        "stats": {"total": 3, "success": 3, "failed": 0, "skipped": 0},
        "errors": [],
    });
    assert_eq!(ended.outcome, Ok(expected));
    assert_eq!(Value::Object(ended.ctx), json!({"sum": 18, "seen.last": 7}));
}

#[tokio::test]
async fn step_values_persist_across_iterations_and_are_reported() {
    let set = json!([{"scope": "step", "path": ["last"], "value": "{{ x }}"}]);
    let input = json!({"before": "{{ step.last | default('nothing') }}"});
    let tasks = json!([task("a", json!({"input": input, "set": set}))]);
    let ended = looped(&ScriptedTool::echo(), json!({"items": [5, 6]}), tasks.clone()).await;
    assert_eq!(ended.outcome.unwrap()["results"], json!([{"before": "nothing"}, {"before": 5}]));
    assert_eq!(Value::Object(ended.step), json!({"last": 6}));
    assert!(ended.ctx.is_empty());
    let settings = json!({"items": [5, 6], "mode": "parallel"});
    let ended = looped(&ScriptedTool::echo(), settings, tasks).await;
    assert_eq!(Value::Object(ended.step), json!({"last": 6}));
}

#[tokio::test]
async fn parallel_iterations_see_no_earlier_values_and_the_last_item_writes_last() {
    let tool = ScriptedTool::echo();
    let settings = json!({"items": [5, 6, 7], "mode": "parallel"});
    let ended = looped(&tool, settings, adding()).await;
    let result = ended.outcome.unwrap();
    let sums: Vec<_> = result["results"].as_array().unwrap().iter().map(|r| &r["sum"]).collect();
    assert_eq!(sums, [&json!(0); 3]);
    assert_eq!(Value::Object(ended.ctx), json!({"sum": 7, "seen.last": 7}));
}

#[tokio::test]
async fn an_empty_loop_completes_at_once() {
    for mode in ["sequential", "parallel"] {
        let tool = ScriptedTool::echo();
        let ended = looped(&tool, json!({"items": [], "mode": mode}), adding()).await;
        let stats = json!({"total": 0, "success": 0, "failed": 0, "skipped": 0});
        assert_eq!(ended.outcome, Ok(json!({"results": [], "stats": stats, "errors": []})));
        assert!(tool.inputs().is_empty());
    }
}

#[tokio::test]
async fn the_first_failure_stops_a_loop_unless_it_is_best_effort() {
    let tasks = json!([task("a", json!({"input": {"x": "{{ x }}"}}))]);
    let items = json!([1, 2, 3]);
    for mode in ["sequential", "parallel"] {
        let tool = failing_at(2);
        let settings = json!({"items": items, "mode": mode, "max_in_flight": 1});
        let failed = failure(looped(&tool, settings, tasks.clone()).await);
        assert_eq!(failed.kind, FailureKind::Auth);
        assert_eq!(failed.message, "item 1: no");
        assert_eq!(failed.details.unwrap()["index"], json!(1));
        assert_eq!(tool.inputs().len(), 2, "{mode}");
        let settings = json!({"items": items, "mode": mode, "failure": "best_effort"});
        let result = looped(&failing_at(2), settings, tasks.clone()).await.outcome.unwrap();
        assert_eq!(result["results"], json!([1, null, 3]));
        let stats = json!({"total": 3, "success": 2, "failed": 1, "skipped": 0});
        assert_eq!(result["stats"], stats);
        let error = json!({"kind": "auth", "message": "no", "retryable": false});
        assert_eq!(result["errors"], json!([{"index": 1, "error": error}]));
    }
}

#[tokio::test]
async fn a_cancelled_command_starts_no_further_item() {
    let tool = ScriptedTool::new(|call| {
        call.cancel.cancel();
        Ok(json!(1))
    });
    let tasks = json!([task("a", json!({}))]);
    for mode in ["sequential", "parallel"] {
        let settings = json!({"items": [1, 2, 3], "mode": mode, "max_in_flight": 1});
        let ended = looped(&tool, settings, tasks.clone()).await;
        assert_eq!(failure(ended).kind, FailureKind::Cancelled);
    }
    assert_eq!(tool.inputs().len(), 2);
}

/// Waits until so many calls run at once, and notes the most that did.
struct Gate {
    running: AtomicUsize,
    most: Arc<AtomicUsize>,
    open: Semaphore,
    at: usize,
    order: Arc<Mutex<Vec<Value>>>,
}

#[async_trait]
impl Tool for Gate {
    fn kind(&self) -> &'static str {
        "scripted"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        if running == self.at {
            self.open.add_permits(self.at);
        }
        self.open.acquire().await.expect("it is never closed").forget();
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.order.lock().unwrap().push(call.input["x"].clone());
        Ok(call.input["x"].clone())
    }
}

#[tokio::test]
async fn a_parallel_loop_respects_max_in_flight_and_returns_results_in_item_order() {
    let (most, order) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let gate = Gate {
        running: AtomicUsize::new(0),
        most: Arc::clone(&most),
        open: Semaphore::new(0),
        at: 3,
        order: Arc::clone(&order),
    };
    let items: Vec<i64> = (0..12).collect();
    let config = json!({
        "tasks": [task("a", json!({"input": {"x": "{{ x }}"}}))],
        "loop": {"items": items, "iterator": "x", "mode": "parallel", "max_in_flight": 3},
    });
    let performer = CommandExecutor::new(
        ToolRegistry::default().with(gate),
        Arc::new(StoredValues::default()),
        clock(),
    );
    let ended = performer.execute(&command("task_sequence", config, None)).await;
    assert_eq!(ended.outcome.unwrap()["results"], json!(items));
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(order.lock().unwrap().len(), 12);
}

#[tokio::test]
async fn iteration_values_end_with_the_iteration() {
    let tool = ScriptedTool::echo();
    let input = json!({"mine": "{{ iter.mine | default('none') }}", "x": "{{ iter.x }}"});
    let set = json!([{"scope": "iter", "path": ["mine"], "value": "{{ x }}"}]);
    let tasks =
        json!([task("a", json!({"input": input, "set": set})), task("b", json!({"input": input}))]);
    let ended = looped(&tool, json!({"items": [1, 2]}), tasks).await;
    let mine: Vec<Value> =
        tool.inputs().iter().map(|call_input| call_input["mine"].clone()).collect();
    assert_eq!(mine, [json!("none"), json!(1), json!("none"), json!(2)]);
    assert!(ended.ctx.is_empty());
}
