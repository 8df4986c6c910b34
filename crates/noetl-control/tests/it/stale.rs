//! Live processes change while a process reads the commands of others.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use noetl_control::Options;
use noetl_model::{ExecutionId, Fact};
use noetl_store::{Append, Committed, EventLog, ExecutionStatus, LockedLog, StoreError};
use noetl_test_app::{CallInterceptor, FaultyStore};
use tokio::sync::watch;

use crate::plane::{Gate, TestPlane, count};

const WORK: &str = "  - {step: a, tool: {kind: shell, command: x}}\n";

/// A store that blocks reads of commands after the list of live processes was read, once it is
/// armed.
struct StaleStore {
    inner: Arc<FaultyStore>,
    is_armed: AtomicBool,
    has_asked: AtomicBool,
    /// Whether a read waits, and whether it was released.
    waits: watch::Sender<(bool, bool)>,
}

impl StaleStore {
    fn over(inner: &Arc<FaultyStore>) -> (Arc<FaultyStore>, Arc<Self>) {
        let stale = Arc::new(Self {
            inner: inner.clone(),
            is_armed: AtomicBool::default(),
            has_asked: AtomicBool::default(),
            waits: watch::Sender::default(),
        });
        let store = FaultyStore::with_interceptor(inner.clone(), stale.clone());
        store.set_shared();
        (Arc::new(store), stale)
    }

    fn arm(&self) {
        self.is_armed.store(true, Ordering::SeqCst);
    }

    async fn waits(&self) {
        let _ = self.waits.subscribe().wait_for(|(waits, _)| *waits).await;
    }

    fn let_go(&self) {
        self.waits.send_modify(|(_, goes)| *goes = true);
    }
}

#[async_trait]
impl CallInterceptor for StaleStore {
    async fn before_call(&self, method: &'static str) -> Result<(), StoreError> {
        if method == "open_commands" && self.has_asked.load(Ordering::SeqCst) {
            self.waits.send_modify(|(waits, _)| *waits = true);
            let _ = self.waits.subscribe().wait_for(|(_, goes)| *goes).await;
        }
        Ok(())
    }

    async fn after_call(
        &self,
        method: &'static str,
        _: &mut (dyn Any + Send),
    ) -> Result<(), StoreError> {
        let is_armed = self.is_armed.load(Ordering::SeqCst);
        self.has_asked.fetch_or(is_armed && method == "live", Ordering::SeqCst);
        Ok(())
    }

    async fn commit(&self, batch: Vec<Append>) -> Result<Vec<Committed>, StoreError> {
        self.inner.commit(batch).await
    }

    async fn hold(&self, execution: ExecutionId) -> Result<Box<dyn LockedLog + '_>, StoreError> {
        self.inner.hold(execution).await
    }

    async fn others_left_work(&self) {
        std::future::pending().await
    }
}

async fn ends_undisturbed(plane: &TestPlane, id: ExecutionId) {
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let expired = count(&plane.log(id).await, |fact| matches!(fact, Fact::CommandExpired { .. }));
    assert_eq!(expired, 0, "its process was there all the time");
}

#[tokio::test(start_paused = true)]
async fn a_recovery_respects_commands_of_a_process_started_meanwhile() {
    let (shared, gate) = (Arc::new(FaultyStore::default()), Gate::new());
    shared.set_shared();
    let busy = TestPlane::open(&shared, 1, &gate).await;
    let first = busy.start(WORK).await;
    gate.begun(1).await;
    let left = busy.start(WORK).await;
    let (store, stale) = StaleStore::over(&shared);
    stale.arm();
    let recovers = tokio::spawn(async move { TestPlane::open(&store, 0, &Gate::new()).await });
    stale.waits().await;
    let next = TestPlane::open(&shared, 1, &gate).await;
    gate.begun(1).await;
    stale.let_go();
    let recovered = recovers.await.unwrap();
    gate.open.add_permits(2);
    ends_undisturbed(&next, first).await;
    ends_undisturbed(&next, left).await;
    for plane in [recovered, next, busy] {
        plane.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_scan_respects_commands_of_a_process_started_meanwhile() {
    let (shared, gate) = (Arc::new(FaultyStore::default()), Gate::new());
    shared.set_shared();
    let (store, stale) = StaleStore::over(&shared);
    let options = Options { slots: 1, lease: Duration::from_secs(3), ..Options::default() };
    let looks = TestPlane::with(&store, options, &gate).await;
    let first = looks.start(WORK).await;
    gate.begun(1).await;
    stale.arm();
    stale.waits().await;
    let next = TestPlane::open(&shared, 1, &gate).await;
    let id = next.start(WORK).await;
    gate.begun(1).await;
    stale.let_go();
    // Long enough for the look to go on, and for others after it.
    tokio::time::sleep(Duration::from_secs(10)).await;
    gate.open.add_permits(2);
    ends_undisturbed(&next, first).await;
    ends_undisturbed(&next, id).await;
    for plane in [looks, next] {
        plane.close().await;
    }
}
