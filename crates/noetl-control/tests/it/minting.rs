//! A process without its machine-ID lease mints no IDs, and no ID is minted twice.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options};
use noetl_journal::SubscriptionError;
use noetl_model::Tenant;
use noetl_store::{MemoryStore, StoreClock, SystemClock};
use noetl_test_app::{FaultyStore, SimClock};
use noetl_tools::{Noop, ToolRegistry};

use crate::plane::TestPlane;

const DOCUMENT: &str = "\
apiVersion: noetl.io/v1
kind: Subscription
metadata: {path: tests/orders}
spec: {source: nats, mode: pull, dispatch: {playbook: tests/greet}}
";

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the thread is to stand still, and all on it")]
async fn a_process_stalled_past_its_machine_id_lease_mints_no_ids() {
    let lease = Duration::from_millis(200);
    let options = Options { slots: 0, lease, ..Options::default() };
    let store = Arc::new(MemoryStore::new());
    let control =
        ControlPlane::open(options, store, Arc::new(SystemClock)).await.expect("a control");
    let tenant = Tenant::default();
    let document = DOCUMENT.to_owned();
    control.catalog.register(&tenant, document, "subscription", false).await.expect("an entry");
    // Everything stands still, the renewal of the lease too.
    std::thread::sleep(lease * 3);
    let refused = control.triggers.subscriptions.register(&tenant, "tests/orders").await;
    assert!(matches!(refused, Err(SubscriptionError::Store(_))), "{refused:?}");
    assert!(control.publishing.imports.ready().is_err());
    // Once the lease is acquired again, the process mints IDs.
    let mut registered = control.triggers.subscriptions.register(&tenant, "tests/orders").await;
    while registered.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        registered = control.triggers.subscriptions.register(&tenant, "tests/orders").await;
    }
    control.close().await;
}

/// A process that loses its machine ID may get one that a process with another clock used before.
#[tokio::test(start_paused = true)]
async fn a_reused_machine_id_mints_no_ids_of_an_earlier_process_whose_clock_was_ahead() {
    const AHEAD: Duration = Duration::from_secs(300);
    const LEASE: Duration = Duration::from_secs(30);
    let database = Arc::new(SimClock::default());
    let store = MemoryStore::new().with_clock(StoreClock::new(database.clone()));
    let store = Arc::new(FaultyStore::over(Arc::new(store)));
    store.set_shared();
    let open = async |clock: &Arc<SimClock>| {
        let options = Options { slots: 1, lease: LEASE, ..Options::default() };
        let control =
            ControlPlane::open(options, store.clone(), clock.clone()).await.expect("a control");
        TestPlane::with_tools(control, ToolRegistry::default().with(Noop))
    };
    let (fast, right) = (Arc::new(SimClock::default()), Arc::new(SimClock::default()));
    let first = open(&fast).await;
    let second = open(&right).await;
    fast.advance(AHEAD);
    let steps = "  - {step: a, tool: {kind: noop}}\n";
    let ahead = first.start(steps).await;
    first.finished(ahead).await;
    let mut ids: Vec<_> = second.log(ahead).await.iter().map(|event| event.id).collect();
    first.killed().await;
    // Both numbers are free; the second process gets the lower one, at the time the first had.
    database.advance(LEASE * 20);
    tokio::time::sleep(LEASE * 2).await;
    right.advance(AHEAD);
    let later = second.start(steps).await;
    second.finished(later).await;
    ids.extend(second.log(later).await.iter().map(|event| event.id));
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "each event has an id of its own");
    second.close().await;
}
