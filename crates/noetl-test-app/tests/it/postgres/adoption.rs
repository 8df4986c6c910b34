//! A control plane on a database that another NoETL created. What the store reads there is tested in
//! `noetl-store-postgres`.

use std::sync::Arc;

use noetl_control::{ControlPlane, Options as ControlOptions};
use noetl_journal::StartRequest;
use noetl_model::{ExecutionId, Tenant};
use noetl_store::{CommandStore, ExecutionStatus, ExecutionStore, SystemClock};
use noetl_store_postgres::{Options, PostgresStore};
use noetl_test_services::postgres::TestDatabase;

use crate::postgres::OLD_SCHEMA;
use crate::postgres::verify::verify;

const UNFINISHED: i64 = 570_000_000_000_000_003;

fn old_database() -> TestDatabase {
    let database = TestDatabase::new();
    database.psql(OLD_SCHEMA);
    database
}

async fn adopt(database: &TestDatabase) -> PostgresStore {
    let options = Options::new(&database.url()).expect("a URL");
    PostgresStore::open(options).await.expect("an adopted store")
}

#[tokio::test]
async fn adopted_unfinished_executions_are_not_resumed() {
    let database = old_database();
    let store = Arc::new(adopt(&database).await);
    let unfinished = store.unfinished(ExecutionId::new(i64::MIN), 10).await.expect("a list");
    assert!(unfinished.is_empty());
    let open = store.open_commands(noetl_model::CommandId::new(i64::MIN), 10).await;
    assert!(open.expect("a list").is_empty());
    let control =
        ControlPlane::open(ControlOptions::default(), store.clone(), Arc::new(SystemClock)).await;
    let control = control.expect("a control plane");
    assert_eq!(control.journal.resumed, 0);
    let cancelled = control
        .journal
        .executions
        .cancel(&Tenant::default(), ExecutionId::new(UNFINISHED), None)
        .await;
    assert!(cancelled.is_err());
    control.close().await;
    assert_eq!(database.psql("select count(*) from noetl.event"), "13", "nothing was added");
}

#[tokio::test]
async fn new_executions_run_in_an_adopted_database() {
    let database = old_database();
    let store = Arc::new(adopt(&database).await);
    let control =
        ControlPlane::open(ControlOptions::default(), store.clone(), Arc::new(SystemClock)).await;
    let control = Arc::new(control.expect("a control plane"));
    let worker = noetl_test_app::worker(&control);
    let tenant = Tenant::default();
    let text = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: n, path: old/etl}\nworkflow:\n  \
                - {step: a, tool: {kind: noop, result: \"a\\0b\"}, next: {arcs: [{step: b}]}}\n  \
                - {step: b, tool: {kind: noop}}\n";
    let registered = control.catalog.register(&tenant, text.into(), "playbook", false).await;
    let (entry, _) = registered.expect("a playbook");
    assert_eq!(entry.version, 3, "after the versions it had");
    let request = StartRequest { catalog: Some(entry.id), ..StartRequest::default() };
    let id = control.journal.executions.start(&tenant, request).await.expect("a start").execution;
    let ended = control
        .journal
        .executions
        .wait_until_finished(&tenant, id)
        .await
        .expect("a read")
        .expect("a row");
    assert_eq!(ended.status, ExecutionStatus::Completed, "{:?}", ended.error);
    verify(&database, &*store, id).await;
    control.drain();
    worker.await.expect("a worker that ends");
    control.close().await;
}
