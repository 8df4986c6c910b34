use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options};
use noetl_journal::StartRequest;
use noetl_model::{CommandId, CommandState, ExecutionId, Fact, Value};
use noetl_store::{
    CommandStore as _, ExecutionStatus, LogQuery, LogStream, StepLogStore as _, SystemClock,
};
use noetl_test_app::FaultyStore;

use crate::plane::{Gate, TestPlane, count};

const HELD: &str = "  - {step: a, tool: {kind: shell, command: x}, next: {arcs: [{step: b}]}}\n  \
                    - {step: b, tool: {kind: noop}}\n";

#[tokio::test(start_paused = true)]
async fn a_command_in_flight_when_the_process_ends_runs_again() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 2, &gate).await;
    let id = plane.start(HELD).await;
    gate.begun(1).await;
    plane.close().await;

    let plane = TestPlane::open(&store, 2, &gate).await;
    assert_eq!(plane.control.journal.resumed, 1);
    gate.begun(1).await;
    gate.open.add_permits(1);
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let log = plane.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandExpired { .. })), 1);
    // The gate answers with the attempt: only the second one's answer is in the log.
    let answered =
        |fact: &Fact| matches!(fact, Fact::CallDone { data, .. } if data.as_i64() == Some(2));
    assert_eq!(count(&log, answered), 1);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_pending_for_a_slot_are_pending_after_a_restart() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 1, &gate).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(plane.start(HELD).await);
    }
    gate.begun(1).await;
    plane.close().await;

    let plane = TestPlane::open(&store, 1, &gate).await;
    assert_eq!(plane.control.journal.resumed, 3);
    gate.open.add_permits(3);
    for id in ids {
        assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    }
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_without_resume_does_not_resume_executions() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 1, &gate).await;
    let id = plane.start(HELD).await;
    gate.begun(1).await;
    plane.close().await;

    let options = Options { slots: 1, resume: false, ..Options::default() };
    let plane = TestPlane::with(&store, options, &gate).await;
    let other = plane.start("  - {step: a, tool: {kind: noop}}\n").await;
    assert_eq!(plane.finished(other).await.status, ExecutionStatus::Completed);
    let row = plane.control.journal.executions.get(&plane.tenant, id).await.unwrap().unwrap();
    assert_eq!(row.status, ExecutionStatus::Running);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn registering_a_playbook_again_does_not_change_running_executions() {
    let store = Arc::new(FaultyStore::default());
    let gate = Gate::new();
    let plane = TestPlane::open(&store, 1, &gate).await;
    let id = plane.start(HELD).await;
    gate.begun(1).await;
    plane.register("  - {step: a, tool: {kind: noop}}\n").await;
    plane.close().await;

    let plane = TestPlane::open(&store, 1, &gate).await;
    gate.open.add_permits(1);
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let log = plane.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::StepExited { .. })), 2);
    plane.close().await;
}

#[tokio::test]
async fn a_document_of_an_unknown_kind_is_rejected() {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, 1, &Gate::new()).await;
    let register = |kind: &str, force| {
        let text = format!("kind: {kind}\nmetadata: {{name: x}}\nworkflow: []\n");
        plane.control.catalog.register(&plane.tenant, text, "playbook", force)
    };
    assert!(register("Playbok", false).await.is_err());
    assert!(register("Playbok", true).await.is_ok());
    assert!(register("Agent", false).await.is_ok());
    // Of the kinds it knows, it looks into those it can check.
    assert!(register("Subscription", false).await.is_err());
    plane.close().await;
}

/// Returns a store that is shared with other processes.
fn shared() -> Arc<FaultyStore> {
    let store = Arc::new(FaultyStore::default());
    store.set_shared();
    store
}

/// The open commands: how each stands, and which try it is.
async fn open(store: &FaultyStore) -> Vec<(CommandState, u32)> {
    let rows = store.open_commands(CommandId::new(i64::MIN), 100).await.unwrap();
    rows.into_iter().map(|row| (row.state, row.attempt)).collect()
}

const ONCE: &str = "  - {step: a, tool: {kind: shell, command: x, idempotent: false}}\n";

