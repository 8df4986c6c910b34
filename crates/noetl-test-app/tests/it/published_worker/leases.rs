//! Workers that die, and workers that return after their lease expired.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use noetl_model::Origin;
use noetl_test_app::TestApp;
use noetl_test_app::published_worker::{PublishedWorker, PublishedWorkerOptions};
use noetl_test_services::nats::TestNats;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::published_worker::fixture::{app, counted, ended, options, playbook, start, until};

fn one_step() -> String {
    playbook("{}", "  - {step: s, tool: {kind: python, code: 'result = {\"ok\": True}'}}\n")
}

/// Expires overdue leases until the command is issued a second time.
async fn wait_for_reissue(app: &TestApp, id: noetl_model::ExecutionId) {
    until("the command to be issued again", async || {
        app.control.remote.leasing.expire_overdue().await.unwrap();
        counted(app, id).await.get("command.issued") == Some(&2)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_a_dead_worker_are_reissued() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let gate = Some(Arc::new(Semaphore::new(0)));
    let dead =
        PublishedWorker::start(PublishedWorkerOptions { gate, ..options(&app, &nats, "w1") });
    let id = start(&app, &one_step()).await;
    until("its beginning", async || dead.stats.started.load(Ordering::Relaxed) == 1).await;
    dead.kill().await;
    // A restart under the same name with another key releases the leases of that name.
    let next = PublishedWorker::start(options(&app, &nats, "w1"));
    wait_for_reissue(&app, id).await;
    assert_eq!(ended(&app, id).await, ("COMPLETED".to_owned(), Some(json!({"ok": true}))));
    let log = counted(&app, id).await;
    assert_eq!((log.get("command.expired"), log.get("call.done")), (Some(&1), Some(&1)), "{log:?}");
    next.kill().await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_of_a_zombie_worker_change_nothing() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let gate = Arc::new(Semaphore::new(0));
    // One command at a time, so that it does not claim the reissued one.
    let zombie = PublishedWorker::start(PublishedWorkerOptions {
        gate: Some(gate.clone()),
        concurrent: 1,
        ..options(&app, &nats, "w1")
    });
    let id = start(&app, &one_step()).await;
    until("its beginning", async || zombie.stats.started.load(Ordering::Relaxed) == 1).await;
    let next = PublishedWorker::start(options(&app, &nats, "w1"));
    wait_for_reissue(&app, id).await;
    assert_eq!(ended(&app, id).await.0, "COMPLETED");
    let before = counted(&app, id).await;
    gate.add_permits(1);
    until("what the zombie says", async || {
        counted(&app, id).await.get("reported command.completed") == Some(&1)
    })
    .await;
    let decided = |log: &std::collections::BTreeMap<String, usize>| -> Vec<(String, usize)> {
        let decided = log.iter().filter(|(kind, _)| !kind.starts_with("reported"));
        decided.map(|(kind, count)| (kind.clone(), *count)).collect()
    };
    let after = counted(&app, id).await;
    assert_eq!(decided(&before), decided(&after), "what it says is kept and decides nothing");
    let rows = app.read_log(id).await;
    let by_zombie = rows.iter().filter(|row| row.origin == Origin::Reported).count();
    assert_eq!(by_zombie, 2, "its answer and its end");
    assert!(!zombie.is_over(), "it continues with the next command");
    zombie.kill().await;
    next.kill().await;
    app.close().await;
}
