//! Faults that users of other engines reported, each under its own name: the run ends as it does
//! without the fault. Those that need processes, a wire or a database are in the modules of this
//! name in `noetl-cli`, `noetl-server` and `noetl-store-postgres`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use noetl_control::{ControlPlane, Options};
use noetl_model::{Event, Fact, Failure, FailureKind, Value};
use noetl_store::{ExecutionStatus, MemoryStore, StoreClock, SystemClock};
use noetl_test_app::{CommitFault, FaultyStore, SimClock};
use noetl_tools::{Noop, Tool, ToolCall, ToolRegistry};

use crate::own::register;
use crate::plane::{Gate, TestPlane, count};

/// A step that runs until it is let go, and two after it.
const WORK: &str = "  - {step: a, tool: {kind: shell, command: x}, next: {arcs: [{step: b}]}}\n  \
                    - {step: b, tool: {kind: noop}, next: {arcs: [{step: c}]}}\n  \
                    - {step: c, tool: {kind: noop, result: 7}}\n";

/// Returns the exited steps of a log in order, and its result.
fn end(log: &[Event]) -> (Vec<String>, Option<Value>) {
    let left = log.iter().filter_map(|event| match &event.fact {
        Fact::StepExited { step, .. } => Some(step.to_string()),
        _ => None,
    });
    let result = log.iter().find_map(|event| match &event.fact {
        Fact::PlaybookCompleted { result, .. } => Some(result.clone()),
        _ => None,
    });
    (left.collect(), result)
}

/// Returns the outcome of [`WORK`] without faults.
async fn undisturbed() -> (Vec<String>, Option<Value>) {
    let (store, gate) = (Arc::new(FaultyStore::default()), Gate::new());
    let plane = TestPlane::open(&store, 2, &gate).await;
    gate.open.add_permits(1);
    let id = plane.start(WORK).await;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let end = end(&plane.log(id).await);
    plane.close().await;
    end
}

fn expired(log: &[Event]) -> usize {
    count(log, |fact| matches!(fact, Fact::CommandExpired { .. }))
}

/// Opens a control plane as a supervisor does: again, until it starts.
async fn supervised(store: &Arc<FaultyStore>, gate: &Gate) -> TestPlane {
    for _ in 0..20 {
        let options = Options { slots: 2, ..Options::default() };
        match ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await {
            Ok(control) => return TestPlane::with_tools(control, tools(gate)),
            Err(_) => store.set_down(false),
        }
    }
    panic!("it never starts");
}

fn tools(gate: &Gate) -> ToolRegistry {
    ToolRegistry::default().with(Noop).with(gate.clone())
}

#[tokio::test(start_paused = true)]
async fn a_database_that_restarts_inside_the_recovery_loop() {
    let expected = undisturbed().await;
    for fault in [CommitFault::Refused, CommitFault::Lost, CommitFault::AnswerLost] {
        // Each commit of the recovery and of what follows it, and the database away from the start.
        for number in 0..=4 {
            let (store, gate) = (Arc::new(FaultyStore::default()), Gate::new());
            let first = TestPlane::open(&store, 2, &gate).await;
            let id = first.start(WORK).await;
            gate.begun(1).await;
            first.close().await;
            match number {
                0 => store.set_down(true),
                number => store.fail_commit(store.commits() + number, fault),
            }
            let second = supervised(&store, &gate).await;
            gate.open.add_permits(1);
            let row = second.finished(id).await;
            assert_eq!(row.status, ExecutionStatus::Completed, "{fault:?} {number}");
            assert_eq!(end(&second.log(id).await), expected, "{fault:?} {number}");
            second.close().await;
        }
    }
}

