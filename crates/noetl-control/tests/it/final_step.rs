//! The final step of an execution that fails, with a worker in the process.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_control::{ControlPlane, Options};
use noetl_model::{Fact, Failure, FailureKind, Value};
use noetl_store::{ExecutionStatus, SystemClock};
use noetl_test_app::FaultyStore;
use noetl_tools::{Noop, Tool, ToolCall, ToolRegistry};

use crate::plane::{Gate, TestPlane};

/// Executions of each kind of failure.
const RUNS: usize = 20;

/// A tool that always fails.
struct FailingTool;

#[async_trait]
impl Tool for FailingTool {
    fn kind(&self) -> &'static str {
        "python"
    }

    async fn run(&self, _: ToolCall) -> Result<Value, Failure> {
        Err(Failure::new(FailureKind::Unknown, "it broke"))
    }
}

/// A tool that gives a stop every chance to arrive before it completes.
struct SlowTool;

#[async_trait]
impl Tool for SlowTool {
    fn kind(&self) -> &'static str {
        "http"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        match call.cancel.is_cancelled() {
            true => Err(Failure::new(FailureKind::Cancelled, "stopped")),
            false => Ok(Value::from("cleaned")),
        }
    }
}

/// Runs steps that fail, many times at once, and checks that their final step completes each time.
async fn assert_final_step_completes(steps: &str) {
    let options = Options { slots: 8, ..Options::default() };
    let store = Arc::new(FaultyStore::default());
    let control = ControlPlane::open(options, store, Arc::new(SystemClock)).await.unwrap();
    let tools =
        ToolRegistry::default().with(Noop).with(FailingTool).with(SlowTool).with(Gate::new());
    let plane = TestPlane::with_tools(control, tools);
    let workflow = format!(
        "{steps}  - {{step: last, tool: {{kind: http, url: 'http://x'}}}}\n\
         executor: {{spec: {{final_step: last}}}}\n"
    );
    let mut started = Vec::new();
    for _ in 0..RUNS {
        started.push(plane.start(&workflow).await);
    }
    for id in started {
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Failed);
        let log = plane.log(id).await;
        let is_done =
            |fact: &Fact| matches!(fact, Fact::CallDone { step, .. } if &**step == "last");
        assert!(log.iter().any(|event| is_done(&event.fact)), "{log:#?}");
    }
    plane.close().await;
}

#[tokio::test]
async fn the_final_step_completes_after_a_tool_failed() {
    assert_final_step_completes("  - {step: a, tool: {kind: python, code: x}}\n").await;
}

#[tokio::test]
async fn the_final_step_completes_after_a_template_failed() {
    let steps = "  - {step: a, tool: {kind: noop, seen: '{{ 1 / 0 }}'}}\n";
    assert_final_step_completes(steps).await;
}

#[tokio::test]
async fn the_final_step_completes_after_an_item_of_a_loop_failed() {
    let steps = "  - step: a\n    loop: {in: [1, 2, 3], iterator: i, spec: {mode: parallel}}\n    \
                 tool: {kind: python, code: x}\n";
    assert_final_step_completes(steps).await;
}

#[tokio::test]
async fn the_final_step_completes_after_one_of_two_parallel_branches_failed() {
    let steps = "  - {step: a, tool: {kind: noop}, \
                 next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}}\n  \
                 - {step: b, tool: {kind: python, code: x}}\n  \
                 - {step: c, tool: {kind: shell, command: x}}\n";
    assert_final_step_completes(steps).await;
}

#[tokio::test]
async fn the_final_step_completes_after_a_call_of_a_playbook_failed() {
    let steps = "  - {step: a, tool: {kind: playbook, path: not/there, return_result: true}}\n";
    assert_final_step_completes(steps).await;
}
