use std::sync::Arc;
use std::time::Duration;

use noetl_journal::StartRequest;
use noetl_model::{ExecutionId, Fact};
use noetl_remote::{LeasedRow, LongPoll};
use noetl_store::ExecutionStatus;
use noetl_test_app::FaultyStore;

use crate::plane::{Gate, TestPlane, chain, count};

const FAN: &str = "  - {step: s, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [\
                   {step: a}, {step: b}, {step: c}, {step: d}]}}\n  \
                   - {step: a, tool: {kind: shell, command: x}}\n  \
                   - {step: b, tool: {kind: shell, command: x}}\n  \
                   - {step: c, tool: {kind: shell, command: x}}\n  \
                   - {step: d, tool: {kind: shell, command: x}}\n";

#[tokio::test(start_paused = true)]
async fn commands_in_flight_never_exceed_the_slots() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    let id = plane.start(FAN).await;
    gate.begun(2).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(gate.running.available_permits(), 0, "the other two wait");
    gate.open.add_permits(4);
    gate.begun(2).await;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_is_claimed_in_the_transaction_that_issues_it() {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, 1, &Gate::new()).await;
    let before = store.commits();
    let id = plane.start(&chain(10)).await;
    plane.finished(id).await;
    let log = plane.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandClaimed { .. })), 10);
    // One for the start and one for each completion: none for a claim.
    assert_eq!(store.commits() - before, 11);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_running_commands_and_frees_their_slots() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 1, &gate).await;
    let id = plane.start(FAN).await;
    gate.begun(1).await;
    plane.control.journal.executions.cancel(&plane.tenant, id, None).await.unwrap();
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Cancelled);
    let next = plane.start(&chain(2)).await;
    assert_eq!(plane.finished(next).await.status, ExecutionStatus::Completed);
    let refused =
        plane.control.journal.executions.cancel(&plane.tenant, id, None).await.unwrap_err();
    assert!(refused.to_string().contains("Cancelled"), "{refused}");
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_parallel_commands() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 4, &gate).await;
    let id = plane
        .start(
            "  - {step: s, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}\n  \
             - {step: a, tool: {kind: shell, command: x}}\n  \
             - {step: b, tool: {kind: noop}, set: {ctx.x: '{{ 1 / 0 }}'}}\n",
        )
        .await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Failed);
    assert!(row.error.unwrap().contains("template_error"));
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn many_executions_share_few_slots() {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, 3, &Gate::new()).await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(plane.start(&chain(5)).await);
    }
    for id in ids {
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    }
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_concurrent_with_a_claim_stops_the_claimed_command() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 1, &gate).await;
    let id = plane
        .start(
            "  - {step: a, tool: {kind: shell, command: x}, next: {arcs: [{step: b}]}}\n  \
             - {step: b, tool: {kind: shell, command: x}}\n",
        )
        .await;
    gate.begun(1).await;
    let before = store.commits();
    // On one thread tasks run in the order they are woken: the worker queues the end of `a`, this
    // one queues the cancel, and only then the writer finds both.
    gate.open.add_permits(1);
    let (control, tenant) = (plane.control.clone(), plane.tenant.clone());
    let cancel =
        tokio::spawn(async move { control.journal.executions.cancel(&tenant, id, None).await });
    cancel.await.unwrap().unwrap();
    assert_eq!(store.commits() - before, 1, "both were decided in one batch");
    let log = plane.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandClaimed { .. })), 2);
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandCancelled { .. })), 1);
    let next = plane.start(&chain(1)).await;
    assert_eq!(plane.finished(next).await.status, ExecutionStatus::Completed, "a slot is free");
    assert_eq!(gate.running.available_permits(), 0, "what was cancelled never began");
    plane.close().await;
}

/// Starts one step of the gate in a pool.
async fn start_in(plane: &TestPlane, pool: &str) -> ExecutionId {
    let catalog = Some(plane.register("  - {step: s, tool: {kind: shell, command: x}}\n").await);
    let request = StartRequest { catalog, pool: Some(pool.to_owned()), ..StartRequest::default() };
    plane.control.journal.executions.start(&plane.tenant, request).await.unwrap().execution
}

/// Leases a command of a pool for a remote worker that can run these tools.
async fn asked(plane: &TestPlane, pool: &str, kind: &str) -> Vec<LeasedRow> {
    let request = LongPoll {
        worker: format!("of-{pool}"),
        pool: Some(pool.to_owned()),
        kinds: Some(vec![kind.to_owned()]),
        max: 1,
        wait: Duration::ZERO,
        public_key: None,
    };
    plane.control.remote.leasing.lease(&plane.tenant, &None, request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn commands_of_a_pool_with_a_remote_worker_do_not_run_locally() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    assert!(asked(&plane, "gpu", "shell").await.is_empty());
    let id = start_in(&plane, "gpu").await;
    // Commands of other pools and of no pool run locally.
    start_in(&plane, "cpu").await;
    gate.begun(1).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(gate.running.available_permits(), 0, "it is not begun here");
    let leased_commands = asked(&plane, "gpu", "shell").await;
    assert_eq!(leased_commands.iter().map(|leased| leased.row.execution).collect::<Vec<_>>(), [id]);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_of_a_lost_remote_worker_run_locally() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    asked(&plane, "gpu", "shell").await;
    let id = start_in(&plane, "gpu").await;
    gate.open.add_permits(1);
    // The remote worker sends no more requests.
    gate.begun(1).await;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_without_a_capable_remote_worker_run_locally() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 1, &gate).await;
    asked(&plane, "gpu", "python").await;
    let id = start_in(&plane, "gpu").await;
    gate.begun(1).await;
    gate.open.add_permits(1);
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    plane.close().await;
}