/// A store that processes share, whose leases go by a clock that is moved by hand.
fn shared() -> (Arc<FaultyStore>, Arc<SimClock>) {
    let clock = Arc::new(SimClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
    let store = Arc::new(FaultyStore::over(Arc::new(store)));
    store.set_shared();
    (store, clock)
}

#[tokio::test(start_paused = true)]
async fn two_recoverers_with_a_stale_read() {
    let expected = undisturbed().await;
    let ((store, clock), gate) = (shared(), Gate::new());
    let dead = TestPlane::open(&store, 2, &gate).await;
    let id = dead.start(WORK).await;
    gate.begun(1).await;
    dead.killed().await;
    clock.advance(Duration::from_secs(600));
    let one = TestPlane::open(&store, 2, &gate).await;
    let two = TestPlane::open(&store, 2, &gate).await;
    // Commits of one process stay in flight while the other decides on the same log.
    store.block_commits(true);
    let before = store.commits();
    for _ in 0..600 {
        if store.commits() >= before + 2 || expired(&one.log(id).await) > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    store.block_commits(false);
    gate.begun(1).await;
    // What the dead one ran may go on without it, and comes first.
    gate.open.add_permits(2);
    assert_eq!(one.finished(id).await.status, ExecutionStatus::Completed);
    let log = two.log(id).await;
    assert_eq!(end(&log), expected);
    assert_eq!(expired(&log), 1, "handed out again once: {log:#?}");
    assert_eq!(gate.running.available_permits(), 0, "and run once");
    one.close().await;
    two.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_old_process_that_drains_while_the_new_one_starts() {
    let expected = undisturbed().await;
    let ((store, _clock), gate) = (shared(), Gate::new());
    let old = TestPlane::open(&store, 2, &gate).await;
    let id = old.start(WORK).await;
    gate.begun(1).await;
    let ((), new) = tokio::join!(old.close(), TestPlane::open(&store, 2, &gate));
    gate.begun(1).await;
    gate.open.add_permits(1);
    assert_eq!(new.finished(id).await.status, ExecutionStatus::Completed);
    let log = new.log(id).await;
    assert_eq!(end(&log), expected);
    assert_eq!(expired(&log), 1, "handed over once");
    new.close().await;
}

/// A tool that always fails in a way that may pass, and counts its calls.
#[derive(Clone, Default)]
struct TransientFailure(Arc<AtomicUsize>);

#[async_trait]
impl Tool for TransientFailure {
    fn kind(&self) -> &'static str {
        "shell"
    }

    async fn run(&self, _: ToolCall) -> Result<Value, Failure> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(Failure::new(FailureKind::Connection, "nobody answers"))
    }
}

// Real time: on a clock that jumps the pause would be over at once.
#[tokio::test]
async fn a_cancel_during_back_off() {
    const BACKING_OFF: &str = "  - step: a\n    tool: {kind: shell, command: x, spec: {policy: {rules: [\
        {when: \"{{ output.status == 'error' }}\", then: {do: retry, attempts: 5, delay: 3600}}]}}}\n";
    let (store, failing) = (Arc::new(FaultyStore::default()), TransientFailure::default());
    let options = Options { slots: 1, ..Options::default() };
    let control = ControlPlane::open(options, store.clone(), Arc::new(SystemClock)).await.unwrap();
    let plane =
        TestPlane::with_tools(control, ToolRegistry::default().with(Noop).with(failing.clone()));
    let id = plane.start(BACKING_OFF).await;
    while failing.0.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    plane.control.journal.executions.cancel(&plane.tenant, id, None).await.unwrap();
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Cancelled);
    // The only slot is free again, long before the pause would have been over.
    let next = plane.start("  - {step: a, tool: {kind: noop}}\n").await;
    assert_eq!(plane.finished(next).await.status, ExecutionStatus::Completed);
    assert_eq!(failing.0.load(Ordering::SeqCst), 1, "nothing was tried again");
    let log = plane.log(id).await;
    assert_eq!(count(&log, |fact| matches!(fact, Fact::CommandIssued(_))), 1);
    plane.close().await;
}

/// A loop of calls, each with a loop inside, with so many slots: how it ends.
async fn nested(slots: usize) -> (ExecutionStatus, Option<Value>) {
    let store = Arc::new(FaultyStore::default());
    let plane = TestPlane::open(&store, slots, &Gate::new()).await;
    register(
        &plane,
        "inner",
        "  - {step: a, loop: {in: [1, 2, 3], iterator: x, spec: {max_in_flight: 1}}, \
         tool: {kind: noop, result: '{{ x }}'}, next: {arcs: [{step: b}]}}\n  \
         - {step: b, tool: {kind: noop, result: '{{ a | length }}'}}\n",
    )
    .await;
    let id = plane
        .start(
            "  - {step: a, loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel, max_in_flight: 1}}, \
             tool: {kind: playbook, path: inner}, next: {arcs: [{step: b}]}}\n  \
             - {step: b, tool: {kind: noop, result: '{{ a | length }}'}}\n",
        )
        .await;
    let row = plane.finished(id).await;
    let (_, result) = end(&plane.log(id).await);
    plane.close().await;
    (row.status, result)
}

#[tokio::test]
async fn a_limit_of_one_with_a_loop_inside() {
    let narrow = nested(1).await;
    assert_eq!(narrow.0, ExecutionStatus::Completed);
    assert_eq!(narrow, nested(16).await);
}

#[tokio::test(start_paused = true)]
async fn a_watchdog_that_would_kill_healthy_work() {
    let expected = undisturbed().await;
    let ((store, clock), gate) = (shared(), Gate::new());
    let busy = TestPlane::open(&store, 2, &gate).await;
    let id = busy.start(WORK).await;
    gate.begun(1).await;
    let other = TestPlane::open(&store, 2, &gate).await;
    // A step of an hour: many leases long, each of which is renewed by a process that is well.
    for _ in 0..120 {
        clock.advance(Duration::from_secs(30));
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    assert_eq!(expired(&busy.log(id).await), 0, "nobody took it for dead");
    gate.open.add_permits(1);
    assert_eq!(busy.finished(id).await.status, ExecutionStatus::Completed);
    let log = other.log(id).await;
    assert_eq!((end(&log), expired(&log)), (expected, 0));
    assert_eq!(gate.running.available_permits(), 0, "and it ran once");
    busy.close().await;
    other.close().await;
}
