//! Timers, calls and answers through the real journal, over restarts and between shards.

use std::sync::Arc;
use std::time::Duration;

use noetl_journal::StartRequest;
use noetl_model::event::ParkReason;
use noetl_model::{CommandId, ExecutionId, Fact, Seq};
use noetl_store::{ExecutionFilter, ExecutionRow, ExecutionStatus};
use noetl_test_app::FaultyStore;
use serde_json::json;

use crate::plane::{Gate, TestPlane, count};

const CHILD: &str = "  - {step: end, tool: {kind: noop, result: {v: 7}}}\n";

fn head(path: &str) -> String {
    format!(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: c, path: {path}}}\nworkflow:\n"
    )
}

pub(crate) async fn register(plane: &TestPlane, path: &str, workflow: &str) {
    let text = format!("{}{workflow}", head(path));
    plane.control.catalog.register(&plane.tenant, text, "playbook", false).await.unwrap();
}

/// Executions of a path.
pub(crate) async fn rows_of(plane: &TestPlane, path: &str) -> Vec<ExecutionRow> {
    let filter =
        ExecutionFilter { path: Some(path.to_owned()), limit: 100, ..ExecutionFilter::default() };
    plane.control.journal.executions.list(&plane.tenant, &filter).await.unwrap()
}

/// Executions of a path, once there are some.
pub(crate) async fn of_path(plane: &TestPlane, path: &str) -> Vec<ExecutionRow> {
    for _ in 0..600 {
        let rows = rows_of(plane, path).await;
        if !rows.is_empty() {
            return rows;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nothing of {path} was started");
}

async fn parked(plane: &TestPlane, id: ExecutionId) -> (CommandId, ParkReason) {
    for _ in 0..600 {
        let log = plane.control.journal.executions.events(id, Seq::START, 1000).await.unwrap();
        let reason = log.iter().rev().find_map(|event| match &event.fact {
            Fact::CommandParked { command, on, .. } => Some((*command, on.clone())),
            _ => None,
        });
        if let Some(reason) = reason {
            return reason;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("nothing waits in {id}");
}

// Real time: timers go by the store's clock.
#[tokio::test]
async fn a_wait_continues_after_a_restart() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    let id = plane
        .start(
            "  - {step: a, tool: {kind: wait, seconds: 0.3}, next: {arcs: [{step: b}]}}\n  \
             - {step: b, tool: {kind: noop}}\n",
        )
        .await;
    parked(&plane, id).await;
    plane.close().await;
    let plane = TestPlane::open(&store, 2, &gate).await;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let log = plane.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandExpired { .. })), 0);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_called_playbook_returns_its_result_across_shards() {
    let cluster = Arc::new(FaultyStore::default());
    let shards: Vec<_> = (0..3).map(|_| Arc::new(FaultyStore::default())).collect();
    let gate = Gate::new();
    let plane = TestPlane::sharded(&cluster, &shards, 4, &gate).await;
    register(&plane, "other/child", CHILD).await;
    let id = plane
        .start(
            "  - {step: a, loop: {in: [1, 2, 3, 4, 5, 6], iterator: x, spec: {mode: parallel}}, \
             tool: {kind: playbook, path: other/child, return_step: end}}\n",
        )
        .await;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let log = plane.log(id).await;
    let Some(Fact::PlaybookCompleted { result, .. }) = log.last().map(|event| &event.fact) else {
        panic!("it completed");
    };
    assert_eq!(result["stats"]["success"], json!(6));
    assert_eq!(result["results"][5]["v"], json!(7));
    assert_eq!(of_path(&plane, "other/child").await.len(), 6, "each was started once");
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_propagates_to_called_playbooks() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    register(&plane, "other/held", "  - {step: a, tool: {kind: shell, command: x}}\n").await;
    let id = plane
        .start("  - {step: a, tool: {kind: playbook, path: other/held, return_result: true}}\n")
        .await;
    gate.begun(1).await;
    let child = of_path(&plane, "other/held").await[0].id;
    plane.control.journal.executions.cancel(&plane.tenant, id, None).await.unwrap();
    assert_eq!(plane.finished(child).await.status, ExecutionStatus::Cancelled);
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Cancelled);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_playbook_fails_the_call() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    let id = plane
        .start("  - {step: a, tool: {kind: playbook, path: nobody/here, return_result: true}}\n")
        .await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Failed);
    let error = row.error.unwrap();
    assert!(error.contains("Playbook not found: nobody/here"), "{error}");
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_requires_the_right_token() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    let id = plane.start("  - {step: a, tool: {kind: approval}}\n").await;
    let (command, ParkReason::Callback(callback)) = parked(&plane, id).await else {
        panic!("it waits for an answer");
    };
    let executions = &plane.control.journal.executions;
    let yes = || Ok(json!({ "approved": true }));
    assert!(executions.answer(id, command, "guessed", yes()).await.is_err());
    executions.answer(id, command, &callback.token, yes()).await.unwrap();
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    assert!(executions.answer(id, command, &callback.token, yes()).await.is_err(), "once");
    plane.close().await;
}

// Real time: timers go by the store's clock.
#[tokio::test]
async fn a_step_past_its_timeout_fails_by_a_durable_timer() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    let id = plane.start("  - {step: a, spec: {timeout: 200ms}, tool: {kind: approval}}\n").await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Failed);
    assert!(row.error.unwrap().starts_with("timeout: step 'a' took longer"));
    plane.close().await;
}

#[tokio::test]
async fn results_of_ten_thousand_items_are_in_order() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 64, &gate).await;
    let catalog = plane
        .register(
            "  - {step: a, loop: {in: 10000, iterator: x, spec: {mode: parallel, \
             max_in_flight: 64}}, tool: {kind: noop, result: '{{ x }}'}, \
             next: {arcs: [{step: b}]}}\n  \
             - {step: b, tool: {kind: noop, result: \
             ['{{ a | length }}', '{{ a[9999] }}', '{{ a.results == range(10000) | list }}']}}\n",
        )
        .await;
    let request = StartRequest { catalog: Some(catalog), ..StartRequest::default() };
    let started = plane.control.journal.executions.start(&plane.tenant, request).await.unwrap();
    let id = started.execution;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let log = plane.log(id).await;
    let Some(Fact::PlaybookCompleted { result, .. }) = log.last().map(|event| &event.fact) else {
        panic!("it completed");
    };
    assert_eq!(*result, json!([10000, 9999, true]));
    plane.close().await;
}
