//! Reports that a published worker may have dropped while it couldn't reach a server.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options};
use noetl_model::{Clock as _, CommandId, CommandState, Event, ExecutionId, Fact};
use noetl_remote::EventReport;
use noetl_store::conformance::clock::HandClock;
use noetl_store::{
    CommandRow, CommandStore as _, LeaseStore as _, MemoryStore, RuntimeKind, StoreClock,
};
use noetl_test_app::FaultyStore;
use serde_json::json;

use crate::plane::TestPlane;

const LONG: &str = "  - {step: a, tool: {kind: shell, command: x}}\n";
const SENDMAIL: &str = "  - {step: a, tool: {kind: shell, command: x, idempotent: false}}\n";
const LIMIT: Duration = Duration::from_secs(300);
const BEAT: Duration = Duration::from_secs(15);

/// Servers on one store whose clock moves with the clock of the test.
struct World {
    store: Arc<FaultyStore>,
    clock: Arc<HandClock>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(HandClock::default());
        let store = MemoryStore::default().with_clock(StoreClock::new(clock.clone()));
        Self { store: Arc::new(FaultyStore::over(Arc::new(store))), clock }
    }

    async fn server(&self) -> TestPlane {
        let options = Options { slots: 0, ..Options::default() };
        let control = ControlPlane::open(options, self.store.clone(), self.clock.clone()).await;
        TestPlane::without_worker(control.expect("a control plane"))
    }

    async fn pass(&self, time: Duration) {
        self.clock.pass(time);
        tokio::time::sleep(time).await;
    }

    /// Lets time pass while the worker sends heartbeats to this server.
    async fn beat(&self, server: &TestPlane, time: Duration) {
        for _ in 0..time.as_secs() / BEAT.as_secs() {
            self.pass(BEAT).await;
            heartbeat(server).await;
            server.control.remote.leasing.expire_overdue().await.expect("an answer");
        }
    }

    async fn open(&self) -> CommandRow {
        let open = self.store.open_commands(CommandId::new(i64::MIN), 10).await.expect("commands");
        open.into_iter().next().expect("an open command")
    }

    /// Starts an execution whose first step worker `w` runs.
    async fn start_claimed(&self, server: &TestPlane, workflow: &str) -> ExecutionId {
        heartbeat(server).await;
        let id = server.start(workflow).await;
        let command = self.open().await.id;
        let reports = &server.control.remote.reports;
        reports.claim(&None, command, "w").await.expect("a command");
        let report = EventReport {
            execution: id,
            step: "a".to_owned(),
            event_type: "command.started".to_owned(),
            status: None,
            payload: Some(json!({ "command_id": command.get() })),
            meta: None,
            worker: Some("w".to_owned()),
            event: None,
            columns: None,
        };
        reports.record(&server.tenant, report).await.expect("a report");
        assert_eq!(self.open().await.state, CommandState::Running);
        id
    }
}

async fn heartbeat(server: &TestPlane) {
    let beat = server.control.remote.workers.heartbeat(
        &server.tenant,
        &None,
        RuntimeKind::WorkerPool,
        "w",
    );
    beat.await.expect("an answer");
}

async fn would_move_it(server: &TestPlane, id: ExecutionId) -> String {
    let why = server.control.journal.executions.why(&server.tenant, id).await.expect("an answer");
    why.expect("an execution").waits.remove(0).would_move_it
}

fn expired(log: &[Event]) -> Vec<String> {
    let reason = |event: &Event| match &event.fact {
        Fact::CommandExpired { reason, .. } => Some(reason.to_string()),
        _ => None,
    };
    log.iter().filter_map(reason).collect()
}

#[tokio::test(start_paused = true)]
async fn a_restart_ends_leases_of_published_workers_after_five_minutes() {
    let world = World::new();
    let server = world.server().await;
    let id = world.start_claimed(&server, LONG).await;
    server.close().await;
    let server = world.server().await;
    let at = world.clock.now();
    tokio::task::yield_now().await;
    world.beat(&server, LIMIT - BEAT).await;
    assert_eq!(world.open().await.attempt, 1);
    let explanation = would_move_it(&server, id).await;
    let cause = format!("because the server restarted at {at} and the report may be lost");
    assert!(explanation.ends_with(&cause), "{explanation}");
    world.beat(&server, BEAT * 2).await;
    let again = world.open().await;
    assert_eq!((again.attempt, again.state), (2, CommandState::Pending));
    let reasons = expired(&server.log(id).await);
    let expected = format!(
        "the server restarted at {at}, and worker 'w' sent no report of this command since then"
    );
    assert_eq!(reasons, [expected]);
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn commands_claimed_after_a_restart_have_no_shorter_lease() {
    let world = World::new();
    world.server().await.close().await;
    let server = world.server().await;
    let id = world.start_claimed(&server, LONG).await;
    world.beat(&server, LIMIT * 2).await;
    assert_eq!(world.open().await.attempt, 1);
    let explanation = would_move_it(&server, id).await;
    assert!(!explanation.contains("may be lost"), "{explanation}");
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_gap_between_heartbeats_ends_leases_after_five_minutes() {
    for (gap, attempt) in [(20, 1), (21, 2)] {
        let world = World::new();
        let server = world.server().await;
        let id = world.start_claimed(&server, LONG).await;
        world.pass(Duration::from_secs(gap)).await;
        heartbeat(&server).await;
        let explanation = would_move_it(&server, id).await;
        let cause = "because no heartbeat of worker 'w' arrived for 21 s and";
        assert_eq!(explanation.contains(cause), attempt == 2, "{explanation}");
        world.beat(&server, LIMIT + BEAT).await;
        assert_eq!(world.open().await.attempt, attempt, "a gap of {gap} s");
        server.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_heartbeat_detects_a_gap_the_store_did_not_record() {
    let world = World::new();
    let server = world.server().await;
    world.start_claimed(&server, LONG).await;
    world.pass(Duration::from_secs(30)).await;
    world.store.set_down(true);
    let beat = server.control.remote.workers.heartbeat(
        &server.tenant,
        &None,
        RuntimeKind::WorkerPool,
        "w",
    );
    beat.await.expect_err("no store");
    world.store.set_down(false);
    heartbeat(&server).await;
    world.beat(&server, LIMIT + BEAT).await;
    assert_eq!(world.open().await.attempt, 2);
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_may_not_run_twice_fails_instead() {
    let world = World::new();
    let server = world.server().await;
    let id = world.start_claimed(&server, SENDMAIL).await;
    server.close().await;
    let server = world.server().await;
    let explanation = would_move_it(&server, id).await;
    assert!(
        explanation.contains("the step fails, since its tool may not run twice"),
        "{explanation}"
    );
    world.beat(&server, LIMIT + BEAT).await;
    assert_eq!(server.finished(id).await.status, noetl_store::ExecutionStatus::Failed);
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_beside_another_server_shortens_no_leases() {
    let world = World::new();
    world.store.set_shared();
    let (stays, restarts) = (world.server().await, world.server().await);
    world.start_claimed(&stays, LONG).await;
    restarts.close().await;
    let restarted = world.server().await;
    world.beat(&stays, LIMIT * 2).await;
    assert_eq!(world.open().await.attempt, 1);
    // A server that was killed leaves a lease behind that is never renewed: then the restart counts.
    stays.close().await;
    restarted.close().await;
    let lease = world.store.acquire("machine/77", "killed", Duration::from_secs(90)).await;
    lease.expect("an answer").expect("a lease");
    let server = world.server().await;
    world.beat(&server, LIMIT + BEAT * 3).await;
    assert_eq!(world.open().await.attempt, 2);
    server.close().await;
}
