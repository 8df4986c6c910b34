//! A fault of the database's connections that users of other engines reported. Others are in the
//! modules of this name in `noetl-control`, `noetl-server`, and `noetl-cli`.

use std::sync::Arc;
use std::time::Duration;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_journal::StartRequest;
use noetl_model::{ExecutionId, Tenant};
use noetl_store::{EventLog, ExecutionStatus, LeaseStore, SystemClock};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_app::migrated_database;

/// A playbook with a step that waits for a timer between two others.
const WAITING: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t}\nworkflow:\n  \
    - {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}\n  \
    - {step: b, tool: {kind: wait, seconds: 1}, next: {arcs: [{step: c}]}}\n  \
    - {step: c, tool: {kind: noop, result: 7}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_pool_that_is_exhausted() {
    let database = migrated_database();
    // One for callers, besides the writer's and the reserved one.
    let options = Options::new(&database.url()).expect("a URL").connections(3);
    let store = PostgresStore::open(options.acquire_timeout(Duration::from_secs(60))).await;
    let store = Arc::new(store.expect("a store"));
    let beside = PostgresStore::open(Options::new(&database.url()).expect("a URL")).await;
    let beside = beside.expect("a store");
    let settings =
        ControlOptions { slots: 2, lease: Duration::from_secs(6), ..ControlOptions::default() };
    let control = ControlPlane::open(settings, store.clone(), Arc::new(SystemClock)).await;
    let control = Arc::new(control.expect("a control plane"));
    let worker = noetl_test_app::worker(&control);
    let tenant = Tenant::default();
    let registered = control.catalog.register(&tenant, WAITING.to_owned(), "playbook", false).await;
    let catalog = Some(registered.expect("a playbook").0.id);
    let request = StartRequest { catalog, ..StartRequest::default() };
    let started = control.journal.executions.start(&tenant, request).await.expect("a start");

    // A caller that never releases its lock uses up the connections of callers.
    let lock = store.hold(ExecutionId::new(1)).await.expect("a connection");
    let names: Vec<_> = beside.live("").await.expect("leases").into_iter().collect();
    assert!(!names.is_empty(), "a process has a lease");
    for before in names {
        let is_renewed = async || {
            let now = beside.lease(&before.name).await.expect("an answer");
            let now = now.unwrap_or_else(|| panic!("{} has ended", before.name));
            assert_eq!((now.epoch, &now.holder), (before.epoch, &before.holder), "it is the same");
            now.until > before.until
        };
        while !is_renewed().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    drop(lock);

    let ended = control.journal.executions.wait_until_finished(&tenant, started.execution).await;
    let row = ended.expect("an answer").expect("an execution");
    assert_eq!(row.status, ExecutionStatus::Completed, "{:?}", row.error);
    control.drain();
    worker.await.expect("a worker that ends");
    control.close().await;
}
