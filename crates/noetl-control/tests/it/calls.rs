//! Calls that end before the execution they call has started. No unwanted child may keep running,
//! regardless of which process fires which timer, and in which order.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options};
use noetl_model::ExecutionId;
use noetl_store::{ExecutionStatus, MemoryStore, Store, StoreClock, TimerStore};
use noetl_test_app::{CommitFault, FaultyStore, SimClock};
use noetl_tools::{Noop, ToolRegistry};

use crate::own::{register, rows_of};
use crate::plane::{Gate, TestPlane};

const CALL: &str = "  - {step: a, tool: {kind: playbook, path: other/held, return_result: true, \
                    timeout: 5}}\n";
const HELD: &str = "  - {step: a, tool: {kind: shell, command: x}}\n";

/// Processes on one store, and the clock they go by.
struct Site {
    clock: Arc<SimClock>,
    memory: Arc<MemoryStore>,
}

impl Site {
    fn new() -> Self {
        let clock = Arc::new(SimClock::default());
        let memory = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
        Self { clock, memory: Arc::new(memory) }
    }

    /// Opens a process with its own faulty view of the store.
    async fn process(&self, gate: &Gate) -> (Arc<FaultyStore>, TestPlane) {
        let store = Arc::new(FaultyStore::over(self.memory.clone()));
        let seen: Arc<dyn Store> = store.clone();
        let control =
            ControlPlane::open(Options::default(), seen, self.clock.clone()).await.unwrap();
        let tools = ToolRegistry::default().with(Noop).with(gate.clone());
        (store, TestPlane::with_tools(control, tools))
    }

    /// Lets this much time pass, then waits until `is_so`.
    async fn pass(&self, seconds: u64, mut is_so: impl AsyncFnMut() -> bool) {
        self.clock.advance(Duration::from_secs(seconds));
        for _ in 0..10_000 {
            if is_so().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it never came to be");
    }

    /// Returns the number of attempts of each timer of this execution.
    async fn takes(&self, id: ExecutionId) -> Vec<u32> {
        self.memory.timers_of(id).await.unwrap().iter().map(|row| row.attempts).collect()
    }

    /// Whether nothing that this execution asked for waits for its delivery.
    async fn is_delivered(&self, id: ExecutionId) -> bool {
        self.memory.timers_of(id).await.unwrap().is_empty()
    }
}

async fn status(plane: &TestPlane, id: ExecutionId) -> ExecutionStatus {
    plane.control.journal.executions.get(&plane.tenant, id).await.unwrap().unwrap().status
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_before_its_child_starts_starts_no_child() {
    let (site, gate) = (Site::new(), Gate::new());
    let (store, plane) = site.process(&gate).await;
    register(&plane, "other/held", HELD).await;
    // The parent's start is stored, but the child's fails: its timer is retried after its lease.
    store.fail_commit(store.commits() + 2, CommitFault::Refused);
    let id = plane.start(CALL).await;
    site.pass(0, async || store.commits() >= 2).await;
    site.pass(6, async || status(&plane, id).await == ExecutionStatus::Failed).await;
    // The timer is retried, because another process may be starting the child.
    site.pass(31, async || site.takes(id).await == [2]).await;
    site.pass(31, async || site.is_delivered(id).await).await;
    assert!(rows_of(&plane, "other/held").await.is_empty(), "nobody wants it");
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_start_is_in_flight_at_the_call_timeout_is_cancelled() {
    let (site, gate) = (Site::new(), Gate::new());
    let (slow, first) = site.process(&gate).await;
    register(&first, "other/held", HELD).await;
    // The start passes its first look at the parent and does not come further.
    let before = slow.commits();
    slow.block_commits_from(before + 2);
    let id = first.start(CALL).await;
    site.pass(0, async || slow.commits() >= before + 2).await;
    // Another process delivers the timeout, and the cancel that finds no child.
    let (_, second) = site.process(&gate).await;
    site.pass(6, async || status(&second, id).await == ExecutionStatus::Failed).await;
    let only_start = async || {
        let rows = site.memory.timers_of(id).await.unwrap();
        rows.iter().map(|row| row.kind.as_str()).eq(["start_child"])
    };
    site.pass(0, only_start).await;
    slow.block_commits(false);
    site.pass(0, async || site.is_delivered(id).await).await;
    let children = rows_of(&first, "other/held").await;
    assert_eq!(children.len(), 1, "it was started");
    assert_eq!(first.finished(children[0].id).await.status, ExecutionStatus::Cancelled);
    second.close().await;
    first.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_detached_child_runs_although_its_parent_failed() {
    let (site, gate) = (Site::new(), Gate::new());
    let (store, plane) = site.process(&gate).await;
    register(&plane, "other/sent", "  - {step: a, tool: {kind: noop}}\n").await;
    let before = store.commits();
    store.fail_commit(before + 2, CommitFault::Refused);
    let id = plane
        .start(
            "  - {step: a, tool: {kind: playbook, path: other/sent}, next: {arcs: [{step: b}]}}\n  \
             - {step: b, tool: {kind: wait, until: never}}\n",
        )
        .await;
    assert_eq!(status(&plane, id).await, ExecutionStatus::Failed);
    site.pass(31, async || site.is_delivered(id).await).await;
    let children = rows_of(&plane, "other/sent").await;
    assert_eq!(children.len(), 1);
    assert_eq!(plane.finished(children[0].id).await.status, ExecutionStatus::Completed);
    plane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_ahead_of_the_database_does_not_delay_a_call() {
    const CALLING: &str =
        "  - {step: a, tool: {kind: playbook, path: other/quick, return_result: true}}\n";
    let site = Site::new();
    let ahead = Arc::new(SimClock::default());
    ahead.advance(Duration::from_secs(240));
    let store: Arc<dyn Store> = Arc::new(FaultyStore::over(site.memory.clone()));
    let control = ControlPlane::open(Options::default(), store, ahead).await.unwrap();
    let plane = TestPlane::with_tools(control, ToolRegistry::default().with(Noop));
    register(&plane, "other/quick", "  - {step: a, tool: {kind: noop}}\n").await;
    let id = plane.start(CALLING).await;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    plane.close().await;
}
