use std::sync::Arc;
use std::time::Duration;

use noetl_journal::StartRequest;
use noetl_model::{ExecutionId, Fact};
use noetl_remote::{LeasedRow, LongPoll};
use noetl_store::ExecutionStatus;
use noetl_test_app::FaultyStore;

use crate::plant::{Gate, Plant, chain, count};

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
    let plant = Plant::open(&store, 2, &gate).await;
    let id = plant.start(FAN).await;
    gate.begun(2).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(gate.running.available_permits(), 0, "the other two wait");
    gate.open.add_permits(4);
    gate.begun(2).await;
    assert_eq!(plant.finished(id).await.status, ExecutionStatus::Completed);
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_command_is_claimed_in_the_transaction_that_issues_it() {
    let store = Arc::new(FaultyStore::default());
    let plant = Plant::open(&store, 1, &Gate::new()).await;
    let before = store.commits();
    let id = plant.start(&chain(10)).await;
    plant.finished(id).await;
    let log = plant.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandClaimed { .. })), 10);
    // One for the start and one for each completion: none for a claim.
    assert_eq!(store.commits() - before, 11);
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_running_commands_and_frees_their_slots() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 1, &gate).await;
    let id = plant.start(FAN).await;
    gate.begun(1).await;
    plant.control.journal.executions.cancel(&plant.tenant, id, None).await.unwrap();
    assert_eq!(plant.finished(id).await.status, ExecutionStatus::Cancelled);
    let next = plant.start(&chain(2)).await;
    assert_eq!(plant.finished(next).await.status, ExecutionStatus::Completed);
    let refused =
        plant.control.journal.executions.cancel(&plant.tenant, id, None).await.unwrap_err();
    assert!(refused.to_string().contains("Cancelled"), "{refused}");
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_parallel_commands() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 4, &gate).await;
    let id = plant
        .start(
            "  - {step: s, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}\n  \
             - {step: a, tool: {kind: shell, command: x}}\n  \
             - {step: b, tool: {kind: noop}, set: {ctx.x: '{{ 1 / 0 }}'}}\n",
        )
        .await;
    let row = plant.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Failed);
    assert!(row.error.unwrap().contains("template_error"));
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn many_executions_share_few_slots() {
    let store = Arc::new(FaultyStore::default());
    let plant = Plant::open(&store, 3, &Gate::new()).await;
    let mut ids = Vec::new();
    for _ in 0..50 {
        ids.push(plant.start(&chain(5)).await);
    }
    for id in ids {
        assert_eq!(plant.finished(id).await.status, ExecutionStatus::Completed);
    }
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancel_concurrent_with_a_claim_stops_the_claimed_command() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 1, &gate).await;
    let id = plant
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
    let (control, tenant) = (plant.control.clone(), plant.tenant.clone());
    let cancel =
        tokio::spawn(async move { control.journal.executions.cancel(&tenant, id, None).await });
    cancel.await.unwrap().unwrap();
    assert_eq!(store.commits() - before, 1, "both were decided in one batch");
    let log = plant.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandClaimed { .. })), 2);
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandCancelled { .. })), 1);
    let next = plant.start(&chain(1)).await;
    assert_eq!(plant.finished(next).await.status, ExecutionStatus::Completed, "a slot is free");
    assert_eq!(gate.running.available_permits(), 0, "what was cancelled never began");
    plant.close().await;
}

/// Starts one step of the gate in a pool.
async fn start_in(plant: &Plant, pool: &str) -> ExecutionId {
    let catalog = Some(plant.register("  - {step: s, tool: {kind: shell, command: x}}\n").await);
    let request = StartRequest { catalog, pool: Some(pool.to_owned()), ..StartRequest::default() };
    plant.control.journal.executions.start(&plant.tenant, request).await.unwrap().execution
}

/// A worker elsewhere asks for a command of a pool, of those that its tools can run.
async fn asked(plant: &Plant, pool: &str, kind: &str) -> Vec<LeasedRow> {
    let request = LongPoll {
        worker: format!("of-{pool}"),
        pool: Some(pool.to_owned()),
        kinds: Some(vec![kind.to_owned()]),
        max: 1,
        wait: Duration::ZERO,
        public_key: None,
    };
    plant.control.remote.leasing.lease(&plant.tenant, &None, request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn commands_of_a_pool_with_a_remote_worker_do_not_run_locally() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 2, &gate).await;
    assert!(asked(&plant, "gpu", "shell").await.is_empty());
    let id = start_in(&plant, "gpu").await;
    // Others are taken here: of another pool, and of none.
    start_in(&plant, "cpu").await;
    gate.begun(1).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(gate.running.available_permits(), 0, "it is not begun here");
    let taken = asked(&plant, "gpu", "shell").await;
    assert_eq!(taken.iter().map(|leased| leased.row.execution).collect::<Vec<_>>(), [id]);
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_of_a_lost_remote_worker_run_locally() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 2, &gate).await;
    asked(&plant, "gpu", "shell").await;
    let id = start_in(&plant, "gpu").await;
    gate.open.add_permits(1);
    // It is never heard of again.
    gate.begun(1).await;
    assert_eq!(plant.finished(id).await.status, ExecutionStatus::Completed);
    plant.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_without_a_capable_remote_worker_run_locally() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plant = Plant::open(&store, 1, &gate).await;
    asked(&plant, "gpu", "python").await;
    let id = start_in(&plant, "gpu").await;
    gate.begun(1).await;
    gate.open.add_permits(1);
    assert_eq!(plant.finished(id).await.status, ExecutionStatus::Completed);
    plant.close().await;
}
