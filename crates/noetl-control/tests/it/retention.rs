use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options, purge};
use noetl_model::{Clock, ExecutionId, Tenant, Timestamp};
use noetl_store::conformance::clock::HandClock;
use noetl_store::conformance::story::{Story, done, write};
use noetl_store::{
    Append, Blobs, CursorStore, Digest, LeaseStore, MemoryStore, NewVariable, RetentionPolicy,
    RetentionStore, RetentionWindow, StoreClock, VariableKind, VariableStore,
};
use noetl_test_app::{FaultyStore, SimClock};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Stores a variable that the default policy purges.
async fn leave_something_old(store: &FaultyStore) {
    let old = NewVariable {
        name: "old".into(),
        kind: VariableKind::UserDefined,
        value: 1.into(),
        source_step: None,
        scope: None,
        expires_at: Some(Timestamp::from_micros(1)),
    };
    let stored = store.put_variables(&Tenant::default(), ExecutionId::new(1), vec![old]).await;
    stored.unwrap();
}

async fn is_there(store: &FaultyStore) -> bool {
    store.purge(&RetentionPolicy::default(), true).await.unwrap().removed.variables > 0
}

/// Lets the purge come about, however long that takes.
async fn gone(store: &FaultyStore) {
    let wait = async {
        while is_there(store).await {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    };
    tokio::time::timeout(30 * DAY, wait).await.expect("it is removed");
}

async fn open(
    store: &Arc<FaultyStore>,
    clock: &Arc<SimClock>,
    retention: Option<RetentionPolicy>,
) -> ControlPlane {
    let options = Options { slots: 0, retention, ..Options::default() };
    ControlPlane::open(options, store.clone(), clock.clone()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn retention_purges_old_rows_once_a_day() {
    let (store, clock) = (Arc::new(FaultyStore::default()), Arc::new(SimClock::default()));
    leave_something_old(&store).await;
    let control = open(&store, &clock, Some(RetentionPolicy::default())).await;
    gone(&store).await;
    leave_something_old(&store).await;
    tokio::time::sleep(10 * DAY).await;
    assert!(is_there(&store).await, "by the clock it is still the same day");
    clock.advance(DAY);
    gone(&store).await;
    control.close().await;
    assert_eq!(store.lease("retention").await.unwrap(), None);
    assert_eq!(store.cursor("retention").await.unwrap(), Some(clock.now().as_micros()));
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_repeat_the_daily_retention() {
    let (store, clock) = (Arc::new(FaultyStore::default()), Arc::new(SimClock::default()));
    leave_something_old(&store).await;
    let control = open(&store, &clock, Some(RetentionPolicy::default())).await;
    gone(&store).await;
    control.close().await;
    leave_something_old(&store).await;
    let control = open(&store, &clock, Some(RetentionPolicy::default())).await;
    tokio::time::sleep(DAY).await;
    assert!(is_there(&store).await);
    control.close().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_purged_without_a_policy() {
    let (store, clock) = (Arc::new(FaultyStore::default()), Arc::new(SimClock::default()));
    leave_something_old(&store).await;
    let control = open(&store, &clock, None).await;
    tokio::time::sleep(3 * DAY).await;
    assert!(is_there(&store).await);
    control.close().await;
}

#[tokio::test(start_paused = true)]
async fn retention_does_not_run_while_another_process_has_the_lease() {
    let (store, clock) = (Arc::new(FaultyStore::default()), Arc::new(SimClock::default()));
    leave_something_old(&store).await;
    let lease = store.acquire("retention", "another", 10 * DAY).await.unwrap().unwrap();
    let control = open(&store, &clock, Some(RetentionPolicy::default())).await;
    tokio::time::sleep(3 * DAY).await;
    assert!(is_there(&store).await);
    assert!(store.release(&lease).await.unwrap());
    gone(&store).await;
    control.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_unavailable_is_purged_later() {
    let (store, clock) = (Arc::new(FaultyStore::default()), Arc::new(SimClock::default()));
    leave_something_old(&store).await;
    let control = open(&store, &clock, Some(RetentionPolicy::default())).await;
    store.set_down(true);
    tokio::time::sleep(DAY).await;
    store.set_down(false);
    gone(&store).await;
    control.close().await;
}

#[tokio::test]
async fn blobs_are_removed_after_their_last_execution_and_the_grace_period() {
    let clock = Arc::new(HandClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(clock.clone()));
    let mut story = Story::new(10);
    let shared: Digest = store.put_blob(b"shared".to_vec(), "text/plain").await.unwrap().digest;
    let own: Digest = store.put_blob(b"own".to_vec(), "text/plain").await.unwrap().digest;
    write(&store, Append { blobs: vec![shared, own], ..story.start() }).await;
    write(&store, story.then(vec![done()])).await;
    write(&store, Append { blobs: vec![shared], ..Story::new(11).start() }).await;
    let policy = RetentionPolicy {
        executions: RetentionWindow::days("days", 1).unwrap(),
        ..RetentionPolicy::KEEP
    };
    let purged = purge(&store, &store, &policy, false).await.unwrap();
    assert_eq!(purged.report.removed.references, 2);
    // Another reference to it might be on its way.
    assert!(purged.content.removed.is_empty());
    clock.pass(2 * DAY);
    let would = purge(&store, &store, &policy, true).await.unwrap();
    assert_eq!(would.content.removed, [own]);
    let purged = purge(&store, &store, &policy, false).await.unwrap();
    assert_eq!(purged.content.removed, [own]);
    assert_eq!(store.blobs(None, 9).await.unwrap().blobs.len(), 1);
}
