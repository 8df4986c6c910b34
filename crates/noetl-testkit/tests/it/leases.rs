//! Workers that are lost, and those that come back from the dead.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use noetl_model::Origin;
use noetl_testkit::TestApp;
use noetl_testkit::nats::TestNats;
use noetl_testkit::twin::{Twin, TwinOptions};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::stage::{app, counted, ended, options, playbook, start, until};

fn one_step() -> String {
    playbook("{}", "  - {step: s, tool: {kind: python, code: 'result = {\"ok\": True}'}}\n")
}

/// Lets ended leases be dealt with until the command was handed out anew.
async fn handed_out_again(app: &TestApp, id: noetl_model::ExecutionId) {
    until("the command to be handed out again", async || {
        app.control.leasing.end_overdue().await.unwrap();
        counted(app, id).await.get("command.issued") == Some(&2)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_dead_worker_held_runs_again_elsewhere() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let gate = Some(Arc::new(Semaphore::new(0)));
    let dead = Twin::start(TwinOptions { gate, ..options(&app, &nats, "w1") });
    let id = start(&app, &one_step()).await;
    until("its beginning", async || dead.seen.began.load(Ordering::Relaxed) == 1).await;
    dead.kill().await;
    // Started again under its name, with another key: what the name held is held by nobody.
    let next = Twin::start(options(&app, &nats, "w1"));
    handed_out_again(&app, id).await;
    assert_eq!(ended(&app, id).await, ("COMPLETED".to_owned(), Some(json!({"ok": true}))));
    let log = counted(&app, id).await;
    assert_eq!((log.get("command.expired"), log.get("call.done")), (Some(&1), Some(&1)), "{log:?}");
    next.kill().await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_changes_nothing() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let gate = Arc::new(Semaphore::new(0));
    // It takes one at a time, so that what is handed out anew is not for it.
    let zombie = Twin::start(TwinOptions {
        gate: Some(gate.clone()),
        concurrent: 1,
        ..options(&app, &nats, "w1")
    });
    let id = start(&app, &one_step()).await;
    until("its beginning", async || zombie.seen.began.load(Ordering::Relaxed) == 1).await;
    let next = Twin::start(options(&app, &nats, "w1"));
    handed_out_again(&app, id).await;
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
    assert!(!zombie.is_over(), "it goes on with the next");
    zombie.kill().await;
    next.kill().await;
    app.close().await;
}