#[tokio::test(start_paused = true)]
async fn running_commands_of_a_stopped_process_are_released() {
    let (store, gate) = (shared(), Gate::new());
    let plane = TestPlane::open(&store, 2, &gate).await;
    plane.start(HELD).await;
    gate.begun(1).await;
    plane.close().await;
    assert_eq!(open(&store).await, [(CommandState::Pending, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_running_command_that_may_not_repeat_fails_when_its_process_ends() {
    let (store, gate) = (shared(), Gate::new());
    let plane = TestPlane::open(&store, 2, &gate).await;
    let (control, tenant) = (plane.control.clone(), plane.tenant.clone());
    let id = plane.start(ONCE).await;
    gate.begun(1).await;
    plane.close().await;
    let row = control.journal.executions.get(&tenant, id).await.unwrap().unwrap();
    assert_eq!(row.status, ExecutionStatus::Failed);
    assert!(row.error.unwrap().contains("may not run twice"));
}

#[tokio::test(start_paused = true)]
async fn unstarted_commands_are_released_regardless_of_their_tool() {
    let store = shared();
    let options = Options { slots: 2, ..Options::default() };
    let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await.unwrap();
    // Its worker never takes anything.
    let plane = TestPlane::without_worker(control);
    plane.start(ONCE).await;
    assert_eq!(open(&store).await, [(CommandState::Claimed, 1)]);
    plane.close().await;
    assert_eq!(open(&store).await, [(CommandState::Pending, 2)]);
}

#[tokio::test(start_paused = true)]
async fn commands_being_claimed_during_shutdown_are_released() {
    let (store, gate) = (shared(), Gate::new());
    let plane = TestPlane::open(&store, 2, &gate).await;
    let catalog = Some(plane.register(HELD).await);
    let before = store.commits();
    store.block_commits(true);
    let (control, tenant) = (plane.control.clone(), plane.tenant.clone());
    let started = tokio::spawn(async move {
        let request = StartRequest { catalog, ..StartRequest::default() };
        control.journal.executions.start(&tenant, request).await
    });
    while store.commits() == before {
        tokio::task::yield_now().await;
    }
    let closing = tokio::spawn(plane.close());
    tokio::time::sleep(Duration::from_secs(1)).await;
    store.block_commits(false);
    started.await.unwrap().unwrap();
    closing.await.unwrap();
    assert_eq!(open(&store).await, [(CommandState::Pending, 2)]);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_does_not_prevent_shutdown() {
    let (store, gate) = (shared(), Gate::new());
    let plane = TestPlane::open(&store, 2, &gate).await;
    plane.start(HELD).await;
    gate.begun(1).await;
    for number in 0..50 {
        let print =
            plane.control.journal.local.printer(ExecutionId::new(number), CommandId::new(number));
        print(LogStream::Out, "the last words\n");
    }
    store.set_down(true);
    let since = tokio::time::Instant::now();
    plane.close().await;
    // By a clock that moves only when everybody waits.
    let took = since.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_step_completion_becomes_visible_after_its_logs_are_stored() {
    let store = shared();
    let options = Options { slots: 2, ..Options::default() };
    let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await.unwrap();
    let plane = TestPlane::without_worker(control);
    let id = plane.start(ONCE).await;
    let local = plane.control.journal.local.clone();
    let assignment = local.next().await.unwrap();
    store.block_lines(true);
    local.printer(id, assignment.command)(LogStream::Out, "done\n");
    let reported =
        tokio::spawn(async move { local.report(assignment, Ok(Value::Null).into()).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let row = plane.control.journal.executions.get(&plane.tenant, id).await.unwrap().unwrap();
    assert_eq!(row.status, ExecutionStatus::Running);
    store.block_lines(false);
    reported.await.unwrap();
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let query = LogQuery { command: None, after: 0, limit: 10 };
    assert_eq!(store.lines(id, query).await.unwrap().len(), 1);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_released_by_another_process_are_claimed_on_the_current_log() {
    let (store, gate) = (shared(), Gate::new());
    let one = TestPlane::open(&store, 1, &gate).await;
    let id = one
        .start(
            "  - {step: s, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}\n  \
             - {step: a, tool: {kind: shell, command: x}}\n  \
             - {step: b, tool: {kind: shell, command: x}}\n",
        )
        .await;
    gate.begun(1).await;
    // The other takes the second step, so it has a state of the execution from before.
    let other = TestPlane::open(&store, 2, &gate).await;
    gate.begun(1).await;
    one.close().await;
    gate.begun(1).await;
    gate.open.add_permits(2);
    assert_eq!(other.finished(id).await.status, ExecutionStatus::Completed);
    other.close().await;
}
